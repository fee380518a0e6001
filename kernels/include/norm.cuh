// What the norms do to a vector of a row: the sum with a residual, its statistics, the scaled result.
#pragma once

#include "math.cuh"
#include "rows.cuh"

namespace solkit {

// 1 / cols, of a row in registers. FEW: where a thread holds few vectors, or the row has a cluster or an
// SM's one block, and the exact division, which converts 64 bits and calls a function, would show. With
// four vectors and more the compiler unpacks them early if there is no branch: about 90 bytes a thread
// spilled.
template <bool FEW>
__device__ __forceinline__ float inverse_of(long long cols) {
  if constexpr (FEW) {
    return reciprocal_fast(static_cast<float>(static_cast<int>(cols)));
  } else {
    return 1.0f / static_cast<float>(cols);
  }
}

// a + b, rounded to T: the h that a fused residual norm hands on and normalises.
template <typename T, int VEC>
__device__ __forceinline__ Vec<T, VEC> rounded_sum(const Vec<T, VEC>& a, const Vec<T, VEC>& b) {
  Vec<float, VEC> sum = floats(a);
  const Vec<float, VEC> more = floats(b);
#pragma unroll
  for (int j = 0; j < VEC; ++j) sum.item[j] += more.item[j];
  return rounded<T>(sum);
}

// The row h of a residual norm: AT_ONCE chunks of x and of residual are under way together.
template <typename T, int VEC, int CHUNKS, int AT_ONCE>
struct SummedRow {
  const T *x, *residual;  // where the thread's first chunk lies
  Vec<T, VEC> h[CHUNKS];  // x, until its chunk is summed
  Vec<T, VEC> other[AT_ONCE];

  template <typename Share>
  __device__ __forceinline__ SummedRow(const Share& share, const T* first_x,
                                       const T* first_residual)
      : x(first_x), residual(first_residual) {
#pragma unroll
    for (int c = 0; c < AT_ONCE; ++c) h[c] = load_chunk(share, x, c);
#pragma unroll
    for (int c = 0; c < AT_ONCE; ++c) other[c] = load_chunk(share, residual, c);
  }

  // Chunk `c` becomes h; they are summed in order.
  template <typename Share>
  __device__ __forceinline__ void sum(const Share& share, int c, long long cols) {
    h[c] = rounded_sum(h[c], other[c % AT_ONCE]);
    if (c + AT_ONCE < CHUNKS) {
      h[c + AT_ONCE] = load_chunk(share, after(h[c], x, cols), c + AT_ONCE);
      other[c % AT_ONCE] = load_chunk(share, after(h[c], residual, cols), c + AT_ONCE);
    }
  }
};

template <typename T, int VEC>
__device__ __forceinline__ float sum_of(const Vec<T, VEC>& value) {
  const Vec<float, VEC> wide = floats(value);
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < VEC; ++j) sum += wide.item[j];
  return sum;
}

// Sum of (x - centre)^2.
template <typename T, int VEC>
__device__ __forceinline__ float sum_of_squares(const Vec<T, VEC>& value, float centre = 0.0f) {
  const Vec<float, VEC> wide = floats(value);
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < VEC; ++j) {
    const float x = wide.item[j] - centre;
    sum = fmaf(x, x, sum);
  }
  return sum;
}

struct Moments {
  float mean, scale;  // scale = 1 / sqrt(variance + epsilon)
};

// Both numbers summed over WIDTH neighbouring lanes: two shuffles side by side cost the time of one.
template <int WIDTH>
__device__ __forceinline__ float2 pair_sum(float2 pair) {
#pragma unroll
  for (int distance = WIDTH / 2; distance > 0; distance /= 2) {
    const float x = __shfl_xor_sync(0xffffffffu, pair.x, distance);
    const float y = __shfl_xor_sync(0xffffffffu, pair.y, distance);
    pair = make_float2(pair.x + x, pair.y + y);
  }
  return pair;
}

