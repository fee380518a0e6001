// Packed weights in the type that the tensor cores multiply, and their copies and scales.
#pragma once

#include "mma.cuh"
#include "vec.cuh"

namespace solkit {

constexpr int TILE_ROWS = 16, MOST_TOKENS = 8;
constexpr int QUAD = 4;                         // lanes that share a row
constexpr int STEP_COLS = 128;                  // of a warp at a time
constexpr int COPY_BYTES = 16, COPY_WORDS = 4;  // of a lane at a time

// A number that the compiler doesn't see: it takes one immediate in an instruction, and would move
// another to a register anew for each use.
__device__ __forceinline__ unsigned int hidden(unsigned int number) {
  return __shfl_sync(0xffffffffu, number, 0);
}

// A left shift that stays one: the compiler would make right shifts of both that unpack needs, and
// those share their pipe with the masks; this one may go where integers are multiplied.
__device__ __forceinline__ unsigned int shifted_left(unsigned int word) {
  unsigned int result;
  asm("shl.b32 %0, %1, 4;" : "=r"(result) : "r"(word));
  return result;
}

// (word & MASK) | base, in one instruction.
template <unsigned int MASK>
__device__ __forceinline__ unsigned int masked_onto(unsigned int word, unsigned int base) {
  unsigned int result;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(word), "n"(MASK), "r"(base));
  return result;
}

__device__ __forceinline__ unsigned int difference(unsigned int a, unsigned int b, __half) {
  const __half2 pair = __hsub2(reinterpret_cast<__half2&>(a), reinterpret_cast<__half2&>(b));
  return reinterpret_cast<const unsigned int&>(pair);
}

__device__ __forceinline__ unsigned int difference(unsigned int a, unsigned int b, __nv_bfloat16) {
  const __nv_bfloat162 pair =
      __hsub2(reinterpret_cast<__nv_bfloat162&>(a), reinterpret_cast<__nv_bfloat162&>(b));
  return reinterpret_cast<const unsigned int&>(pair);
}

// The formats. unpack: a 32-bit word of weights as T, in pairs: weight p of the word and weight
// p + PAIRS. BASE: what their bits are OR-ed onto, a pair of powers of two. OFFSET: minus what all
// weights are too large by, as a pair; 0 where unpack has taken it off.

// A nibble in the mantissa of 128 (bf16) or 64 (fp16) is added to it. The difference is not taken
// weight by weight: x times the offset is the same for all rows.
template <typename T>
struct Int4 {
  static constexpr int PAIRS = 4;
  static constexpr unsigned int BASE = IS_BF16<T> ? 0x43004300 : 0x54005400;
  static constexpr unsigned int OFFSET =
      IS_BF16<T> ? 0xc308c308 : 0xd480d480;  // -(128 + 8), -(64 + 8)

  static __device__ __forceinline__ void unpack(unsigned int word, unsigned int base,
                                                unsigned int (&pair)[PAIRS]) {
#pragma unroll
    for (int p = 0; p < PAIRS; p += 2) {  // of a byte, the lower and the upper nibble
      const unsigned int bytes = p ? word >> 8 : word;
      if constexpr (IS_BF16<T>) {
        pair[p] = masked_onto<0x000f000f>(bytes, base);
        pair[p + 1] = masked_onto<0x000f000f>(word >> (4 * p + 4), base);
      } else {
        pair[p] = masked_onto<0x00f000f0>(shifted_left(bytes), base);
        pair[p + 1] = masked_onto<0x00f000f0>(bytes, base);
      }
    }
  }
};

// The same with less work for the pipe of shifts and masks, which has half the issue rate: bf16's
// upper nibbles come down by a fused multiply-add. 1792 + byte is an fp16 number with the byte in
// its mantissa; times 255 / 2^21, plus 1680 / 512, it is rounded to 3.5 + nibble / 512, whatever
// the lower nibble, and these bits as bf16 are 128 + nibble. It gave the walk 2 %; where registers
// are short (4 tiles), the one or two more that it takes were spilled, and it cost 19 %.
template <typename T>
struct Int4ByFma : Int4<T> {
  static constexpr int PAIRS = Int4<T>::PAIRS;

