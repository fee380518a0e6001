// Products of few rows: out[M, N] = epilogue(x[M, K] @ weight), M up to 64, fp16 and bf16.
//
// weight [K, N] (kn) or [N, K] (nk) is the traffic and is read once; x is small and comes from L2. K and
// N are multiples of 8, all arrays 16-byte aligned. Sums are fp32, rounded once. In the names below a
// row of x is a token, a column is one of the N outputs of a token.
//
// matmul_gemv_nk: SHARERS warps take COLS columns; a warp reads 256 neighbouring k of each at once, DEPTH
//   such pieces before the first product. fp32 multiply-adds.
// matmul_gemv_kn: a thread takes 8 neighbouring columns and reads 8 rows of weight before the first
//   product. COL_LANES lanes lie along the columns, the others of a warp, the warps of a block and the
//   RANKS blocks of a cluster share K. fp32 multiply-adds.
// matmul_swapped: tensor cores. Columns are the 16 rows of mma.m16n8k16 and tokens its 8 columns, so 8
//   tokens fill it. A block has BN columns, tiles of BK pass through a ring of STAGES in shared memory.
//   WARPS_N warps lie along the columns, WARPS_K share the k of a tile, the RANKS blocks of a cluster
//   share the tiles. TURNED: neighbours in the grid begin at different tiles of their share, so that
//   they don't ask for the same lines of x at once.
// RESIDENT blocks of gemv are to stand on an SM. It must leave a thread the registers to have all its
// loads under way at once: with none said, the compiler puts loads off, to need fewer registers.
// TOKENS is M or more. Where RANKS is more than 1 the launch is in clusters of RANKS blocks (CC 9.0).
// At the read ceiling of an H200 there are about 13 instructions of a lane for a weight: multiply-adds
// take 1 for each token and 1 to unpack it, so they end with 4 tokens or 8, and tensor cores don't.
#pragma once

#include "mma.cuh"
#include "reduce.cuh"
#include "split_sums.cuh"

namespace solkit {

// 8 weights, read once. ALONE: they take no room in L1.
template <bool ALONE, typename T>
__device__ __forceinline__ Vec<T, 8> load_weights(const T* source) {
  if constexpr (ALONE) {
    return load_stream_alone<T, 8>(source);
  } else {
    return load_stream<T, 8>(source);
  }
}

template <typename T>
__device__ __forceinline__ Vec<T, 8> zero_unless(bool valid, Vec<T, 8> items) {
  auto& words = reinterpret_cast<unsigned int (&)[4]>(items);
#pragma unroll
  for (int w = 0; w < 4; ++w) words[w] = valid ? words[w] : 0;
  return items;
}

// A bool as a type, for a lambda.
template <bool V>
struct Known {
  static constexpr bool VALUE = V;
};

template <typename T, int TOKENS, int COLS, int DEPTH, int WARPS, int SHARERS, int RESIDENT,
          bool ALONE, typename EPILOGUE>
__global__ void __launch_bounds__(32 * WARPS, RESIDENT)
    matmul_gemv_nk(const T* __restrict__ x, const T* __restrict__ weight,
                   const T* __restrict__ bias, const T* __restrict__ residual, T* __restrict__ out,
                   long long M, long long K, long long N, float alpha, float beta) {
  constexpr int PIECE = 32 * 8, GROUPS = WARPS / SHARERS, SUMS = TOKENS * COLS;
  static_assert(SUMS <= 32 && WARPS % SHARERS == 0, "a lane finishes one sum");
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int group = warp / SHARERS, sharer = warp % SHARERS;
  const long long first_n = (static_cast<long long>(blockIdx.x) * GROUPS + group) * COLS;

  // Columns beyond N and tokens beyond M are the last ones again, and not stored.
  const T *source[COLS], *tokens[TOKENS];
#pragma unroll
  for (int c = 0; c < COLS; ++c) source[c] = weight + min(first_n + c, N - 1) * K;
#pragma unroll
  for (int t = 0; t < TOKENS; ++t) tokens[t] = x + min(static_cast<long long>(t), M - 1) * K;

  // Lane token * COLS + c finishes that sum, in one of the warps that share it.
  const int token = lane / COLS;
  const long long n = first_n + lane % COLS;
  const bool finishes = sharer == 0 && token < M && token < TOKENS && n < N;
  float bias_item = 0.0f, residual_item = 0.0f;
  if constexpr (EPILOGUE::HAS_BIAS) {
    if (finishes) bias_item = to_float(bias[n]);
  }
  if constexpr (EPILOGUE::HAS_RESIDUAL) {
    if (finishes) residual_item = to_float(residual[token * N + n]);
  }

  float sum[TOKENS][COLS] = {};
  const int depth = static_cast<int>(K);
  // DEPTH pieces from k on. WHOLE: none of them reaches beyond K; there the last weights are read again
  // by an ordinary load, and count as zeros.
  const auto multiply = [&](int k, auto whole) {
    constexpr bool WHOLE = decltype(whole)::VALUE;
    const int from = k + lane * 8;
    const auto place = [&](int d) {
      return WHOLE ? from + d * PIECE : min(from + d * PIECE, depth - 8);
    };
    Vec<T, 8> weights[DEPTH][COLS];
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
#pragma unroll
      for (int c = 0; c < COLS; ++c) weights[d][c] = load_weights<ALONE>(source[c] + place(d));
    }
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
      const bool valid = WHOLE || from + d * PIECE < depth;
      Vec<float, 8> wide[COLS];
#pragma unroll
      for (int c = 0; c < COLS; ++c) wide[c] = floats(zero_unless(valid, weights[d][c]));
#pragma unroll
      for (int t = 0; t < TOKENS; ++t) {
        const Vec<T, 8> items = load_shared_by_blocks<T, 8>(tokens[t] + place(d));
        const Vec<float, 8> factor = floats(zero_unless(valid, items));
#pragma unroll
        for (int c = 0; c < COLS; ++c) {
          float part = 0.0f;  // a chain of its own for each piece
#pragma unroll
          for (int j = 0; j < 8; ++j) part = fmaf(factor.item[j], wide[c].item[j], part);
          sum[t][c] += part;
        }
      }
    }
  };
  constexpr int STRIDE = DEPTH * PIECE;
  int k = sharer * STRIDE;
