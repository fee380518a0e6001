// The instruments of the CUDA device: what surrounds a timed kernel, and what fills its buffers.
//
//   solkit_hold  blocks the stream until the host raises a flag, so that everything behind it is
//                queued before any of it runs; gives up after a time and says so
//   solkit_stamp writes (globaltimer ns, clock64 cycles) of SM 0, so that a pair of stamps gives the
//                SM clock held between them; CUPTI's records of stamps also fence off the calls
//   timer_step   finds the step of the global timer: 32 ns on an H200, about 1 us before Hopper
//   spin         keeps one thread busy for a known time: the truth that timers are held against
//   empty        does nothing: what the method reads on it is the method's floor
//   flush_read   reads a buffer larger than the L2, which leaves it full of clean foreign lines
//   fill_normal, fill_uniform, fill_bits   counter-based random values: the same for the same seed
//                on any grid
//   count_marks  how many entries still hold the poison (every bit set), and how many are NaN or
//                infinite
//   checksum     a sum over bits and places, which any changed or moved entry changes

#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef unsigned long long u64;

__device__ __forceinline__ u64 now_ns() {
  u64 t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

extern "C" __global__ void solkit_hold(volatile unsigned* flag, long long limit_ns) {
  const u64 start = now_ns();
  while (flag[0] == 0) {
    if (now_ns() - start > (u64)limit_ns) {
      flag[1] = 1;
      __threadfence_system();
      return;
    }
  }
}

extern "C" __global__ void solkit_stamp(long long* out) {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  if (sm == 0) {
    out[0] = (long long)now_ns();
    out[1] = clock64();
  }
}

extern "C" __global__ void timer_step(long long* out) {
  u64 least = ~0ull, last = now_ns();
  for (int i = 0; i < 4096; ++i) {
    const u64 now = now_ns();
    if (now > last && now - last < least) least = now - last;
    last = now;
  }
  out[0] = (long long)least;
}

extern "C" __global__ void spin(long long ns) {
  const u64 start = now_ns();
  while (now_ns() - start < (u64)ns) {
  }
}

extern "C" __global__ void flush_read(const uint4* __restrict__ in, long long count,
                                      unsigned* sink) {
  const long long step = (long long)gridDim.x * blockDim.x;
  unsigned seen = 0;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    const uint4 v = in[i];
    seen |= v.x | v.y | v.z | v.w;
  }
  if (seen) *sink = seen;  // the buffer is zero: the reads are needed, and nothing is written
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

// Eight random bytes a thread, the last of them as many as are left.
extern "C" __global__ void fill_bits(unsigned char* __restrict__ out, long long count,
                                     long long seed) {
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i * 8 < count; i += step) {
    u64 bits = mixed((u64)seed, (u64)i);
    for (long long at = i * 8; at < i * 8 + 8 && at < count; ++at, bits >>= 8) {
      out[at] = (unsigned char)bits;
    }
  }
}

struct fp8_e4m3;  // its codes are all that is looked at here

// The bits of a number, and those that are all set in NaN and infinity; 0 where there is neither.
template <typename T>
struct Format;
template <>
struct Format<double> {
  typedef u64 bits;
  static constexpr u64 exponent = 0x7FF0000000000000ull;
};
template <>
struct Format<float> {
  typedef unsigned bits;
  static constexpr unsigned exponent = 0x7F800000u;
};
template <>
struct Format<__half> {
  typedef unsigned short bits;
  static constexpr unsigned short exponent = 0x7C00;
};
template <>
struct Format<__nv_bfloat16> {
  typedef unsigned short bits;
  static constexpr unsigned short exponent = 0x7F80;
};
template <>
struct Format<fp8_e4m3> {
  typedef unsigned char bits;
  static constexpr unsigned char exponent = 0x7F;  // no infinity: NaN alone has all of them
};
template <>
struct Format<int> {
  typedef unsigned bits;
  static constexpr unsigned exponent = 0;
};

__device__ __forceinline__ u64 warp_total(u64 v) {
  for (int lane = 16; lane > 0; lane /= 2) v += __shfl_xor_sync(0xFFFFFFFFu, v, lane);
  return v;
}

// totals[0]: entries with every bit set; totals[1]: entries that are NaN or infinite; totals[2]: how
// many entries there are from the first such one to the end.
template <typename T>
__global__ void count_marks(const T* __restrict__ in, long long count, u64* totals) {
  typedef typename Format<T>::bits Bits;
  constexpr Bits exponent = Format<T>::exponent;
  const Bits* bits = reinterpret_cast<const Bits*>(in);
  const long long step = (long long)gridDim.x * blockDim.x;
  u64 unwritten = 0, non_finite = 0, left = 0;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    const Bits v = bits[i];
    unwritten += v == (Bits) ~(Bits)0;
    if (exponent && (v & exponent) == exponent) {
      if (non_finite == 0) left = (u64)(count - i);
      ++non_finite;
    }
  }
  if (non_finite) atomicMax(&totals[2], left);
  unwritten = warp_total(unwritten);
  non_finite = warp_total(non_finite);
  if (threadIdx.x % 32 == 0 && (unwritten | non_finite)) {
    atomicAdd(&totals[0], unwritten);
    atomicAdd(&totals[1], non_finite);
  }
}

template <typename Bits>
__global__ void checksum(const Bits* __restrict__ bits, long long count, u64* total) {
  const long long step = (long long)gridDim.x * blockDim.x;
  u64 mine = 0;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    mine += mixed((u64)bits[i], (u64)i);
  }
  mine = warp_total(mine);
  if (threadIdx.x % 32 == 0) atomicAdd(total, mine);
}
