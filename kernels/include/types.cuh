// Conversion between the storage types (float, __half, __nv_bfloat16) and float, in which all
// arithmetic is done. Rounding is to nearest even, once, when a result is stored.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace solkit {

template <typename T>
constexpr bool IS_BF16 = false;
template <>
constexpr bool IS_BF16<__nv_bfloat16> = true;

__device__ __forceinline__ float to_float(float value) { return value; }
__device__ __forceinline__ float to_float(__half value) { return __half2float(value); }
__device__ __forceinline__ float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }

template <typename T>
__device__ __forceinline__ T from_float(float value);

template <>
__device__ __forceinline__ float from_float<float>(float value) {
  return value;
}

template <>
__device__ __forceinline__ __half from_float<__half>(float value) {
  return __float2half_rn(value);
}

template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}

// Two items in a word, `low` in its lower half: as they lie in memory, and in fragments of the tensor
// cores.
template <typename T>
__device__ __forceinline__ unsigned int rounded_pair(float low, float high);

template <>
__device__ __forceinline__ unsigned int rounded_pair<__half>(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return reinterpret_cast<const unsigned int&>(pair);
}

template <>
__device__ __forceinline__ unsigned int rounded_pair<__nv_bfloat16>(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const unsigned int&>(pair);
}

template <typename T>
__device__ __forceinline__ float2 unpacked_pair(unsigned int pair);

template <>
__device__ __forceinline__ float2 unpacked_pair<__half>(unsigned int pair) {
  return __half22float2(reinterpret_cast<const __half2&>(pair));
}

template <>
__device__ __forceinline__ float2 unpacked_pair<__nv_bfloat16>(unsigned int pair) {
  return __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(pair));
}

}  // namespace solkit
