// write: y[i] = pattern[i mod PERIOD]; only the first PERIOD elements of pattern are looked at.
//
// dtypes fp32, fp16, bf16; any number of elements; arrays 16-byte aligned.
// Traffic: elements written, min(elements, PERIOD) read. Ceiling: DRAM bandwidth, writes alone.
// Design: PERIOD = BLOCK x VEC, so a thread reads its 16 bytes of the pattern once (from L2) and
// stores them ITEMS times, BLOCK x 16 bytes apart. Random data rather than zeros: zeros draw less
// power and would hide a store that never happened. `write_strided`, for the ceilings, walks with a
// fixed grid instead, so that a large array starts no new blocks.
// Measured on an H200, 2026-12-01, cold L2, bf16: 67 MB in 15.5 us, 4.33 TB/s (90 % of the spec), 1 MB
// in 1.41 us, 66 KB in 1.17 us. It is itself part of the measured roof.
#include "vec.cuh"

using namespace solkit;

// The VEC items of the pattern that a thread stores. A short array is its own pattern, and may end
// inside them.
template <typename T, int VEC>
__device__ __forceinline__ Vec<T, VEC> part_of(const T* pattern, long long elements, int period) {
  if (elements >= period) return load_shared_by_blocks<T, VEC>(pattern + threadIdx.x * VEC);
  Vec<T, VEC> value;
#pragma unroll
  for (int j = 0; j < VEC; ++j) {
    const long long i = threadIdx.x * VEC + j;
    value.item[j] = pattern[i < elements ? i : elements - 1];
  }
  return value;
}

template <typename T, int VEC>
__device__ __forceinline__ void store_part(T* y, long long i, long long elements,
                                           Vec<T, VEC> value) {
  if (i + VEC <= elements) {
    store<T, VEC>(y + i, value);
  } else {
#pragma unroll
    for (int j = 0; j < VEC; ++j) {  // the tail: at most one thread
      if (i + j < elements) y[i + j] = value.item[j];
    }
  }
}

template <typename T, int BLOCK, int VEC, int ITEMS>
__global__ void __launch_bounds__(BLOCK)
    write(const T* __restrict__ pattern, T* __restrict__ y, long long elements) {
  constexpr int PERIOD = BLOCK * VEC;
  const long long first = static_cast<long long>(blockIdx.x) * PERIOD * ITEMS + threadIdx.x * VEC;
  if (first >= elements) return;
  const Vec<T, VEC> value = part_of<T, VEC>(pattern, elements, PERIOD);
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    store_part<T, VEC>(y, first + static_cast<long long>(k) * PERIOD, elements, value);
  }
}

template <typename T, int BLOCK, int VEC>
__global__ void __launch_bounds__(BLOCK)
    write_strided(const T* __restrict__ pattern, T* __restrict__ y, long long elements) {
  constexpr int PERIOD = BLOCK * VEC;
  const long long first = static_cast<long long>(blockIdx.x) * PERIOD + threadIdx.x * VEC;
  if (first >= elements) return;
  const Vec<T, VEC> value = part_of<T, VEC>(pattern, elements, PERIOD);
  for (long long i = first; i < elements; i += static_cast<long long>(gridDim.x) * PERIOD) {
    store_part<T, VEC>(y, i, elements, value);
  }
}
