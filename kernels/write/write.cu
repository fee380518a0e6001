// write: y[i] = pattern[i mod PERIOD]; only the first PERIOD elements of pattern are looked at.
//
// dtypes fp32, fp16, bf16; any number of elements; arrays 16-byte aligned.
// Traffic: elements written, min(elements, PERIOD) read. Ceiling: DRAM bandwidth, writes alone.
// Design: PERIOD = BLOCK x VEC, so a thread reads its 16 bytes of the pattern once (from L2) and
// stores them ITEMS times, BLOCK x 16 bytes apart. Random data rather than zeros: zeros draw less
// power and would hide a store that never happened.
#include "vec.cuh"

using namespace solkit;

template <typename T, int BLOCK, int VEC, int ITEMS>
__global__ void __launch_bounds__(BLOCK)
    write(const T* __restrict__ pattern, T* __restrict__ y, long long elements) {
  constexpr int PERIOD = BLOCK * VEC;
  const long long first = static_cast<long long>(blockIdx.x) * PERIOD * ITEMS + threadIdx.x * VEC;
  if (first >= elements) return;
  Vec<T, VEC> value;
  if (elements >= PERIOD) {
    value = load_shared_by_blocks<T, VEC>(pattern + threadIdx.x * VEC);
  } else {  // a short array: the pattern is the array itself, and may end inside this vector
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      const long long i = threadIdx.x * VEC + j;
      value.item[j] = pattern[i < elements ? i : elements - 1];
    }
  }
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const long long i = first + static_cast<long long>(k) * PERIOD;
    if (i + VEC <= elements) {
      store<T, VEC>(y + i, value);
    } else {
#pragma unroll
      for (int j = 0; j < VEC; ++j) {  // the tail: at most one thread
        if (i + j < elements) y[i + j] = value.item[j];
      }
    }
  }
}