#pragma unroll 1
  for (; k + STRIDE <= depth; k += SHARERS * STRIDE) multiply(k, Known<true>{});
  if (k < depth) multiply(k, Known<false>{});

  float own = 0.0f;
#pragma unroll
  for (int i = 0; i < SUMS; ++i) {
    const float total = warp_reduce<Sum>(sum[i / COLS][i % COLS]);
    if (lane == i) own = total;
  }
  if constexpr (SHARERS > 1) {
    __shared__ float parts[WARPS][SUMS];
    if (lane < SUMS) parts[warp][lane] = own;
    __syncthreads();
    if (finishes) {
#pragma unroll
      for (int s = 1; s < SHARERS; ++s) own += parts[warp + s][lane];
    }
  }
  if (finishes) {
    out[token * N + n] =
        from_float<T>(EPILOGUE::template apply<T>(own, bias_item, residual_item, alpha, beta));
  }
}

template <typename T, int TOKENS, int COL_LANES, int WARPS, int RANKS, int RESIDENT, bool ALONE,
          typename EPILOGUE>
__global__ void __launch_bounds__(32 * WARPS, RESIDENT)
    matmul_gemv_kn(const T* __restrict__ x, const T* __restrict__ weight,
                   const T* __restrict__ bias, const T* __restrict__ residual, T* __restrict__ out,
                   long long M, long long K, long long N, float alpha, float beta) {
  constexpr int BN = COL_LANES * 8, SHARERS = 32 / COL_LANES, THREADS = 32 * WARPS;
  constexpr int PITCH = part_pitch(BN);
  extern __shared__ uint4 shared[];  // [WARPS][TOKENS][PITCH] floats
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int rank = RANKS > 1 ? cluster_rank() : 0, sharer = lane / COL_LANES;
  const long long first_n = static_cast<long long>(blockIdx.x / RANKS) * BN;
  const int column = lane % COL_LANES * 8, last_token = static_cast<int>(M) - 1;
  ask_for_addends<T, EPILOGUE, TOKENS, BN, RANKS, THREADS>(rank, bias, residual, first_n, M, N);

  // Columns beyond N and tokens beyond M are the last ones again, and not stored.
  const T* const source = weight + min(first_n + column, N - 8);
  float sum[TOKENS][8] = {};
  const int pieces = static_cast<int>(K / 8), end = first_of_rank(pieces, rank + 1, RANKS);
  for (int piece = first_of_rank(pieces, rank, RANKS) + warp * SHARERS + sharer; piece < end;
       piece += WARPS * SHARERS) {
    Vec<T, 8> weights[8], items[TOKENS];
#pragma unroll
    for (int k = 0; k < 8; ++k) weights[k] = load_weights<ALONE>(source + (piece * 8ll + k) * N);
#pragma unroll
    for (int t = 0; t < TOKENS; ++t) {
      items[t] = load_shared_by_blocks<T, 8>(x + min(t, last_token) * K + piece * 8);
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const Vec<float, 8> wide = floats(weights[k]);
#pragma unroll
      for (int t = 0; t < TOKENS; ++t) {
        const float factor = to_float(items[t].item[k]);
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[t][j] = fmaf(factor, wide.item[j], sum[t][j]);
      }
    }
  }
  __syncwarp();

  float* const parts = reinterpret_cast<float*>(shared);
#pragma unroll
  for (int t = 0; t < TOKENS; ++t) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
#pragma unroll
      for (int distance = COL_LANES; distance < 32; distance *= 2) {
        sum[t][j] += __shfl_xor_sync(0xffffffffu, sum[t][j], distance);
      }
    }
    if (sharer == 0) {
      float4* const target =
          reinterpret_cast<float4*>(parts + (warp * TOKENS + t) * PITCH + column);
      target[0] = make_float4(sum[t][0], sum[t][1], sum[t][2], sum[t][3]);
      target[1] = make_float4(sum[t][4], sum[t][5], sum[t][6], sum[t][7]);
    }
  }
  add_up_and_store<T, EPILOGUE, TOKENS, BN, WARPS, RANKS, THREADS>(parts, rank, bias, residual, out,
                                                                   first_n, M, N, alpha, beta);
}

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
