// A product of 16-bit matrices by mma.sync: fp16 from CC 7.5 on, bf16 from 8.0 on.
//
// BM x BN tile a block, WARPS_M x WARPS_N warps, STAGES tiles of BK in shared memory filled by
// cp.async, XOR-swizzled so that neither the copies nor ldmatrix meet a bank conflict; fragments of
// the next 16 k are loaded under the products of the present ones. The tile's residual is prefetched
// into L2 while the products run; the accumulators pass through shared memory so that residual and
// out move 16 bytes a lane, whole lines a warp, and a lane keeps its columns' bias in registers.
// M any; N and K multiples of 8. K need not fill its last tile (zeros are copied in); rows and
// columns beyond M and N read the last valid ones and are not stored.
// OLD: by the instructions of cards below CC 8.0 alone, so that these can be tried on newer ones.
#pragma once

#include "epilogue.cuh"
#include "mma.cuh"
#include "tile_order.cuh"
#include "vec.cuh"

namespace solkit {

template <typename T, bool NK, int BM, int BN, int BK, int WARPS_M, int WARPS_N, int STAGES,
          int GROUP, typename EPILOGUE, bool OLD = OLD_CARD>
__global__ void __launch_bounds__(32 * WARPS_M * WARPS_N, 1)
    matmul_mma(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
               const T* __restrict__ residual, T* __restrict__ out, long long M, long long K,
               long long N, float alpha, float beta) {
  constexpr int THREADS = 32 * WARPS_M * WARPS_N, VEC = 16 / sizeof(T);
  constexpr int WM = BM / WARPS_M, WN = BN / WARPS_N;  // a warp's part of the tile
  constexpr int MT = WM / 16, NT = WN / 8, STEPS = BK / 16;
  static_assert(WM % 16 == 0 && WN % 16 == 0 && BK % 32 == 0, "whole fragments, two a step");
  // Chunks of 16 bytes: x tile [BM][BK], weight tile [BN][BK] (nk) or [BK][BN] (kn).
  constexpr int X_ROW = BK / VEC, W_ROW = NK ? BK / VEC : BN / VEC;
  constexpr int X_CHUNKS = BM * X_ROW, W_CHUNKS = BN * BK / VEC;
  constexpr int X_COPIES = X_CHUNKS / THREADS, W_COPIES = W_CHUNKS / THREADS;
  static_assert(X_CHUNKS % THREADS == 0 && W_CHUNKS % THREADS == 0, "the same copies a thread");
  static_assert(THREADS % X_ROW == 0 && THREADS % W_ROW == 0, "a thread keeps its chunk column");
  constexpr unsigned int STAGE_BYTES = (X_CHUNKS + W_CHUNKS) * 16;

  extern __shared__ uint4 shared[];
  const unsigned int shared_base = shared_address(shared);
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int warp_m = warp / WARPS_N * WM, warp_n = warp % WARPS_N * WN;
  const Tile tile = tile_of_block<GROUP>(static_cast<int>((M + BM - 1) / BM),
                                         static_cast<int>((N + BN - 1) / BN));
  const long long tile_m = static_cast<long long>(tile.m) * BM;
  const long long tile_n = static_cast<long long>(tile.n) * BN;

  // What this thread copies: one chunk column, several rows. Rows beyond M or N are clamped to the
  // last one: what they yield is never stored.
  const int x_chunk = thread % X_ROW, x_row = thread / X_ROW;
  const int w_chunk = thread % W_ROW, w_row = thread / W_ROW;
  const T* x_source[X_COPIES];
  const T* w_source[W_COPIES];
#pragma unroll
  for (int i = 0; i < X_COPIES; ++i) {
    const long long row = min(tile_m + x_row + i * (THREADS / X_ROW), M - 1);
    x_source[i] = x + row * K + x_chunk * VEC;
  }
#pragma unroll
  for (int i = 0; i < W_COPIES; ++i) {
    const int row = w_row + i * (THREADS / W_ROW);
    if constexpr (NK) {
      w_source[i] = weight + min(tile_n + row, N - 1) * K + w_chunk * VEC;
    } else {
      w_source[i] = weight + row * N + min(tile_n + w_chunk * VEC, N - VEC);
    }
  }

  auto copy_tile = [&](int k_tile) {
    const unsigned int stage = shared_base + k_tile % STAGES * STAGE_BYTES;
    const long long k = static_cast<long long>(k_tile) * BK;
#pragma unroll
    for (int i = 0; i < X_COPIES; ++i) {
      const int row = x_row + i * (THREADS / X_ROW);
      copy16_async<OLD>(stage + swizzled<X_ROW>(row, x_chunk) * 16, x_source[i] + k,
                        k + x_chunk * VEC < K);
    }
#pragma unroll
    for (int i = 0; i < W_COPIES; ++i) {
      const int row = w_row + i * (THREADS / W_ROW);
      const unsigned int target = stage + (X_CHUNKS + swizzled<W_ROW>(row, w_chunk)) * 16;
      if constexpr (NK) {
        copy16_async<OLD>(target, w_source[i] + k, k + w_chunk * VEC < K);
      } else {
        copy16_async<OLD>(target, w_source[i] + k * N, k + row < K);
      }
    }
  };

  // Fragments of 16 k: matrix i of an ldmatrix is addressed by lanes 8 i .. 8 i + 7.
  // x: rows +0, +8, +0, +8 at k +0, +0, +8, +8. weight: k +0, +8, +0, +8 at columns +0, +0, +8, +8.
  const int matrix = lane / 8, in_matrix = lane % 8;
  unsigned int x_fragment[2][MT][4], w_fragment[2][NT / 2][4];
  auto load_fragments = [&](int buffer, int k_tile, int step) {
    const unsigned int stage = shared_base + k_tile % STAGES * STAGE_BYTES;
#pragma unroll
    for (int m = 0; m < MT; ++m) {
      const int row = warp_m + m * 16 + matrix % 2 * 8 + in_matrix;
      load_matrices<false>(x_fragment[buffer][m],
                           stage + swizzled<X_ROW>(row, step * 2 + matrix / 2) * 16);
    }
    const unsigned int w_stage = stage + X_CHUNKS * 16;
#pragma unroll
    for (int n = 0; n < NT / 2; ++n) {
      if constexpr (NK) {
        const int row = warp_n + n * 16 + matrix / 2 * 8 + in_matrix;
        load_matrices<false>(w_fragment[buffer][n],
                             w_stage + swizzled<W_ROW>(row, step * 2 + matrix % 2) * 16);
      } else {
        const int row = step * 16 + matrix % 2 * 8 + in_matrix;
        const int chunk = warp_n / 8 + n * 2 + matrix / 2;
        load_matrices<true>(w_fragment[buffer][n], w_stage + swizzled<W_ROW>(row, chunk) * 16);
      }
    }
  };

  const int k_tiles = static_cast<int>((K + BK - 1) / BK);
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < k_tiles) copy_tile(s);
    commit_copies<OLD>();  // empty groups too: the count of groups is what the waits rely on
  }

  // The residual's lines start on their way to L2 now; they are needed after the last product.
  if constexpr (EPILOGUE::HAS_RESIDUAL) {
    constexpr int LINE_ITEMS = 128 / sizeof(T), ROW_LINES = (BN + LINE_ITEMS - 1) / LINE_ITEMS;
    for (int line = thread; line < BM * ROW_LINES; line += THREADS) {
      const long long row = tile_m + line / ROW_LINES, col = tile_n + line % ROW_LINES * LINE_ITEMS;
      if (row < M && col < N) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(residual + row * N + col));
      }
    }
  }

  float sum[MT][NT][4] = {};
  wait_copies<STAGES - 2, OLD>();
  __syncthreads();
  load_fragments(0, 0, 0);
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
      if (step == STEPS - 1) {
        // Tile k_tile + 1 has landed for all threads, and all are done reading tile k_tile: its
        // last fragments are in registers. The loads below past the last tile are never used.
        wait_copies<STAGES - 2, OLD>();
        __syncthreads();
        load_fragments((step + 1) % 2, k_tile + 1, 0);
      } else {
        load_fragments((step + 1) % 2, k_tile, step + 1);
      }
      if (step == 0) {
        // Into the stage of tile k_tile - 1, which everyone left before the barrier above.
        if (k_tile + STAGES - 1 < k_tiles) copy_tile(k_tile + STAGES - 1);
        commit_copies<OLD>();
      }
