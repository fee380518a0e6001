// MatMul + residual: out = x @ weight + residual, the attention output projection and its add.
//
// x [M, K], weight [K, N] stored so (kn) or as [N, K] (nk), residual and out [M, N].
// Products accumulate in fp32, the residual is added in fp32, the result is rounded once.
// Work: 2 M N K flop in the dtype's matrix pipe; each tensor crosses DRAM once.
// M any; N and K multiples of 16 bytes; all arrays 16-byte aligned. K need not fill its last tile
// (zeros are copied in); rows and columns beyond M and N read the last valid ones and are not
// stored.
//
// matmul_add_mma (fp16 from CC 7.5, bf16 from 8.0): BM x BN tile a block, WARPS_M x WARPS_N warps,
// STAGES tiles of BK in shared memory filled by cp.async, XOR-swizzled so that neither the copies
// nor ldmatrix meet a bank conflict; fragments of the next 16 k are loaded under the products of
// the present ones. Blocks walk the output in groups of GROUP tile rows, so that those resident
// together share rows of x and columns of weight in L2. The tile's residual is prefetched into L2
// while the products run; the accumulators pass through shared memory so that residual and out
// move 16 bytes a lane, whole lines a warp.
// matmul_add_ffma (fp32): BM x BN tile, TM x TN outputs a thread, x (and weight, if nk)
// transposed on the way into shared memory; the next tile is in registers under the products.
//
// Public sources that taught the design: the multistage pipeline of NVIDIA/cutlass
// (include/cutlass/gemm/threadblock/mma_multistage.h) and the grouped tile order of
// triton-lang/triton (python/tutorials/03-matrix-multiplication.py). No code was taken.
#include "mma.cuh"
#include "vec.cuh"

using namespace solkit;

// The output tile of a block, by columns inside groups of GROUP tile rows.
struct Tile {
  int m, n;
};

template <int GROUP>
__device__ __forceinline__ Tile tile_of_block(int tiles_m, int tiles_n) {
  const int id = blockIdx.x, group_size = GROUP * tiles_n;
  const int first_m = id / group_size * GROUP;
  const int height = min(tiles_m - first_m, GROUP), place = id % group_size;
  return {first_m + place % height, place / height};
}

template <typename T, bool NK, int BM, int BN, int BK, int WARPS_M, int WARPS_N, int STAGES,
          int GROUP>
__global__ void __launch_bounds__(32 * WARPS_M * WARPS_N, 1)
    matmul_add_mma(const T* __restrict__ x, const T* __restrict__ weight,
                   const T* __restrict__ residual, T* __restrict__ out, long long M, long long K,
                   long long N) {
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
      copy16_async(stage + swizzled<X_ROW>(row, x_chunk) * 16, x_source[i] + k,
                   k + x_chunk * VEC < K);
    }
