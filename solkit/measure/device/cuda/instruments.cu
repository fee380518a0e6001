// The instruments of the CUDA device: what surrounds a timed kernel, and what fills its buffers.
//
//   delay        keeps the stream busy while the host queues the events and the call behind it, so
//                that no host time falls between two events
//   stamp        writes (globaltimer ns, clock64 cycles) of SM 0, so that a pair of stamps gives the
//                SM clock held between them
//   empty        does nothing: what the method reads on it is the method's floor
//   fill_normal, fill_uniform   counter-based random values: the same for the same seed on any grid
//   fill_nan     poison for outputs;  count_nan  how much of the poison (or of any NaN) is left

#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef unsigned long long u64;

__device__ __forceinline__ u64 now_ns() {
  u64 t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

extern "C" __global__ void delay(long long ns) {
  const u64 start = now_ns();
  while (now_ns() - start < (u64)ns) {
  }
}

extern "C" __global__ void stamp(long long* out) {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  if (sm == 0) {
    out[0] = (long long)now_ns();
    out[1] = clock64();
  }
}

extern "C" __global__ void empty() {}

template <typename T>
__device__ __forceinline__ T narrowed(double v);
template <>
__device__ __forceinline__ double narrowed(double v) {
  return v;
}
template <>
__device__ __forceinline__ float narrowed(double v) {
  return (float)v;
}
template <>
__device__ __forceinline__ __half narrowed(double v) {
  return __float2half_rn((float)v);
}
template <>
__device__ __forceinline__ __nv_bfloat16 narrowed(double v) {
  return __float2bfloat16_rn((float)v);
}

__device__ __forceinline__ float widened(__half v) { return __half2float(v); }
__device__ __forceinline__ float widened(__nv_bfloat16 v) { return __bfloat162float(v); }
__device__ __forceinline__ float widened(float v) { return v; }
__device__ __forceinline__ double widened(double v) { return v; }

// splitmix64: a full-period mix of a counter, one draw an element.
__device__ __forceinline__ u64 mixed(u64 seed, u64 index) {
  u64 z = seed + (index + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

template <typename T>
__global__ void fill_normal(T* __restrict__ out, long long count, long long seed, float std) {
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    const u64 bits = mixed((u64)seed, (u64)i);
    // Box-Muller: (0, 1] for the logarithm, [0, 1) for the angle in half turns.
    const float u = ((unsigned)(bits >> 40) + 1) * 0x1p-24f;
    const float v = (unsigned)(bits & 0xFFFFFF) * 0x1p-23f;
    out[i] = narrowed<T>((double)(std * sqrtf(-2.0f * logf(u)) * cospif(v)));
  }
}

template <typename T>
__global__ void fill_uniform(T* __restrict__ out, long long count, long long seed, float low,
                             float high) {
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    const float u = (unsigned)(mixed((u64)seed, (u64)i) >> 40) * 0x1p-24f;
    out[i] = narrowed<T>((double)(low + (high - low) * u));
  }
}

template <typename T>
__global__ void fill_nan(T* __restrict__ out, long long count) {
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    out[i] = narrowed<T>(__longlong_as_double(0x7FF8000000000000ll));
  }
}

template <typename T>
__global__ void count_nan(const T* __restrict__ in, long long count, unsigned long long* total) {
  const long long step = (long long)gridDim.x * blockDim.x;
  unsigned long long mine = 0;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    const auto value = widened(in[i]);
    mine += value != value;
  }
  if (mine) atomicAdd(total, mine);
}
