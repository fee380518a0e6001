// Residual add + RMSNorm: h = round(x + residual), y = h / sqrt(mean(h^2) + epsilon) * weight.
//
// x, residual, y, h [rows, cols], weight [cols]; dtypes fp32, fp16, bf16. h is rounded to the
// dtype BEFORE the norm (the next layer reads that h); everything else is fp32, y is rounded once.
// cols a multiple of VEC; the caller takes VEC = 16 bytes where that holds.
// Traffic: rows x cols x (2 reads + 2 writes) + cols. Ceiling: DRAM.
// Design, add_rmsnorm: the row stays in registers, packed. ROW_THREADS threads own a row and
// CHUNKS vectors of it each; a block holds ROWS rows where one warp owns a row (no barrier at
// all), else one. All loads of the row, and the weight's, are issued before the reduction needs
// them. The caller picks ROW_THREADS x CHUNKS to fit cols with least waste.
// add_rmsnorm_looped: rows too long for registers; h is written, then read again (mostly from L2).
#include "reduce.cuh"
#include "vec.cuh"

using namespace solkit;

template <typename T, int VEC>
__device__ __forceinline__ Vec<T, VEC> add(Vec<T, VEC> a, Vec<T, VEC> b) {
  Vec<T, VEC> sum;
#pragma unroll
  for (int j = 0; j < VEC; ++j) {
    sum.item[j] = from_float<T>(to_float(a.item[j]) + to_float(b.item[j]));
  }
  return sum;
}

template <typename T, int VEC>
__device__ __forceinline__ float sum_of_squares(Vec<T, VEC> value) {
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < VEC; ++j) sum = fmaf(to_float(value.item[j]), to_float(value.item[j]), sum);
  return sum;
}

template <typename T, int VEC>
__device__ __forceinline__ Vec<T, VEC> scaled(Vec<T, VEC> h, Vec<T, VEC> weight, float scale) {
  Vec<T, VEC> y;
#pragma unroll
  for (int j = 0; j < VEC; ++j) {
    y.item[j] = from_float<T>(to_float(h.item[j]) * scale * to_float(weight.item[j]));
  }
  return y;
}

template <typename T, int ROW_THREADS, int ROWS, int VEC, int CHUNKS>
__global__ void __launch_bounds__(ROW_THREADS* ROWS)
    add_rmsnorm(const T* __restrict__ x, const T* __restrict__ residual,
                const T* __restrict__ weight, T* __restrict__ y, T* __restrict__ h, long long rows,
                long long cols, float epsilon) {
  static_assert(ROWS == 1 || ROW_THREADS == 32, "several rows a block: one warp each");
  const int lane = threadIdx.x % ROW_THREADS;
  const long long row = static_cast<long long>(blockIdx.x) * ROWS + threadIdx.x / ROW_THREADS;
  if (row >= rows) return;  // whole warps leave: ROWS > 1 has no barrier
  const long long start = row * cols;

  Vec<T, VEC> from_x[CHUNKS], from_residual[CHUNKS], gain[CHUNKS];
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const int col = (c * ROW_THREADS + lane) * VEC;
    if (col < cols) {
      from_x[c] = load_stream<T, VEC>(x + start + col);
      from_residual[c] = load_stream<T, VEC>(residual + start + col);
    }
  }
  float sum = 0.0f;
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const int col = (c * ROW_THREADS + lane) * VEC;
    if (col < cols) {
      gain[c] = load_shared_by_blocks<T, VEC>(weight + col);
      from_x[c] = add<T, VEC>(from_x[c], from_residual[c]);  // from here on it holds h
      store<T, VEC>(h + start + col, from_x[c]);
      sum += sum_of_squares<T, VEC>(from_x[c]);
      stay_packed(from_x[c]);
      stay_packed(gain[c]);
    }
  }
  sum = ROW_THREADS == 32 ? warp_reduce<Sum>(sum) : block_reduce<Sum, ROW_THREADS>(sum);
  const float scale = rsqrtf(sum / static_cast<float>(cols) + epsilon);
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const int col = (c * ROW_THREADS + lane) * VEC;
    if (col < cols) store<T, VEC>(y + start + col, scaled<T, VEC>(from_x[c], gain[c], scale));
  }
}

template <typename T, int BLOCK, int VEC>
__global__ void __launch_bounds__(BLOCK)
    add_rmsnorm_looped(const T* __restrict__ x, const T* __restrict__ residual,
                       const T* __restrict__ weight, T* __restrict__ y, T* h, long long rows,
                       long long cols, float epsilon) {
  const long long start = static_cast<long long>(blockIdx.x) * cols;
  float sum = 0.0f;
  for (long long col = static_cast<long long>(threadIdx.x) * VEC; col < cols; col += BLOCK * VEC) {
    const Vec<T, VEC> value = add<T, VEC>(load_stream<T, VEC>(x + start + col),
                                          load_stream<T, VEC>(residual + start + col));
    store<T, VEC>(h + start + col, value);
    sum += sum_of_squares<T, VEC>(value);
  }
  sum = block_reduce<Sum, BLOCK>(sum);
  const float scale = rsqrtf(sum / static_cast<float>(cols) + epsilon);
  for (long long col = static_cast<long long>(threadIdx.x) * VEC; col < cols; col += BLOCK * VEC) {
    // Each thread reads back only what it wrote itself, so no barrier is needed for h.
    store<T, VEC>(y + start + col,
                  scaled<T, VEC>(load<T, VEC>(h + start + col),
                                 load_shared_by_blocks<T, VEC>(weight + col), scale));
  }
}
