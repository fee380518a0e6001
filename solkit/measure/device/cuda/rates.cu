// Kernels for ceilings that no operator stands for, and fills for formats that no operator has yet.
//
//   fma_chains   independent chains of fused multiply-adds in fp32: nothing but the fp32 pipe
//   read_cached  reads a buffer over and over, past L1: nothing but L2 reads
//   fill_e4m3, fill_int8   counter-based random values: the same for the same seed on any grid

typedef unsigned int u32;
typedef unsigned long long u64;

// flop = 2 x CHAINS x STEPS x rounds x threads. CHAINS x (8 warps a scheduler) is far more than the
// four cycles that a result takes; the loop itself is 3 instructions in CHAINS x STEPS. The factors
// keep every value near `shift / (1 - scale)`: no denormals, no infinities.
template <int BLOCK, int CHAINS, int STEPS>
__global__ void __launch_bounds__(BLOCK)
    fma_chains(float* out, long long rounds, float scale, float shift) {
  float value[CHAINS];
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) value[c] = 1.0f + 0.001f * (threadIdx.x + BLOCK * c);
  for (int round = 0; round < static_cast<int>(rounds); ++round) {
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
#pragma unroll
      for (int c = 0; c < CHAINS; ++c) value[c] = fmaf(value[c], scale, shift);
    }
  }
  float sum = 0.0f;
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) sum += value[c];
  out[blockIdx.x * BLOCK + threadIdx.x] = sum;
}

__device__ __forceinline__ uint4 load_cached(const uint4* source) {
  uint4 word;
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
               : "l"(source));
  return word;
}

// Bytes read = 16 x loads x threads; loads is a multiple of ITEMS. The threads walk `vectors` 16-byte
// words side by side and begin again at its end; step = threads mod vectors.
template <int BLOCK, int ITEMS>
__global__ void __launch_bounds__(BLOCK)
    read_cached(const uint4* __restrict__ x, u32* out, long long vectors, long long step,
                long long loads) {
  const u32 most = static_cast<u32>(vectors), stride = static_cast<u32>(step);
  u32 i = (blockIdx.x * BLOCK + threadIdx.x) % most;
  uint4 seen = make_uint4(0, 0, 0, 0);
  for (int load = 0; load < static_cast<int>(loads); load += ITEMS) {
    uint4 word[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      word[k] = load_cached(x + i);
      i += stride;
      if (i >= most) i -= most;
    }
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      seen.x ^= word[k].x;
      seen.y ^= word[k].y;
      seen.z ^= word[k].z;
      seen.w ^= word[k].w;
    }
  }
  out[blockIdx.x * BLOCK + threadIdx.x] = seen.x ^ seen.y ^ seen.z ^ seen.w;
}

// splitmix64: a full-period mix of a counter, one draw an element.
__device__ __forceinline__ u64 mixed(u64 seed, u64 index) {
  u64 z = seed + (index + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// Rounded to nearest even; 4 exponent bits with bias 7, 3 of mantissa, largest 448.
__device__ __forceinline__ unsigned char to_e4m3(float value) {
  const u32 bits = __float_as_uint(value), magnitude = bits & 0x7FFFFFFFu;
  u32 code;
  if (magnitude < 0x3C800000u) {  // below 2^-6: steps of 2^-9
    code = static_cast<u32>(rintf(__uint_as_float(magnitude) * 512.0f));
  } else {
    const u32 rounded = magnitude + 0x7FFFFu + (magnitude >> 20 & 1u);
    code = (rounded >> 20) - ((127u - 7u) << 3);
    code = code < 0x7Eu ? code : 0x7Eu;
  }
  return static_cast<unsigned char>(code | bits >> 24 & 0x80u);
}

extern "C" __global__ void fill_e4m3(unsigned char* out, long long count, long long seed) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const u64 bits = mixed(static_cast<u64>(seed), static_cast<u64>(i));
    const float u = (static_cast<u32>(bits >> 40) + 1) * 0x1p-24f;
    const float v = static_cast<u32>(bits & 0xFFFFFF) * 0x1p-23f;
    out[i] = to_e4m3(sqrtf(-2.0f * logf(u)) * cospif(v));  // Box-Muller: normal, deviation 1
  }
}

extern "C" __global__ void fill_int8(unsigned char* out, long long count, long long seed) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    out[i] = static_cast<unsigned char>(mixed(static_cast<u64>(seed), static_cast<u64>(i)) >> 56);
  }
}
