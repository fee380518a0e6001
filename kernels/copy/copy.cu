// copy: y[i] = x[i].
//
// dtypes fp32, fp16, bf16; any number of elements; both arrays 16-byte aligned.
// Traffic: elements x (read + write); no flop. Ceiling: DRAM bandwidth.
// Design: one 16-byte load and store a thread. The many resident threads keep enough bytes in
// flight; blocks of 256 leave an SM in small pieces, so that no tail of long blocks remains.
#include "vec.cuh"

using namespace solkit;

template <typename T, int BLOCK, int VEC>
__global__ void __launch_bounds__(BLOCK)
    copy(const T* __restrict__ x, T* __restrict__ y, long long elements) {
  const long long first = (static_cast<long long>(blockIdx.x) * BLOCK + threadIdx.x) * VEC;
  if (first + VEC <= elements) {
    store<T, VEC>(y + first, load_stream<T, VEC>(x + first));
  } else {
    for (long long i = first; i < elements; ++i) y[i] = x[i];  // the tail: at most one thread
  }
}
