// Products of few rows on tensor cores, with operands swapped; see few_rows.cuh.
//
// Columns are the 16 rows of mma.m16n8k16 and tokens its 8 columns, so that 8 tokens fill it. A block
// has BN columns; tiles of BK pass through a ring of STAGES in shared memory, filled by asynchronous
// copies and XOR-swizzled, so that neither the copies nor ldmatrix meet a bank conflict. WARPS_N warps
// lie along the columns, WARPS_K share the k of a tile, the RANKS blocks of a cluster share the tiles.
// TURNED: neighbours in the grid begin at different tiles of their share, so that they don't ask for the
// same lines of x at once.
#pragma once

#include "mma.cuh"
#include "split_sums.cuh"

namespace solkit {

// Blocks that registers are dealt out for: as many as have room on an SM of CC 9.0 by their rings.
constexpr int ring_blocks(int ring_bytes, int warps) {
  return ring_bytes <= 112 * 1024 && warps <= 8 ? 2 : 1;
}

template <typename T, bool NK, int TOKENS, int BN, int BK, int WARPS_N, int WARPS_K, int STAGES,
          int RANKS, bool TURNED, typename EPILOGUE>
__global__ void __launch_bounds__(32 * WARPS_N * WARPS_K,
                                  ring_blocks((BN + TOKENS) * BK * 2 * STAGES, (WARPS_N * WARPS_K)))
    matmul_swapped(const T* __restrict__ x, const T* __restrict__ weight,
                   const T* __restrict__ bias, const T* __restrict__ residual, T* __restrict__ out,
                   long long M, long long K, long long N, float alpha, float beta) {
  constexpr int THREADS = 32 * WARPS_N * WARPS_K, STEP = 32;  // k of a step: two products
  constexpr int WN = BN / WARPS_N, NT = WN / 16, TT = TOKENS / 8, STEPS = BK / STEP / WARPS_K;
  static_assert(WN % 16 == 0 && TOKENS % 8 == 0 && BK % (STEP * WARPS_K) == 0, "whole fragments");
  // Chunks of 16 bytes: x tile [TOKENS][BK], weight tile [BN][BK] (nk) or [BK][BN] (kn).
  constexpr int X_ROW = BK / 8, W_ROW = NK ? BK / 8 : BN / 8;
  constexpr int X_CHUNKS = TOKENS * X_ROW, W_CHUNKS = BN * BK / 8;
  constexpr int X_COPIES = (X_CHUNKS + THREADS - 1) / THREADS, W_COPIES = W_CHUNKS / THREADS;
  static_assert(W_CHUNKS % THREADS == 0 && THREADS % W_ROW == 0 && THREADS % X_ROW == 0,
                "a thread keeps its chunk column");
  constexpr unsigned int STAGE_BYTES = (X_CHUNKS + W_CHUNKS) * 16;

  extern __shared__ uint4 shared[];
  const unsigned int shared_base = shared_address(shared);
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int warp_n = warp % WARPS_N * WN, warp_k = warp / WARPS_N;
  const int rank = RANKS > 1 ? cluster_rank() : 0;
  const long long first_n = static_cast<long long>(blockIdx.x / RANKS) * BN;
  const int tiles = static_cast<int>((K + BK - 1) / BK);
  const auto next_stage = [&](unsigned int stage) {
    return stage == shared_base + (STAGES - 1) * STAGE_BYTES ? shared_base : stage + STAGE_BYTES;
  };
  const int first_tile = first_of_rank(tiles, rank, RANKS);
  const int own_tiles = first_of_rank(tiles, rank + 1, RANKS) - first_tile;

  // What this thread copies: one chunk column, several rows. Zeros stand beyond M, N and K.
  const int x_chunk = thread % X_ROW, x_row = thread / X_ROW;
  const int w_chunk = thread % W_ROW, w_row = thread / W_ROW;
  constexpr int X_STRIDE = THREADS / X_ROW, W_STRIDE = THREADS / W_ROW;
  static_assert(X_STRIDE % 8 == 0 && W_STRIDE % 8 == 0, "a thread's rows are swizzled alike");
  const int turn = TURNED ? static_cast<int>(blockIdx.x / RANKS) % max(own_tiles, 1) : 0;
  const int first_k = (first_tile + turn) * BK;
  const T* x_source = x + x_row * K + first_k + x_chunk * 8;
  const T* w_source = NK ? weight + (first_n + w_row) * K + first_k + w_chunk * 8
                         : weight + (first_k + w_row) * N + first_n + w_chunk * 8;
  const long long x_step = X_STRIDE * K, w_step = W_STRIDE * (NK ? K : N);
  const unsigned int x_target = (W_CHUNKS + swizzled<X_ROW>(x_row, x_chunk)) * 16;
  const unsigned int w_target = swizzled<W_ROW>(w_row, w_chunk) * 16;
  // What is left of the extents from this thread's next item on.
  const int x_rows = static_cast<int>(M) - x_row;
  const int w_rows =
      static_cast<int>(min(N - first_n, static_cast<long long>(BN))) - (NK ? w_row : w_chunk * 8);
  int x_left = static_cast<int>(K) - first_k - x_chunk * 8;
  int w_left = static_cast<int>(K) - first_k - (NK ? w_chunk * 8 : w_row);

  unsigned int fill = shared_base;     // the stage that is filled next
  int before_turn = own_tiles - turn;  // tiles to copy before the first of the share
  const auto advance = [&](int tiles_on) {
    x_source += tiles_on * BK;
    w_source += NK ? tiles_on * BK : tiles_on * BK * N;
    x_left -= tiles_on * BK;
    w_left -= tiles_on * BK;
  };
  const auto copy_tile = [&]() {  // the next one
    const T* source = w_source;
#pragma unroll
    for (int i = 0; i < W_COPIES; ++i) {
      const bool valid =
          NK ? w_left > 0 && w_rows > i * W_STRIDE : w_left > i * W_STRIDE && w_rows > 0;
      copy16_async(fill + w_target + i * W_STRIDE * W_ROW * 16, source, valid);
      source += w_step;
    }
    source = x_source;
#pragma unroll
    for (int i = 0; i < X_COPIES; ++i) {
      if (X_CHUNKS % THREADS == 0 || x_row + i * X_STRIDE < TOKENS) {
        copy16_async(fill + x_target + i * X_STRIDE * X_ROW * 16, source,
                     x_left > 0 && x_rows > i * X_STRIDE);
      }
      source += x_step;
    }
    advance(1);
    if (TURNED && --before_turn == 0) advance(-own_tiles);
    fill = next_stage(fill);
  };
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < own_tiles) copy_tile();
    commit_copies();  // empty groups too: the count of groups is what the waits rely on
  }
  ask_for_addends<T, EPILOGUE, TOKENS, BN, RANKS, THREADS>(rank, bias, residual, first_n, M, N);

  // Matrix i of an ldmatrix is addressed by lanes 8 i .. 8 i + 7. Weights, 16 columns x 16 k: columns
  // +0, +8, +0, +8 at k +0, +0, +8, +8. x, 8 tokens x 32 k: k +0, +8, +16, +24.
  const int matrix = lane / 8, in_matrix = lane % 8;
  float sum[NT][TT][4] = {};
  unsigned int w_stage = shared_base;