  static __device__ __forceinline__ void unpack(unsigned int word, unsigned int base,
                                                unsigned int (&pair)[PAIRS]) {
    if constexpr (IS_BF16<T>) {
#pragma unroll
      for (int p = 0; p < PAIRS; p += 2) {
        const unsigned int bytes = p ? word >> 8 : word;
        const unsigned int raised = masked_onto<0x00ff00ff>(bytes, 0x67006700);
        pair[p] = masked_onto<0x000f000f>(bytes, base);
        asm("fma.rn.f16x2 %0, %1, %2, %3;"
            : "=r"(pair[p + 1])
            : "r"(raised), "r"(0x07f807f8), "r"(0x42904290));
      }
    } else {
      Int4<T>::unpack(word, base, pair);
    }
  }
};

// fp16: value + 128, which has no sign, in the mantissa of 1024. bf16 has 7 bits of mantissa: the
// low 7 bits of a byte are added to 128, and the sign bit, which counts -128, lands on the exponent
// and makes 256 of another 128; the difference is the value.
template <typename T>
struct Int8 {
  static constexpr int PAIRS = 2;
  static constexpr unsigned int BASE = IS_BF16<T> ? 0x43004300 : 0x64006400;
  static constexpr unsigned int OFFSET = 0;

  static __device__ __forceinline__ void unpack(unsigned int word, unsigned int base,
                                                unsigned int (&pair)[PAIRS]) {
#pragma unroll
    for (int p = 0; p < PAIRS; ++p) {
      if constexpr (IS_BF16<T>) {
        pair[p] = difference(masked_onto<0x007f007f>(word >> (8 * p), base),
                             masked_onto<0x00800080>(word >> (8 * p), base), T());
      } else {
        const unsigned int raised = masked_onto<0x00ff00ff>((word ^ 0x80808080) >> (8 * p), base);
        pair[p] = difference(raised, 0x64806480, T());  // 1024 + 128
      }
    }
  }
};

// A copy that has L2 fetch the 256 bytes around it: these are wanted soon, by this warp or by those
// beside it.
__device__ __forceinline__ void copy16_async_of_256(unsigned int target, const void* source,
                                                    bool valid) {
#if __CUDA_ARCH__ >= 800
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" ::"r"(target), "l"(source),
               "r"(bytes)
               : "memory");
#else
  copy16_async(target, source, valid);
#endif
}

// The scales of N groups side by side, as bits, two in a word. The compiler would put single ones
// of two rows into a word, and for that wait at once for loads that are to be under way for a step:
// 25 % of the stalls were there.
template <typename T, int N>
__device__ __forceinline__ void load_scales(unsigned int (&words)[(N + 1) / 2], const T* source) {
  if constexpr (N == 4) {
    asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];"
                 : "=r"(words[0]), "=r"(words[1])
                 : "l"(source));
  } else if constexpr (N == 2) {
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(words[0]) : "l"(source));
  } else {
    static_assert(N == 1, "1, 2 or 4 scales in a load");
    asm volatile("ld.global.nc.u16 %0, [%1];" : "=r"(words[0]) : "l"(source));
  }
}

// Scale i of a word.
template <typename T>
__device__ __forceinline__ float scale_of(unsigned int word, int i) {
  if constexpr (IS_BF16<T>) {
    return __uint_as_float(i ? word & 0xffff0000u : word << 16);
  } else {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(i ? word >> 16 : word)));
  }
}

// The items of x that stand against a word of weights, 2 PAIRS in order, in its pairs.
template <int PAIRS>
__device__ __forceinline__ void pair_up(const unsigned int* x, unsigned int (&pair)[PAIRS]) {
#pragma unroll
  for (int p = 0; p < PAIRS; ++p) {
    pair[p] = __byte_perm(x[p / 2], x[p / 2 + PAIRS / 2], p % 2 ? 0x7632 : 0x5410);
  }
}

}  // namespace solkit
