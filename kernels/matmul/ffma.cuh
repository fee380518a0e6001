// A product of fp32 matrices by fused multiply-adds, on every card.
//
// BM x BN tile a block, TM x TN outputs a thread, x (and weight, if nk) transposed on the way into
// shared memory; the next tile is in registers under the products. The epilogue moves 16 bytes a
// thread, with its columns' bias in registers.
// M any; N and K multiples of 4. K need not fill its last tile; rows and columns beyond M and N read
// the last valid ones and are not stored.
#pragma once

#include "epilogue.cuh"
#include "tile_order.cuh"
#include "vec.cuh"

namespace solkit {

template <bool NK, int BM, int BN, int BK, int TM, int TN, int GROUP, typename EPILOGUE>
__global__ void __launch_bounds__((BM / TM) * (BN / TN))
    matmul_ffma(const float* __restrict__ x, const float* __restrict__ weight,
                const float* __restrict__ bias, const float* __restrict__ residual,
                float* __restrict__ out, long long M, long long K, long long N, float alpha,
                float beta) {
  constexpr int THREADS_N = BN / TN, THREADS = BM / TM * THREADS_N;
  static_assert(TM % 4 == 0 && TN % 4 == 0, "whole 16-byte pieces of outputs");
  // A thread's TM x TN outputs are blocks of 4 x 4, BM * 4 / TM rows and BN * 4 / TN columns apart:
  // a quarter warp then reads 128 neighbouring bytes of the weight tile.
  constexpr int X_PITCH = BM + 4, W_PITCH = BN + 4;  // tiles are [k][m] and [k][n]
  constexpr int K_CHUNKS = BK / 4;
  constexpr int X_COPIES = BM * K_CHUNKS / THREADS, W_COPIES = BN * K_CHUNKS / THREADS;
  static_assert(X_COPIES * THREADS == BM * K_CHUNKS && W_COPIES * THREADS == BN * K_CHUNKS,
                "the same copies a thread");
  __shared__ __align__(16) float x_tile[2][BK][X_PITCH];
  __shared__ __align__(16) float w_tile[2][BK][W_PITCH];

  const int thread = threadIdx.x;
  const int thread_m = thread / THREADS_N * 4, thread_n = thread % THREADS_N * 4;
  const Tile tile = tile_of_block<GROUP>(static_cast<int>((M + BM - 1) / BM),
                                         static_cast<int>((N + BN - 1) / BN));
  const long long tile_m = static_cast<long long>(tile.m) * BM;
  const long long tile_n = static_cast<long long>(tile.n) * BN;

  float4 from_x[X_COPIES], from_w[W_COPIES];
  auto load_tile = [&](int k_tile) {  // global memory to registers; zeros beyond K
    const long long k_first = static_cast<long long>(k_tile) * BK;
#pragma unroll
    for (int i = 0; i < X_COPIES; ++i) {
      const int piece = thread + i * THREADS;
      const long long k = k_first + piece % K_CHUNKS * 4;
      const long long row = min(tile_m + piece / K_CHUNKS, M - 1);
      from_x[i] = make_float4(0, 0, 0, 0);
      if (k < K) from_x[i] = __ldg(reinterpret_cast<const float4*>(x + row * K + k));
    }
#pragma unroll
    for (int i = 0; i < W_COPIES; ++i) {
      const int piece = thread + i * THREADS;
      from_w[i] = make_float4(0, 0, 0, 0);
      if constexpr (NK) {
        const long long k = k_first + piece % K_CHUNKS * 4;
        const long long row = min(tile_n + piece / K_CHUNKS, N - 1);
        if (k < K) from_w[i] = __ldg(reinterpret_cast<const float4*>(weight + row * K + k));
      } else {
        const long long k = k_first + piece / (BN / 4);
        const long long col = min(tile_n + piece % (BN / 4) * 4, N - 4);
        if (k < K) from_w[i] = __ldg(reinterpret_cast<const float4*>(weight + k * N + col));
      }
    }
  };
  auto store_tile = [&](int buffer) {  // registers to shared memory
#pragma unroll
    for (int i = 0; i < X_COPIES; ++i) {
      const int piece = thread + i * THREADS, k = piece % K_CHUNKS * 4, row = piece / K_CHUNKS;
      x_tile[buffer][k + 0][row] = from_x[i].x;
      x_tile[buffer][k + 1][row] = from_x[i].y;
      x_tile[buffer][k + 2][row] = from_x[i].z;
      x_tile[buffer][k + 3][row] = from_x[i].w;
    }
#pragma unroll
    for (int i = 0; i < W_COPIES; ++i) {
      const int piece = thread + i * THREADS;
      if constexpr (NK) {
        const int k = piece % K_CHUNKS * 4, row = piece / K_CHUNKS;
        w_tile[buffer][k + 0][row] = from_w[i].x;
        w_tile[buffer][k + 1][row] = from_w[i].y;
        w_tile[buffer][k + 2][row] = from_w[i].z;
        w_tile[buffer][k + 3][row] = from_w[i].w;
      } else {
        const int k = piece / (BN / 4), col = piece % (BN / 4) * 4;
        *reinterpret_cast<float4*>(&w_tile[buffer][k][col]) = from_w[i];
      }
    }
  };

  float sum[TM][TN] = {};
  const int k_tiles = static_cast<int>((K + BK - 1) / BK);
  load_tile(0);
  store_tile(0);
  __syncthreads();
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    const int buffer = k_tile % 2;
    const bool more = k_tile + 1 < k_tiles;
    if (more) load_tile(k_tile + 1);
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      float a[TM], b[TN];
#pragma unroll
      for (int i = 0; i < TM; i += 4) {
        *reinterpret_cast<float4*>(a + i) =
            *reinterpret_cast<const float4*>(&x_tile[buffer][k][thread_m + i / 4 * (BM * 4 / TM)]);
      }
#pragma unroll
      for (int j = 0; j < TN; j += 4) {
        *reinterpret_cast<float4*>(b + j) =
            *reinterpret_cast<const float4*>(&w_tile[buffer][k][thread_n + j / 4 * (BN * 4 / TN)]);
      }
#pragma unroll
      for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j) sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
      }
    }
    // The other buffer was last read before the barrier that ended the previous turn.
    if (more) store_tile(1 - buffer);
    __syncthreads();
  }

  Vec<float, 4> shift[TN / 4] = {};
  if constexpr (EPILOGUE::HAS_BIAS) {
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
      const long long col = tile_n + thread_n + j / 4 * (BN * 4 / TN);
      if (col < N) shift[j / 4] = load_shared_by_blocks<float, 4>(bias + col);
    }
  }
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const long long row = tile_m + thread_m + i / 4 * (BM * 4 / TM) + i % 4;
    if (row >= M) continue;
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
      const long long col = tile_n + thread_n + j / 4 * (BN * 4 / TN);
      if (col >= N) continue;
      Vec<float, 4> value = {};
      if constexpr (EPILOGUE::HAS_RESIDUAL) value = load_stream<float, 4>(residual + row * N + col);
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        value.item[q] = EPILOGUE::template apply<float>(sum[i][j + q], shift[j / 4].item[q],
                                                        value.item[q], alpha, beta);
      }
      store<float, 4>(out + row * N + col, value);
    }
  }
}

}  // namespace solkit
