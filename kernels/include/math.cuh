// Activations in float, by the hardware's exp2 and reciprocal: an element may cost about 30
// instructions before a 2-byte stream is no longer memory-bound on H100-class cards.
#pragma once

namespace solkit {

constexpr float LOG2_E = 1.4426950408889634f;

// 2^x; 2 units in the last place, exact at -inf (0) and +inf.
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// 1 / x; 1 unit in the last place; 1 / inf = 0.
__device__ __forceinline__ float reciprocal_fast(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float exp_fast(float x) { return exp2_fast(x * LOG2_E); }

// x * sigmoid(x).
__device__ __forceinline__ float silu(float x) { return x * reciprocal_fast(1.0f + exp_fast(-x)); }

// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), as x * sigmoid(2u): one exp2, one reciprocal.
__device__ __forceinline__ float gelu_tanh(float x) {
  const float twice_u = x * (1.5957691216057308f + 0.071354816272600f * x * x);
  return x * reciprocal_fast(1.0f + exp_fast(-twice_u));
}

// 0.5 x (1 + erf(x / sqrt 2)) to float accuracy.
__device__ __forceinline__ float gelu_erf(float x) {
  return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
}

// The same with |error of erf| < 1.5e-7 in about 15 instructions (erff takes about twice as many):
// erfc(z) = t (a1 + t (a2 + t (a3 + t (a4 + t a5)))) exp(-z^2), t = 1 / (1 + p z), z = |x| / sqrt 2
// (Abramowitz and Stegun, 7.1.26). For negative x the small factor is used itself, not 1 minus it,
// so the tail keeps its relative accuracy.
__device__ __forceinline__ float gelu_erf_fast(float x) {
  const float z = fabsf(x) * 0.70710678118654752f;
  const float t = reciprocal_fast(fmaf(0.3275911f, z, 1.0f));
  float poly = fmaf(t, 1.061405429f, -1.453152027f);
  poly = fmaf(t, poly, 1.421413741f);
  poly = fmaf(t, poly, -0.284496736f);
  poly = fmaf(t, poly, 0.254829592f);
  const float half_erfc = 0.5f * t * poly * exp2_fast(-LOG2_E * z * z);
  return x * (x < 0.0f ? half_erfc : 1.0f - half_erfc);
}

}  // namespace solkit
