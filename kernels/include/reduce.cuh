// Sums and maxima over a warp and over a block; every thread gets the result, in a fixed order of
// operations, so that equal inputs give equal bits.
#pragma once

namespace solkit {

struct Sum {
  static __device__ __forceinline__ float identity() { return 0.0f; }
  static __device__ __forceinline__ float join(float a, float b) { return a + b; }
};

struct Max {
  static __device__ __forceinline__ float identity() { return -__int_as_float(0x7f800000); }
  // NaN wins, as in NumPy: a NaN in a row must reach the result.
  static __device__ __forceinline__ float join(float a, float b) { return a > b || a != a ? a : b; }
};

template <typename Op>
__device__ __forceinline__ float warp_reduce(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value = Op::join(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

// THREADS is the whole block, a multiple of 32; it is laid out along x.
// A block may call this several times: the barrier at its start protects the last call's slots.
template <typename Op, int THREADS>
__device__ __forceinline__ float block_reduce(float value) {
  static_assert(THREADS % 32 == 0 && THREADS <= 1024, "whole warps only");
  value = warp_reduce<Op>(value);
  if constexpr (THREADS > 32) {
    __shared__ float slot[THREADS / 32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    __syncthreads();
    if (lane == 0) slot[warp] = value;
    __syncthreads();
    value = warp_reduce<Op>(lane < THREADS / 32 ? slot[lane] : Op::identity());
  }
  return value;
}

}  // namespace solkit
