// Gated activations: y = Activation(gate) * up over flat arrays, two streams in and one out.
//
// One 16-byte load of each stream a thread; the many resident threads keep enough bytes in flight.
// Two or four loads a thread, a fixed grid that walks the arrays and a ring of bulk copies were all
// slower on an H200 (8192 x 11008 bf16: 123.7 us against 124.7, 125.2, 136.3 and 137.4). Where the
// count is no multiple of a vector, the rest is done an item a thread, by the threads that come
// after those of the last vector: nobody waits for a second round of loads.
#pragma once

#include "math.cuh"
#include "vec.cuh"

namespace solkit {

template <typename Activation, typename T, int N>
__device__ __forceinline__ void gated_items(const T* gate, const T* up, T* y) {
  const Vec<T, N> from_gate = load_stream<T, N>(gate);
  const Vec<T, N> from_up = load_stream<T, N>(up);
  const Vec<float, N> open = floats(from_gate), passed = floats(from_up);
  Vec<T, N> result;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    result.item[j] = from_float<T>(Activation::template apply<T>(open.item[j]) * passed.item[j]);
  }
  store<T, N>(y, result);
}

template <typename Activation, typename T, int BLOCK, int VEC>
__device__ __forceinline__ void gated(const T* gate, const T* up, T* y, long long count) {
  const long long vectors = count / VEC;
  const long long i = static_cast<long long>(blockIdx.x) * BLOCK + threadIdx.x;
  const long long rest = vectors * VEC + (i - vectors);
  if (i < vectors) {
    gated_items<Activation, T, VEC>(gate + i * VEC, up + i * VEC, y + i * VEC);
  } else if (rest < count) {
    gated_items<Activation, T, 1>(gate + rest, up + rest, y + rest);
  }
}

}  // namespace solkit