#pragma unroll 1
  for (int tile = 0; tile < own_tiles; ++tile) {
    // The tile has landed for all threads, and all have left the one before it, whose stage is filled.
    wait_copies<STAGES - 2>();
    __syncthreads();
    if (tile + STAGES - 1 < own_tiles) copy_tile();
    commit_copies();
    const unsigned int x_stage = w_stage + W_CHUNKS * 16;
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
      const int step = warp_k * STEPS + s;
      unsigned int w_fragment[2][NT][4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int k_chunk = step * 4 + half * 2;  // the first of 16 k
#pragma unroll
        for (int n = 0; n < NT; ++n) {
          if constexpr (NK) {
            const int row = warp_n + n * 16 + matrix % 2 * 8 + in_matrix;
            load_matrices<false>(w_fragment[half][n],
                                 w_stage + swizzled<W_ROW>(row, k_chunk + matrix / 2) * 16);
          } else {
            const int row = k_chunk * 8 + matrix / 2 * 8 + in_matrix;
            const int chunk = warp_n / 8 + n * 2 + matrix % 2;
            load_matrices<true>(w_fragment[half][n], w_stage + swizzled<W_ROW>(row, chunk) * 16);
          }
        }
      }
#pragma unroll
      for (int t = 0; t < TT; ++t) {
        unsigned int x_fragment[4];
        load_matrices<false>(x_fragment,
                             x_stage + swizzled<X_ROW>(t * 8 + in_matrix, step * 4 + matrix) * 16);
#pragma unroll
        for (int n = 0; n < NT; ++n) {
          multiply_add<T>(sum[n][t], w_fragment[0][n], x_fragment[0], x_fragment[1]);
          multiply_add<T>(sum[n][t], w_fragment[1][n], x_fragment[2], x_fragment[3]);
        }
      }
    }
    w_stage = next_stage(w_stage);
  }
  wait_copies<0>();
  __syncthreads();  // the stages are free

  constexpr int PITCH = part_pitch(BN);
  float* const parts = reinterpret_cast<float*>(shared);
  float* const own = parts + warp_k * TOKENS * PITCH + warp_n;
#pragma unroll
  for (int n = 0; n < NT; ++n) {
#pragma unroll
    for (int t = 0; t < TT; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int token = t * 8 + lane % 4 * 2 + i % 2;
        own[token * PITCH + n * 16 + i / 2 * 8 + lane / 4] = sum[n][t][i];
      }
    }
  }
  add_up_and_store<T, EPILOGUE, TOKENS, BN, WARPS_K, RANKS, THREADS>(
      parts, rank, bias, residual, out, first_n, M, N, alpha, beta);
}

}  // namespace solkit
