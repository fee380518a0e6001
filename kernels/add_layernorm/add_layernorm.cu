// Residual add + LayerNorm: h = round(x + residual), y = (h - mean) / sqrt(variance + epsilon)
// * weight + bias, with mean and (biased) variance of h over its row.
//
// x, residual, y, h [rows, cols], weight, bias [cols]; dtypes fp32, fp16, bf16. h is rounded to the
// dtype BEFORE the norm (the next layer reads that h); everything else is fp32, y is rounded once.
// cols a multiple of VEC; the caller takes VEC = 16 bytes where that holds.
// Traffic: rows x cols x (2 reads + 2 writes) + 2 cols. Ceiling: DRAM.
// Technique: the row of h stays in registers, packed; x and residual are loaded as add_rmsnorm loads
// them, weight and bias beside them where a thread has two vectors of each. Mean and variance come of
// one round of shuffles a warp, as deviations from a pivot, and are joined behind one barrier
// (norm.cuh, row_moments).
// add_layernorm: several rows a warp, a warp or a block a row. add_layernorm_cluster: where rows are
// few, and some thousands of long ones, several blocks a row, which send their moments into each
// other's shared memory; cards without clusters (before CC 9.0) take the passes of
// add_layernorm_looped. add_layernorm_looped: rows too long for registers; h is written, and read
// again for the squares and for y (mostly from L2).
// Measured on an H200, bf16, 2026-12-01, against its own streams at the same traffic: 32768 x 4096 in
// 258.4 us (97 %), 8192 x 2560 in 41.0 us (98 %), 1 x 16384 in 1.9 us.
#include "norm.cuh"

using namespace solkit;

// One row, or ROWS of them, by ROW_THREADS threads of each of RANKS blocks. FEW: see inverse_of.
// AWAITED: weight and bias are waited for with the row, where a thread has registers for all.
template <typename T, int RANKS, int ROW_THREADS, int ROWS, int VEC, int CHUNKS, int AT_ONCE,
          bool FEW, bool AWAITED>
__device__ __forceinline__ void in_registers(const T* __restrict__ x,
                                             const T* __restrict__ residual,
                                             const T* __restrict__ weight,
                                             const T* __restrict__ bias, T* __restrict__ y, T* h,
                                             long long rows, long long cols, float epsilon) {
  const RowShare<ROW_THREADS, ROWS, VEC, CHUNKS, RANKS> share(rows, cols);
  const long long start = share.start(cols);

  SummedRow<T, VEC, CHUNKS, AT_ONCE> row(share, x + start, residual + start);
  Weights<T, VEC, CHUNKS> gain(share, weight), shift(share, bias);
  share.loads_under_way(cols);
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    row.sum(share, c, cols);
    if (share.has(c)) store(h + start + share.offset(c), row.h[c]);
  }
  if (AWAITED) {
    gain.come_with(row.h[0], cols);
    shift.come_with(row.h[0], cols);
  }
  const Moments moments = row_moments<FEW>(share, row.h, cols, epsilon);
  gain.begin(share);
  shift.begin(share);
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const Vec<T, VEC> result = standardised(row.h[c], moments.mean, moments.scale,
                                            gain.take(share, c), shift.take(share, c));
    if (share.has(c)) store(y + start + share.offset(c), result);
  }
}

