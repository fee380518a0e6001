// triad: a[i] = b[i] + s * c[i], with s = 3 (STREAM's kernel and scalar).
//
// dtypes fp32, fp16, bf16; any number of elements; arrays 16-byte aligned. Computed in fp32,
// rounded once. Traffic: elements x (2 reads + 1 write). Ceiling: DRAM bandwidth.
// Design: 16-byte accesses, ITEMS of them from each stream in flight a thread, a block's share of
// each stream contiguous.
#include "vec.cuh"

using namespace solkit;

template <typename T, int BLOCK, int VEC, int ITEMS>
__global__ void __launch_bounds__(BLOCK) triad(const T* __restrict__ b, const T* __restrict__ c,
                                               T* __restrict__ a, long long elements, float s) {
  const long long first = (static_cast<long long>(blockIdx.x) * BLOCK * ITEMS + threadIdx.x) * VEC;
  Vec<T, VEC> from_b[ITEMS], from_c[ITEMS];
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const long long i = first + static_cast<long long>(k) * BLOCK * VEC;
    if (i + VEC <= elements) {
      from_b[k] = load_stream<T, VEC>(b + i);
      from_c[k] = load_stream<T, VEC>(c + i);
    }
  }
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const long long i = first + static_cast<long long>(k) * BLOCK * VEC;
    if (i + VEC <= elements) {
      Vec<T, VEC> result;
#pragma unroll
      for (int j = 0; j < VEC; ++j) {
        result.item[j] =
            from_float<T>(fmaf(s, to_float(from_c[k].item[j]), to_float(from_b[k].item[j])));
      }
      store<T, VEC>(a + i, result);
    } else {
      for (long long j = i; j < elements; ++j) {  // the tail: at most one thread
        a[j] = from_float<T>(fmaf(s, to_float(c[j]), to_float(b[j])));
      }
    }
  }
}
