// Sums and maxima over neighbouring lanes, a warp and a block; every thread gets the result, in a
// fixed order of operations, so that equal inputs give equal bits.
#pragma once

namespace solkit {

struct Sum {
  static __device__ __forceinline__ float identity() { return 0.0f; }
  static __device__ __forceinline__ float join(float a, float b) { return a + b; }
};

// Over WIDTH neighbouring lanes (a power of two). The whole warp calls it.
template <typename Op, int WIDTH = 32>
__device__ __forceinline__ float warp_reduce(float value) {
  static_assert(WIDTH <= 32 && (WIDTH & (WIDTH - 1)) == 0, "1, 2, 4 ... 32 lanes");
#pragma unroll
  for (int distance = WIDTH / 2; distance > 0; distance /= 2) {
    value = Op::join(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

// The largest of unsigned integers over WIDTH neighbouring lanes. Bits of non-negative floats are in
// the order of their values, and NaN above all, so this is their maximum, too: over a whole warp one
// instruction from CC 8.0 on, not five shuffles in a row.
template <int WIDTH = 32>
__device__ __forceinline__ unsigned int warp_max(unsigned int value) {
#if __CUDA_ARCH__ >= 800
  constexpr int SHUFFLED = WIDTH == 32 ? 1 : WIDTH;
  if constexpr (WIDTH == 32) value = __reduce_max_sync(0xffffffffu, value);
#else
  constexpr int SHUFFLED = WIDTH;
#endif
#pragma unroll
  for (int distance = SHUFFLED / 2; distance > 0; distance /= 2) {
    value = max(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

// The least power of two that is not below `count`.
constexpr int power_of_two(int count) {
  int power = 1;
  while (power < count) power *= 2;
  return power;
}

// THREADS is the whole block, a multiple of 32; it is laid out along x.
// A block may call this several times: the barrier at its start protects the last call's slots.
template <typename Op, int THREADS>
__device__ __forceinline__ float block_reduce(float value) {
  static_assert(THREADS % 32 == 0 && THREADS <= 1024, "whole warps only");
  value = warp_reduce<Op>(value);
  if constexpr (THREADS > 32) {
    constexpr int WARPS = THREADS / 32, WIDTH = power_of_two(WARPS);
    __shared__ float slot[WARPS];
    __syncthreads();
    if (threadIdx.x % 32 == 0) slot[threadIdx.x / 32] = value;
    __syncthreads();
    const int from =
        threadIdx.x % WIDTH;  // every lane takes part: fewer shuffles than 32 slots need
    value = warp_reduce<Op, WIDTH>(WIDTH == WARPS || from < WARPS ? slot[from] : Op::identity());
  }
  return value;
}

}  // namespace solkit