#pragma unroll
      for (int m = 0; m < MT; ++m) {
#pragma unroll
        for (int n = 0; n < NT; ++n) {
          multiply_add<T, OLD>(sum[m][n], x_fragment[step % 2][m],
                               w_fragment[step % 2][n / 2][n % 2 * 2],
                               w_fragment[step % 2][n / 2][n % 2 * 2 + 1]);
        }
      }
    }
  }
  wait_copies<0, OLD>();
  __syncthreads();  // the stages are free: each warp takes a slice of them for its own use

  // 16 rows of the warp's part at a time, padded by 8 floats so that the fragments' 8-byte stores
  // meet no bank conflict.
  constexpr int PITCH = WN + 8;
  static_assert(WARPS_M * WARPS_N * 16 * PITCH * 4 <= STAGES * STAGE_BYTES, "slices fit");
  float* slice = reinterpret_cast<float*>(shared) + warp * 16 * PITCH;
  constexpr int ROW_CHUNKS = WN / VEC, CHUNKS = 16 * ROW_CHUNKS;
  static_assert(32 % ROW_CHUNKS == 0, "a lane keeps its columns");
  const int col = lane % ROW_CHUNKS * VEC;
  const long long global_col = tile_n + warp_n + col;
  Vec<float, VEC> shift = {};
  if constexpr (EPILOGUE::HAS_BIAS) {
    if (global_col < N) shift = floats(load_shared_by_blocks<T, VEC>(bias + global_col));
  }
#pragma unroll
  for (int m = 0; m < MT; ++m) {
#pragma unroll
    for (int n = 0; n < NT; ++n) {
      const int row = lane / 4, pair = n * 8 + lane % 4 * 2;
      *reinterpret_cast<float2*>(slice + row * PITCH + pair) =
          make_float2(sum[m][n][0], sum[m][n][1]);
      *reinterpret_cast<float2*>(slice + (row + 8) * PITCH + pair) =
          make_float2(sum[m][n][2], sum[m][n][3]);
    }
    __syncwarp();
#pragma unroll
    for (int c = 0; c < (CHUNKS + 31) / 32; ++c) {
      const int chunk = c * 32 + lane, row = chunk / ROW_CHUNKS;
      const long long global_row = tile_m + warp_m + m * 16 + row;
      if (global_row < M && global_col < N && chunk < CHUNKS) {
        const long long place = global_row * N + global_col;
        Vec<T, VEC> value = {};
        if constexpr (EPILOGUE::HAS_RESIDUAL) value = load_stream<T, VEC>(residual + place);
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
          value.item[j] = from_float<T>(EPILOGUE::template apply<T>(
              slice[row * PITCH + col + j], shift.item[j], to_float(value.item[j]), alpha, beta));
        }
        store<T, VEC>(out + place, value);
      }
    }
    __syncwarp();  // the slice is read before the next 16 rows overwrite it
  }
}

}  // namespace solkit
