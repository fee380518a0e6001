// Softmax over each row: y = exp(x - max) / sum(exp(x - max)).
//
// x, y [rows, cols]; dtypes fp32, fp16, bf16; fp32 inside, y rounded once. cols a multiple of VEC;
// the caller takes VEC = 16 bytes where that holds.
// Traffic: rows x cols x (read + write). Ceiling: DRAM.
// Design, softmax: the row stays in registers, packed, ROW_THREADS threads with CHUNKS vectors
// each; one warp a row (ROWS rows a block, no barrier) or one block a row. exp is computed twice,
// for the sum and for the output: 2 exp2 an element stay under the 3.9 that a 2-byte stream leaves
// free on H200, and packed items need half the registers of kept exponentials.
// softmax_looped: rows too long for registers. One pass keeps a running maximum and a sum scaled to
// it (one rescale a vector, not an element); a second pass reads the row again, from L2 where it
// is still there, and writes.
// A row that holds +inf or NaN gives NaN, as the formula does; a row of -inf gives NaN too.
#include "math.cuh"
#include "reduce.cuh"
#include "vec.cuh"

using namespace solkit;

template <typename T, int VEC>
__device__ __forceinline__ float max_of(Vec<T, VEC> value) {
  float most = to_float(value.item[0]);
#pragma unroll
  for (int j = 1; j < VEC; ++j) most = Max::join(most, to_float(value.item[j]));
  return most;
}

// Sum of 2^(x log2 e - shift), shift = max log2 e.
template <typename T, int VEC>
__device__ __forceinline__ float sum_of_exp(Vec<T, VEC> value, float most) {
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < VEC; ++j) sum += exp_fast(to_float(value.item[j]) - most);
  return sum;
}

template <typename T, int VEC>
__device__ __forceinline__ Vec<T, VEC> normalised(Vec<T, VEC> value, float most, float factor) {
  Vec<T, VEC> y;
#pragma unroll
  for (int j = 0; j < VEC; ++j) {
    y.item[j] = from_float<T>(exp_fast(to_float(value.item[j]) - most) * factor);
  }
  return y;
}

template <typename T, int ROW_THREADS, int ROWS, int VEC, int CHUNKS>
__global__ void __launch_bounds__(ROW_THREADS* ROWS)
    softmax(const T* __restrict__ x, T* __restrict__ y, long long rows, long long cols) {
  static_assert(ROWS == 1 || ROW_THREADS == 32, "several rows a block: one warp each");
  const int lane = threadIdx.x % ROW_THREADS;
  const long long row = static_cast<long long>(blockIdx.x) * ROWS + threadIdx.x / ROW_THREADS;
  if (row >= rows) return;  // whole warps leave: ROWS > 1 has no barrier
  const long long start = row * cols;

  Vec<T, VEC> value[CHUNKS];
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const int col = (c * ROW_THREADS + lane) * VEC;
    if (col < cols) value[c] = load_stream<T, VEC>(x + start + col);
  }
  float most = Max::identity();
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    if ((c * ROW_THREADS + lane) * VEC < cols) {
      most = Max::join(most, max_of<T, VEC>(value[c]));
      stay_packed(value[c]);
    }
  }
  most = ROW_THREADS == 32 ? warp_reduce<Max>(most) : block_reduce<Max, ROW_THREADS>(most);
  float sum = 0.0f;
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    if ((c * ROW_THREADS + lane) * VEC < cols) {
      sum += sum_of_exp<T, VEC>(value[c], most);
      stay_packed(value[c]);
    }
  }
  sum = ROW_THREADS == 32 ? warp_reduce<Sum>(sum) : block_reduce<Sum, ROW_THREADS>(sum);
  const float factor = 1.0f / sum;
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const int col = (c * ROW_THREADS + lane) * VEC;
    if (col < cols) store<T, VEC>(y + start + col, normalised<T, VEC>(value[c], most, factor));
  }
}

template <typename T, int BLOCK, int VEC, int ITEMS>
__global__ void __launch_bounds__(BLOCK)
    softmax_looped(const T* __restrict__ x, T* __restrict__ y, long long rows, long long cols) {
  constexpr int STEP = BLOCK * VEC;
  const long long start = static_cast<long long>(blockIdx.x) * cols;
  // The finite lower end, not -inf: -inf - -inf would be NaN in a rescale of nothing.
  constexpr float LOWEST = -3.402823466e+38f;
  float most = LOWEST, sum = 0.0f;
  for (long long base = static_cast<long long>(threadIdx.x) * VEC; base < cols;
       base += STEP * ITEMS) {
    Vec<T, VEC> value[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      if (base + k * STEP < cols) value[k] = load<T, VEC>(x + start + base + k * STEP);
    }
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      if (base + k * STEP < cols) {
        const float higher = Max::join(max_of<T, VEC>(value[k]), most);
        sum = sum * exp_fast(most - higher) + sum_of_exp<T, VEC>(value[k], higher);
        most = higher;
      }
    }
  }
  const float row_most = block_reduce<Max, BLOCK>(most);
  sum = block_reduce<Sum, BLOCK>(sum * exp_fast(most - row_most));
  // All -inf: the finite stand-in survived, and the formula's answer is NaN.
  const float factor = row_most == LOWEST ? __int_as_float(0x7fc00000) : 1.0f / sum;
  for (long long base = static_cast<long long>(threadIdx.x) * VEC; base < cols;
       base += STEP * ITEMS) {
    Vec<T, VEC> value[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      if (base + k * STEP < cols) value[k] = load<T, VEC>(x + start + base + k * STEP);
    }
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      if (base + k * STEP < cols) {
        store<T, VEC>(y + start + base + k * STEP, normalised<T, VEC>(value[k], row_most, factor));
      }
    }
  }
}