#pragma unroll
    for (int i = 0; i < W_COPIES; ++i) {
      const int row = w_row + i * (THREADS / W_ROW);
      const unsigned int target = stage + (X_CHUNKS + swizzled<W_ROW>(row, w_chunk)) * 16;
      if constexpr (NK) {
        copy16_async(target, w_source[i] + k, k + w_chunk * VEC < K);
      } else {
        copy16_async(target, w_source[i] + k * N, k + row < K);
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
    commit_copies();  // empty groups too: the count of groups is what the waits rely on
  }

  // The residual's lines start on their way to L2 now; they are needed after the last product.
  constexpr int LINE_ITEMS = 128 / sizeof(T), ROW_LINES = (BN + LINE_ITEMS - 1) / LINE_ITEMS;
  for (int line = thread; line < BM * ROW_LINES; line += THREADS) {
    const long long row = tile_m + line / ROW_LINES, col = tile_n + line % ROW_LINES * LINE_ITEMS;
    if (row < M && col < N) {
      asm volatile("prefetch.global.L2 [%0];" ::"l"(residual + row * N + col));
    }
  }

  float sum[MT][NT][4] = {};
  wait_copies<STAGES - 2>();
  __syncthreads();
  load_fragments(0, 0, 0);
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
      if (step == STEPS - 1) {
        // Tile k_tile + 1 has landed for all threads, and all are done reading tile k_tile: its
        // last fragments are in registers. The loads below past the last tile are never used.
        wait_copies<STAGES - 2>();
        __syncthreads();
        load_fragments((step + 1) % 2, k_tile + 1, 0);
      } else {
        load_fragments((step + 1) % 2, k_tile, step + 1);
      }
      if (step == 0) {
        // Into the stage of tile k_tile - 1, which everyone left before the barrier above.
        if (k_tile + STAGES - 1 < k_tiles) copy_tile(k_tile + STAGES - 1);
        commit_copies();
      }
#pragma unroll
      for (int m = 0; m < MT; ++m) {
#pragma unroll
        for (int n = 0; n < NT; ++n) {
          multiply_add<T>(sum[m][n], x_fragment[step % 2][m],
                          w_fragment[step % 2][n / 2][n % 2 * 2],
                          w_fragment[step % 2][n / 2][n % 2 * 2 + 1]);
        }
      }
    }
  }
  wait_copies<0>();
  __syncthreads();  // the stages are free: each warp takes a slice of them for its own use

  // 16 rows of the warp's part at a time, padded by 8 floats so that the fragments' 8-byte stores
  // meet no bank conflict.
  constexpr int PITCH = WN + 8;
  static_assert(WARPS_M * WARPS_N * 16 * PITCH * 4 <= STAGES * STAGE_BYTES, "slices fit");
  float* slice = reinterpret_cast<float*>(shared) + warp * 16 * PITCH;
#pragma unroll
  for (int m = 0; m < MT; ++m) {
#pragma unroll
    for (int n = 0; n < NT; ++n) {
      const int row = lane / 4, col = n * 8 + lane % 4 * 2;
      *reinterpret_cast<float2*>(slice + row * PITCH + col) =
          make_float2(sum[m][n][0], sum[m][n][1]);
      *reinterpret_cast<float2*>(slice + (row + 8) * PITCH + col) =
          make_float2(sum[m][n][2], sum[m][n][3]);
    }
    __syncwarp();
    constexpr int ROW_CHUNKS = WN / VEC, CHUNKS = 16 * ROW_CHUNKS;
#pragma unroll
    for (int c = 0; c < (CHUNKS + 31) / 32; ++c) {
      const int chunk = c * 32 + lane, row = chunk / ROW_CHUNKS, col = chunk % ROW_CHUNKS * VEC;
      const long long global_row = tile_m + warp_m + m * 16 + row;
      const long long global_col = tile_n + warp_n + col;
      if (global_row < M && global_col < N && chunk < CHUNKS) {
        const long long place = global_row * N + global_col;
        Vec<T, VEC> value = load_stream<T, VEC>(residual + place);
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
          value.item[j] = from_float<T>(slice[row * PITCH + col + j] + to_float(value.item[j]));
        }
        store<T, VEC>(out + place, value);
      }
    }
    __syncwarp();  // the slice is read before the next 16 rows overwrite it
  }
}

template <bool NK, int BM, int BN, int BK, int TM, int TN, int GROUP>
__global__ void __launch_bounds__((BM / TM) * (BN / TN))
    matmul_add_ffma(const float* __restrict__ x, const float* __restrict__ weight,
                    const float* __restrict__ residual, float* __restrict__ out, long long M,
                    long long K, long long N) {
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

#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const long long row = tile_m + thread_m + i / 4 * (BM * 4 / TM) + i % 4;
    if (row >= M) continue;
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
      const long long col = tile_n + thread_n + j / 4 * (BN * 4 / TN);
      if (col >= N) continue;
      Vec<float, 4> value = load_stream<float, 4>(residual + row * N + col);
#pragma unroll
      for (int q = 0; q < 4; ++q) value.item[q] += sum[i][j + q];
      store<float, 4>(out + row * N + col, value);
    }
  }
}
