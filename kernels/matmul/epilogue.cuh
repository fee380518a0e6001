// The epilogue of a product: what happens to a sum of products before it is rounded and stored, once.
//
//   out = alpha (x @ weight)                                plain
//   out = alpha (x @ weight) + bias                         BIAS
//   out = gelu(alpha (x @ weight) + bias)                   BIAS and an activation
//   out = alpha (x @ weight) + beta residual                RESIDUAL
//   out = alpha (x @ weight) + beta residual + bias         both
//
// All of it in fp32. What an epilogue lacks is never loaded: its pointer is null.
#pragma once

#include "math.cuh"

namespace solkit {

// No activation.
struct Identity {
  template <typename T>
  static __device__ __forceinline__ float apply(float x) {
    return x;
  }
};

// What a product's kernel takes as a template argument.
template <bool BIAS, bool RESIDUAL, typename ACTIVATION>
struct Epilogue {
  static constexpr bool HAS_BIAS = BIAS, HAS_RESIDUAL = RESIDUAL;

  // The value to be rounded to T. `bias` and `residual` are ignored where there are none.
  template <typename T>
  static __device__ __forceinline__ float apply(float sum, float bias, float residual, float alpha,
                                                float beta) {
    float value = alpha * sum;
    if constexpr (RESIDUAL) value = fmaf(beta, residual, value);
    if constexpr (BIAS) value += bias;
    return ACTIVATION::template apply<T>(value);
  }
};

}  // namespace solkit
