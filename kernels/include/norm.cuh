// What the norms do to a vector of a row: the sum with a residual, its statistics, the scaled result.
#pragma once

#include "rows.cuh"

namespace solkit {

// a + b, rounded to T: the h that a fused residual norm hands on and normalises.
template <typename T, int VEC>
__device__ __forceinline__ Vec<T, VEC> rounded_sum(const Vec<T, VEC>& a, const Vec<T, VEC>& b) {
  Vec<float, VEC> sum = floats(a);
  const Vec<float, VEC> more = floats(b);
#pragma unroll
  for (int j = 0; j < VEC; ++j) sum.item[j] += more.item[j];
  return rounded<T>(sum);
}

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

// The moments of a row whose threads hold `value`: the mean, and the mean of centred squares (no
// difference of large sums, no running update). A row of several warps is centred warp by warp on the
// warp's own mean, and the warps' (mean, squares) are joined by
//   squares = sum(squares_w + count_w (mean_w - mean)^2),
// which is exact: one barrier, where the row's mean first and squares after it would take two.
template <typename T, int ROW_THREADS, int ROWS, int VEC, int CHUNKS, int RANKS>
__device__ __forceinline__ Moments
row_moments(const RowShare<ROW_THREADS, ROWS, VEC, CHUNKS, RANKS>& share,
            Vec<T, VEC> (&value)[CHUNKS], long long cols, float epsilon) {
  constexpr int WIDTH = ROW_THREADS < 32 ? ROW_THREADS : 32;
  constexpr int WARPS = ROW_WARPS<ROW_THREADS, RANKS>, JOINED = power_of_two(WARPS);
  const float inverse_cols = 1.0f / static_cast<float>(cols);
  const float count = WARPS > 1 ? share.held_by_warp(share.warp(), cols) : cols;
  const float inverse_count = 1.0f / count;  // no warp is empty
  float sum = 0.0f;
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    sum += sum_of(value[c]);
    stay_packed(value[c]);
  }
  float mean = warp_reduce<Sum, WIDTH>(sum) * inverse_count;
  float squares = 0.0f;
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const float more = sum_of_squares(value[c], mean);
    squares += share.has(c) ? more : 0.0f;
    stay_packed(value[c]);
  }
  squares = warp_reduce<Sum, WIDTH>(squares);
  if constexpr (WARPS > 1) {
    __shared__ float2 slots[WARPS];
    const int from = threadIdx.x % JOINED;
    const float from_count = from < WARPS ? share.held_by_warp(from, cols) : 0.0f;
    const float2 part = exchange<ROW_THREADS, RANKS>(make_float2(mean, squares), slots);
    mean = warp_reduce<Sum, JOINED>(from_count * part.x) * inverse_cols;
    const float offset = part.x - mean;
    squares = warp_reduce<Sum, JOINED>(fmaf(from_count * offset, offset, part.y));
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
