// Residual add + RMSNorm: h = round(x + residual), y = h / sqrt(mean(h^2) + epsilon) * weight.
//
// x, residual, y, h [rows, cols], weight [cols]; dtypes fp32, fp16, bf16. h is rounded to the
// dtype BEFORE the norm (the next layer reads that h); everything else is fp32, y is rounded once.
// cols a multiple of VEC; the caller takes VEC = 16 bytes where that holds.
// Traffic: rows x cols x (2 reads + 2 writes) + cols. Ceiling: DRAM.
// Technique: the row of h stays in registers, packed. All loads of x and residual are under way before
// the first sum, or, of many rows, one chunk's at a time, so that reads and writes of all blocks mix
// evenly; h is written as soon as it is known, while the sum of squares still waits for shuffles and,
// where a row has several warps, one barrier.
// add_rmsnorm: several rows a warp, a warp or a block a row. add_rmsnorm_cluster: where rows are few,
// and some thousands of long ones, several blocks a row, which send their sums into each other's
// shared memory; cards without clusters (before CC 9.0) take the passes of add_rmsnorm_looped.
// add_rmsnorm_looped: rows too long for registers; h is written, then read again (mostly from L2).
// Measured on an H200, bf16, 2026-12-01, against its own streams at the same traffic: 32768 x 8192 in
// 507.6 us (99 %), 8192 x 2560 in 41.0 us (98 %), 1 x 16384 in 1.8 us.
#include "norm.cuh"

using namespace solkit;

// One row, or ROWS of them, by ROW_THREADS threads of each of RANKS blocks. FEW: see inverse_of.
template <typename T, int RANKS, int ROW_THREADS, int ROWS, int VEC, int CHUNKS, int AT_ONCE,
          bool FEW>
__device__ __forceinline__ void in_registers(const T* __restrict__ x,
                                             const T* __restrict__ residual,
                                             const T* __restrict__ weight, T* __restrict__ y, T* h,
                                             long long rows, long long cols, float epsilon) {
  const RowShare<ROW_THREADS, ROWS, VEC, CHUNKS, RANKS> share(rows, cols);
  const long long start = share.start(cols);
  const float inverse_cols = inverse_of<FEW>(cols);

  SummedRow<T, VEC, CHUNKS, AT_ONCE> row(share, x + start, residual + start);
  Weights<T, VEC, CHUNKS> gain(share, weight);
  share.loads_under_way(cols);
  float sum = 0.0f;
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    row.sum(share, c, cols);
    if (share.has(c)) store(h + start + share.offset(c), row.h[c]);
    sum += sum_of_squares(row.h[c]);
    stay_packed(row.h[c]);
  }
  if (FEW) gain.come_with(sum, cols);
  sum = row_sum<ROW_THREADS, RANKS>(sum);
  const float scale = rsqrtf(fmaf(sum, inverse_cols, epsilon));
  gain.begin(share);
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const Vec<T, VEC> result = scaled(row.h[c], gain.take(share, c), scale);
    if (share.has(c)) store(y + start + share.offset(c), result);
  }
}

// One row too long for registers, by THREADS threads.
template <typename T, int THREADS, int VEC>
__device__ __forceinline__ void in_passes(const T* __restrict__ x, const T* __restrict__ residual,
                                          const T* __restrict__ weight, T* __restrict__ y, T* h,
                                          long long cols, float epsilon, long long row) {
  const long long start = row * cols, first = threadIdx.x * VEC;
  float sum = 0.0f;
#pragma unroll 2
  for (long long col = first; col < cols; col += THREADS * VEC) {
    const Vec<T, VEC> value = rounded_sum(load_stream<T, VEC>(x + start + col),
                                          load_stream<T, VEC>(residual + start + col));
    store(h + start + col, value);
    sum += sum_of_squares(value);
  }
  sum = block_reduce<Sum, THREADS>(sum);
  const float scale = rsqrtf(sum / static_cast<float>(cols) + epsilon);
#pragma unroll 4
  for (long long col = first; col < cols; col += THREADS * VEC) {
    // Each thread reads back only what it wrote itself, so no barrier is needed for h.
    const Vec<T, VEC> gain = load_shared_by_blocks<T, VEC>(weight + col);
    store(y + start + col, scaled(load<T, VEC>(h + start + col), gain, scale));
  }
}

// Four chunks one by one take 47 registers on CC 9.0; compiled for 10.0, 48 are too few without spills.
#if __CUDA_ARCH__ >= 1000 && __CUDA_ARCH__ < 1200
constexpr int FEWER_BLOCKS = 1;
#else
constexpr int FEWER_BLOCKS = 0;
#endif

// RESIDENT blocks of it should stand on an SM at once; AT_ONCE chunks of x and of residual are under
// way together.
template <typename T, int ROW_THREADS, int ROWS, int VEC, int CHUNKS, int RESIDENT, int AT_ONCE>
__global__ void __launch_bounds__(ROW_THREADS* ROWS,
                                  resident_blocks(ROW_THREADS* ROWS, CHUNKS - AT_ONCE > 2
                                                                         ? RESIDENT - FEWER_BLOCKS
                                                                         : RESIDENT))
    add_rmsnorm(const T* __restrict__ x, const T* __restrict__ residual,
                const T* __restrict__ weight, T* __restrict__ y, T* h, long long rows,
                long long cols, float epsilon) {
  in_registers<T, 1, ROW_THREADS, ROWS, VEC, CHUNKS, AT_ONCE, RESIDENT == 1>(
      x, residual, weight, y, h, rows, cols, epsilon);
}

template <typename T, int RANKS, int THREADS, int VEC, int CHUNKS>
__global__ void
#if __CUDA_ARCH__ >= 900
__cluster_dims__(RANKS, 1, 1)
#endif
    __launch_bounds__(THREADS, 1)
        add_rmsnorm_cluster(const T* __restrict__ x, const T* __restrict__ residual,
                            const T* __restrict__ weight, T* __restrict__ y, T* h, long long rows,
                            long long cols, float epsilon) {
  if constexpr (HAS_CLUSTERS) {
    in_registers<T, RANKS, THREADS, 1, VEC, CHUNKS, CHUNKS, true>(x, residual, weight, y, h, rows,
                                                                  cols, epsilon);
  } else if (blockIdx.x < rows) {  // the first blocks take a row each, the others none
    in_passes<T, THREADS, VEC>(x, residual, weight, y, h, cols, epsilon, blockIdx.x);
  }
}

template <typename T, int THREADS, int VEC>
__global__ void __launch_bounds__(THREADS)
    add_rmsnorm_looped(const T* __restrict__ x, const T* __restrict__ residual,
                       const T* __restrict__ weight, T* __restrict__ y, T* h, long long rows,
                       long long cols, float epsilon) {
  in_passes<T, THREADS, VEC>(x, residual, weight, y, h, cols, epsilon, blockIdx.x);
}
