// read: total = sum of x, in fp32.
//
// dtypes fp32, fp16, bf16; any number of elements; x 16-byte aligned; partials holds gridDim.x
// floats. Traffic: elements read, 4 bytes written. Ceiling: DRAM bandwidth, reads alone.
// Design: a grid of fixed size walks x; each thread has ITEMS loads of 16 bytes in flight. Each
// block writes its partial sum; the block that arrives last adds them all, in order, so the total
// does not depend on which block that was.
#include "reduce.cuh"
#include "vec.cuh"

using namespace solkit;

// Counts arrivals. It starts at zero when the module is loaded, and atomicInc takes it back to
// zero with the last arrival of every launch. Launches of one module must not overlap.
__device__ unsigned int arrived = 0;

template <typename T, int VEC>
__device__ __forceinline__ float sum_of(Vec<T, VEC> value) {
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < VEC; ++j) sum += to_float(value.item[j]);
  return sum;
}

template <typename T, int BLOCK, int VEC, int ITEMS>
__global__ void __launch_bounds__(BLOCK)
    read(const T* __restrict__ x, float* __restrict__ total, float* partials, long long elements) {
  const long long vectors = elements / VEC;
  const long long stride = static_cast<long long>(gridDim.x) * BLOCK;
  const long long thread = static_cast<long long>(blockIdx.x) * BLOCK + threadIdx.x;
  float sum[ITEMS] = {};
  long long i = thread;
  for (; i + (ITEMS - 1) * stride < vectors; i += ITEMS * stride) {
    Vec<T, VEC> value[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) value[k] = load_stream<T, VEC>(x + (i + k * stride) * VEC);
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) sum[k] += sum_of<T, VEC>(value[k]);
  }
  for (; i < vectors; i += stride) sum[0] += sum_of<T, VEC>(load_stream<T, VEC>(x + i * VEC));
  if (thread < elements - vectors * VEC) sum[0] += to_float(x[vectors * VEC + thread]);  // the tail

  float mine = 0.0f;
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) mine += sum[k];
  mine = block_reduce<Sum, BLOCK>(mine);

  __shared__ bool last;
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = mine;
    __threadfence();  // the partial is visible before the arrival is counted
    last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  float rest = 0.0f;
  for (unsigned int block = threadIdx.x; block < gridDim.x; block += BLOCK) {
    rest += __ldcg(partials + block);  // from L2: other blocks wrote it
  }
  rest = block_reduce<Sum, BLOCK>(rest);
  if (threadIdx.x == 0) *total = rest;
}