// The moments of a row whose threads hold `value`: the mean, and the mean of squares centred on it.
//
// Deviations d from a pivot give both in one go, mean = pivot + sum(d) / n and
//   squares = sum(d^2) - sum(d)^2 / n,
// where the mean first and squares after it would wait for twice the shuffles. What is subtracted
// cancels little, for the pivot is itself the mean of some of the items, k of n: then the squares are
// at least k (pivot - mean)^2, and so the second term is at most n / k times the result. A warp takes
// the first lane's first vector. Warps' (mean, squares) are joined on the first warp's mean, their
// squares growing by count_w d_w^2: exact, and one barrier for the row.
template <bool FEW, typename T, int ROW_THREADS, int ROWS, int VEC, int CHUNKS, int RANKS>
__device__ __forceinline__ Moments
row_moments(const RowShare<ROW_THREADS, ROWS, VEC, CHUNKS, RANKS>& share,
            Vec<T, VEC> (&value)[CHUNKS], long long cols, float epsilon) {
  constexpr int WIDTH = ROW_THREADS < 32 ? ROW_THREADS : 32;
  constexpr int WARPS = ROW_WARPS<ROW_THREADS, RANKS>, JOINED = power_of_two(WARPS);
  const float inverse_cols = inverse_of<FEW>(cols);
  const float inverse_count =  // no warp is empty
      WARPS > 1 ? reciprocal_fast(share.held_by_warp(share.warp(), cols)) : inverse_cols;
  float pivot = sum_of(value[0]) * (1.0f / VEC);
  stay_packed(value[0]);
  pivot = __shfl_sync(0xffffffffu, pivot, 0, WIDTH);
  float2 sums = make_float2(0.0f, 0.0f);  // of deviations, of their squares
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const Vec<float, VEC> wide = floats(value[c]);
    float sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      const float deviation = wide.item[j] - pivot;
      sum += deviation;
      squares = fmaf(deviation, deviation, squares);
    }
    if (share.has(c)) sums = make_float2(sums.x + sum, sums.y + squares);
    stay_packed(value[c]);
  }
  sums = pair_sum<WIDTH>(sums);
  float mean = fmaf(sums.x, inverse_count, pivot);
  float squares = fmaf(-sums.x * inverse_count, sums.x, sums.y);
  if constexpr (WARPS > 1) {
    const int from = threadIdx.x % JOINED;
    const float from_count = from < WARPS ? share.held_by_warp(from, cols) : 0.0f;
    const float2 part = exchange<ROW_THREADS, RANKS>(make_float2(mean, squares));
    pivot = row_mail<WARPS>().slots[0].x;
    const float offset = part.x - pivot;
    sums = pair_sum<JOINED>(
        make_float2(from_count * offset, fmaf(from_count * offset, offset, part.y)));
    mean = fmaf(sums.x, inverse_cols, pivot);
    squares = fmaf(-sums.x * inverse_cols, sums.x, sums.y);
  }
  return {mean, rsqrtf(fmaf(squares, inverse_cols, epsilon))};
}

// x * scale * gain, rounded once.
template <typename T, int VEC>
__device__ __forceinline__ Vec<T, VEC> scaled(const Vec<T, VEC>& value, const Vec<T, VEC>& gain,
                                              float scale) {
  Vec<float, VEC> y = floats(value);
  const Vec<float, VEC> factor = floats(gain);
#pragma unroll
  for (int j = 0; j < VEC; ++j) y.item[j] *= scale * factor.item[j];
  return rounded<T>(y);
}

// (x - mean) * scale * gain + bias, rounded once.
template <typename T, int VEC>
__device__ __forceinline__ Vec<T, VEC> standardised(const Vec<T, VEC>& value, float mean,
                                                    float scale, const Vec<T, VEC>& gain,
                                                    const Vec<T, VEC>& bias) {
  Vec<float, VEC> y = floats(value);
  const Vec<float, VEC> factor = floats(gain), shift = floats(bias);
#pragma unroll
  for (int j = 0; j < VEC; ++j) {
    y.item[j] = fmaf((y.item[j] - mean) * scale, factor.item[j], shift.item[j]);
  }
  return rounded<T>(y);
}

}  // namespace solkit
