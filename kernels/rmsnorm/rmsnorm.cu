// RMSNorm: y = x / sqrt(mean(x^2) + epsilon) * weight.
//
// x, y [rows, cols], weight [cols]; dtypes fp32, fp16, bf16; fp32 inside, y rounded once. cols a
// multiple of VEC; the caller takes VEC = 16 bytes where that holds.
// Traffic: rows x cols x (1 read + 1 write) + cols. Ceiling: DRAM.
// Technique: the row is read once and stays in registers, packed, until it is written. All its loads
// are under way before the first of them is needed; the sum of squares costs shuffles and, where a row
// has several warps, one barrier. Threads of two vectors ask for the weight beside the row, before its
// first use (EARLY, and where an SM has one block) or just behind it, which saves registers; threads of
// more have no room for it and ask behind the sum.
// rmsnorm: several rows a warp, a warp or a block a row. rmsnorm_cluster: where rows are few, several
// blocks a row, which send their sums into each other's shared memory; cards without clusters
// (before CC 9.0) take the passes of rmsnorm_looped. rmsnorm_looped: rows too long for registers are
// read a second time, from L2 where they still are.
// Measured on an H200, bf16, 2026-12-01, against its own streams at the same traffic: 32768 x 8192 in
// 257.6 us (97 %), 8192 x 4096 in 32.5 us (99 %), 512 x 16384 in 9.9 us (94 %), 1 x 16384 in 1.6 us.
#include "norm.cuh"

using namespace solkit;

// One row, or ROWS of them, by ROW_THREADS threads of each of RANKS blocks. FEW: see inverse_of.
template <typename T, int RANKS, int ROW_THREADS, int ROWS, int VEC, int CHUNKS, bool FEW>
__device__ __forceinline__ void in_registers(const T* __restrict__ x, const T* __restrict__ weight,
                                             T* __restrict__ y, long long rows, long long cols,
                                             float epsilon) {
  const RowShare<ROW_THREADS, ROWS, VEC, CHUNKS, RANKS> share(rows, cols);
  const float inverse_cols = inverse_of<FEW>(cols);

  Vec<T, VEC> value[CHUNKS];
  load_row(share, x + share.start(cols), value);
  Weights<T, VEC, CHUNKS> gain(share, weight);
  share.loads_under_way(cols);
  if (FEW) gain.come_with(value[0], cols);
  float sum = 0.0f;
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    sum += sum_of_squares(value[c]);
    stay_packed(value[c]);
  }
  sum = row_sum<ROW_THREADS, RANKS>(sum);
  // A branch, never taken, between a warp's sum and its use: without, the compiler unpacked the row
  // early, and up to 184 bytes a thread spilled. Where a row has several warps, the barrier does it.
  if constexpr (!FEW && ROW_THREADS == 32 && CHUNKS > 2 && sizeof(T) < 4) {
    if (sum < 0.0f) __trap();
  }
  const float scale = rsqrtf(fmaf(sum, inverse_cols, epsilon));
  gain.begin(share);
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const Vec<T, VEC> result = scaled(value[c], gain.take(share, c), scale);
    if (share.has(c)) store(y + share.start(cols) + share.offset(c), result);
  }
}

// One row too long for registers, by THREADS threads.
template <typename T, int THREADS, int VEC>
__device__ __forceinline__ void in_passes(const T* __restrict__ x, const T* __restrict__ weight,
                                          T* __restrict__ y, long long cols, float epsilon,
                                          long long row) {
  const long long start = row * cols, first = threadIdx.x * VEC;
  float sum = 0.0f;
#pragma unroll 4
  for (long long col = first; col < cols; col += THREADS * VEC) {
    sum += sum_of_squares(load<T, VEC>(x + start + col));
  }
  sum = block_reduce<Sum, THREADS>(sum);
  const float scale = rsqrtf(sum / static_cast<float>(cols) + epsilon);
#pragma unroll 4
  for (long long col = first; col < cols; col += THREADS * VEC) {
    const Vec<T, VEC> gain = load_shared_by_blocks<T, VEC>(weight + col);
    store(y + start + col, scaled(load<T, VEC>(x + start + col), gain, scale));
  }
}

// RESIDENT blocks of it should stand on an SM at once. EARLY: the weight is waited for with the row,
// where a thread has registers for both.
template <typename T, int ROW_THREADS, int ROWS, int VEC, int CHUNKS, int RESIDENT, bool EARLY>
__global__ void __launch_bounds__(ROW_THREADS* ROWS, resident_blocks(ROW_THREADS* ROWS, RESIDENT))
    rmsnorm(const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ y,
            long long rows, long long cols, float epsilon) {
  in_registers<T, 1, ROW_THREADS, ROWS, VEC, CHUNKS, RESIDENT == 1 || (EARLY && CHUNKS <= 2)>(
      x, weight, y, rows, cols, epsilon);
}

template <typename T, int RANKS, int THREADS, int VEC, int CHUNKS>
__global__ void
#if __CUDA_ARCH__ >= 900
__cluster_dims__(RANKS, 1, 1)
#endif
    __launch_bounds__(THREADS, 1)
        rmsnorm_cluster(const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ y,
                        long long rows, long long cols, float epsilon) {
  if constexpr (HAS_CLUSTERS) {
    in_registers<T, RANKS, THREADS, 1, VEC, CHUNKS, true>(x, weight, y, rows, cols, epsilon);
  } else if (blockIdx.x < rows) {  // the first blocks take a row each, the others none
    in_passes<T, THREADS, VEC>(x, weight, y, cols, epsilon, blockIdx.x);
  }
}

template <typename T, int THREADS, int VEC>
__global__ void __launch_bounds__(THREADS)
    rmsnorm_looped(const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ y,
                   long long rows, long long cols, float epsilon) {
  in_passes<T, THREADS, VEC>(x, weight, y, cols, epsilon, blockIdx.x);
}
