// Activations in float, by the hardware's exp2 and reciprocal: an element may cost about 30
// instructions before a 2-byte stream is no longer memory-bound on H100-class cards.
#pragma once

#include "types.cuh"

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

// The square root; 1 unit in the last place, denormals count as 0.
__device__ __forceinline__ float sqrt_fast(float x) {
  float y;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float exp_fast(float x) { return exp2_fast(x * LOG2_E); }

// x * sigmoid(x), or GELU in either form as x * sigmoid(x (c0 + c1 x^2 + c2 x^4 ...)): one exp2,
// one reciprocal, no branch, and infinity and NaN go through as in the formula. The coefficients
// are in units of -log 2, so that no factor is left between the polynomial and exp2.
template <int N>
__device__ __forceinline__ float times_sigmoid(float x, const float (&coefficients)[N]) {
  float sum = coefficients[N - 1];
#pragma unroll
  for (int k = N - 2; k >= 0; --k) sum = fmaf(x * x, sum, coefficients[k]);
  return x * reciprocal_fast(1.0f + exp2_fast(x * sum));
}

// The activations as types, so that a kernel takes one as a template argument. T is the dtype that
// the result is rounded to.
struct Silu {
  template <typename T>
  static __device__ __forceinline__ float apply(float x) {
    return times_sigmoid(x, {-LOG2_E});
  }
};

// 0.5 x (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3): the sigmoid of 2u, exactly.
struct GeluTanh {
  template <typename T>
  static __device__ __forceinline__ float apply(float x) {
    return times_sigmoid(x, {-2.3022082f, -0.10294324f});
  }
};

// 0.5 x (1 + erf(x / sqrt 2)). erff takes some 40 instructions: float has the time for them and the
// accuracy to show. For 2-byte types the logit of the normal distribution is fitted by an odd
// polynomial, for the least error relative to |gelu| + 1e-5 (bf16) or 3e-5 (fp16). Down to x = -4
// the result is off by 1.1e-3 of itself in bf16 and 0.9e-4 in fp16, by a third of that where x > 0:
// the rounding that follows takes up to 3.9e-3 and 4.9e-4.
struct GeluErf {
  template <typename T>
  static __device__ __forceinline__ float apply(float x);
};

template <>
__device__ __forceinline__ float GeluErf::apply<float>(float x) {
  return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
}

template <>
__device__ __forceinline__ float GeluErf::apply<__half>(float x) {
  return times_sigmoid(x, {-2.30174088f, -0.105504639f, 3.80815065e-4f, 1.06431107e-4f,
                           -6.68065422e-6f, 1.80619168e-7f, -1.89340454e-9f});
}

template <>
__device__ __forceinline__ float GeluErf::apply<__nv_bfloat16>(float x) {
  return times_sigmoid(x, {-2.2973969f, -0.1094056f, 1.41724222e-3f, -1.26790665e-5f});
}

}  // namespace solkit