// One row too long for registers, by THREADS threads.
template <typename T, int THREADS, int VEC>
__device__ __forceinline__ void in_passes(const T* __restrict__ x, const T* __restrict__ residual,
                                          const T* __restrict__ weight, const T* __restrict__ bias,
                                          T* __restrict__ y, T* h, long long cols, float epsilon,
                                          long long row) {
  const long long start = row * cols, first = threadIdx.x * VEC;
  const float count = static_cast<float>(cols);
  float sum = 0.0f;
#pragma unroll 2
  for (long long col = first; col < cols; col += THREADS * VEC) {
    const Vec<T, VEC> value = rounded_sum(load_stream<T, VEC>(x + start + col),
                                          load_stream<T, VEC>(residual + start + col));
    store(h + start + col, value);
    sum += sum_of(value);
  }
  const float mean = block_reduce<Sum, THREADS>(sum) / count;
  // Each thread reads back only what it wrote itself, so no barrier is needed for h.
  float squares = 0.0f;
#pragma unroll 4
  for (long long col = first; col < cols; col += THREADS * VEC) {
    squares += sum_of_squares(load<T, VEC>(h + start + col), mean);
  }
  const float scale = rsqrtf(block_reduce<Sum, THREADS>(squares) / count + epsilon);
#pragma unroll 2
  for (long long col = first; col < cols; col += THREADS * VEC) {
    const Vec<T, VEC> gain = load_shared_by_blocks<T, VEC>(weight + col);
    const Vec<T, VEC> shift = load_shared_by_blocks<T, VEC>(bias + col);
    store(y + start + col, standardised(load<T, VEC>(h + start + col), mean, scale, gain, shift));
  }
}

// RESIDENT blocks of it should stand on an SM at once; AT_ONCE chunks of x and of residual are under
// way together.
template <typename T, int ROW_THREADS, int ROWS, int VEC, int CHUNKS, int RESIDENT, int AT_ONCE>
__global__ void __launch_bounds__(ROW_THREADS* ROWS, resident_blocks(ROW_THREADS* ROWS, RESIDENT))
    add_layernorm(const T* __restrict__ x, const T* __restrict__ residual,
                  const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ y, T* h,
                  long long rows, long long cols, float epsilon) {
  constexpr int BLOCK = ROW_THREADS * ROWS;
  // With 1024 threads and four vectors each, for want of that branch 20 bytes spilled on CC 12.0.
  constexpr bool FEW = CHUNKS <= 2 || (RESIDENT == 1 && BLOCK < 1024);
  // With 40 registers for 16 items and as many of weight and bias, up to 72 bytes a thread spilled.
  constexpr bool ROOM =
      CHUNKS * VEC <= 8 || registers_left(BLOCK, resident_blocks(BLOCK, RESIDENT)) >= 48;
  in_registers<T, 1, ROW_THREADS, ROWS, VEC, CHUNKS, AT_ONCE, FEW, FEW && ROOM>(
      x, residual, weight, bias, y, h, rows, cols, epsilon);
}

template <typename T, int RANKS, int THREADS, int VEC, int CHUNKS>
__global__ void
#if __CUDA_ARCH__ >= 900
__cluster_dims__(RANKS, 1, 1)
#endif
    __launch_bounds__(THREADS, 1)
        add_layernorm_cluster(const T* __restrict__ x, const T* __restrict__ residual,
                              const T* __restrict__ weight, const T* __restrict__ bias,
                              T* __restrict__ y, T* h, long long rows, long long cols,
                              float epsilon) {
  if constexpr (HAS_CLUSTERS) {
    in_registers<T, RANKS, THREADS, 1, VEC, CHUNKS, CHUNKS, true, true>(x, residual, weight, bias,
                                                                        y, h, rows, cols, epsilon);
  } else if (blockIdx.x < rows) {  // the first blocks take a row each, the others none
    in_passes<T, THREADS, VEC>(x, residual, weight, bias, y, h, cols, epsilon, blockIdx.x);
  }
}

template <typename T, int THREADS, int VEC>
__global__ void __launch_bounds__(THREADS)
    add_layernorm_looped(const T* __restrict__ x, const T* __restrict__ residual,
                         const T* __restrict__ weight, const T* __restrict__ bias,
                         T* __restrict__ y, T* h, long long rows, long long cols, float epsilon) {
  in_passes<T, THREADS, VEC>(x, residual, weight, bias, y, h, cols, epsilon, blockIdx.x);
}
