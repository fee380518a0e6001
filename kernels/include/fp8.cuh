// Quotients and their rounding to fp8 e4m3 (4 exponent bits, 3 mantissa bits, largest 448, no
// infinity): to nearest even, beyond 448 to 448, NaN to NaN.
#pragma once

#include "math.cuh"
#include "vec.cuh"

namespace solkit {

constexpr float E4M3_MAX = 448.0f;

// The scale of a group whose largest magnitude is `most`: most / 448, 1 where all are 0, and never 0
// itself.
__device__ __forceinline__ float e4m3_scale(float most) {
  if (most > 1e-28f && most < 3.4e38f) {  // the division in three instructions
    constexpr float INVERSE = 1.0f / E4M3_MAX;
    const float estimate = most * INVERSE;
    return fmaf(fmaf(-estimate, E4M3_MAX, most), INVERSE, estimate);
  }
  const float scale = most / E4M3_MAX;
  return scale != 0.0f ? scale : most == 0.0f ? 1.0f : 1.401298464e-45f;
}

// Divides many numbers by one. quotient() gives what the division x / value gives, at three
// instructions: an estimate by the reciprocal, and one correction by the remainder, which is exact.
// A product with the reciprocal alone is an ulp off one time in four, and one in 8,500 random numbers
// then gets another code.
struct Divisor {
  float lift;  // a power of two by which both sides grow where value is near the range's end, or 1
  float divisor;  // lifted
  float inverse;

  __device__ __forceinline__ explicit Divisor(float value)
      : lift(value < 1e-28f ? 18446744073709551616.0f : 1.0f), divisor(value * lift) {
    const float estimate = reciprocal_fast(divisor);
    inverse = fmaf(fmaf(-divisor, estimate, 1.0f), estimate, estimate);
    if (estimate == 0.0f) {
      // x / inf is 0, and NaN for x = inf: the estimate alone, as a remainder of 0 x inf is NaN.
      divisor = 0.0f;
      inverse = 0.0f;
    }
  }

  __device__ __forceinline__ float quotient(float lifted) const {
    const float estimate = lifted * inverse;
    // The remainder's sign is turned, and turned back, so that -0 stays -0.
    return fmaf(-fmaf(estimate, divisor, -lifted), inverse, estimate);
  }
};

// The code of one number in integer arithmetic, for cards without the instruction.
__device__ __forceinline__ unsigned int e4m3_code(float x) {
  const unsigned int bits = __float_as_uint(x), sign = bits >> 24 & 0x80u;
  const float size = fminf(fabsf(x), E4M3_MAX);
  unsigned int code;
  if (size < 0.015625f) {
    // Below 2^-6 steps are 2^-9 wide, as floats' are at 2^14: adding that rounds, and counts them.
    code = __float_as_uint(size + 16384.0f) - __float_as_uint(16384.0f);
  } else {
    // Round the mantissa from 23 bits to 3 (a carry moves the exponent, as it should), and take the
    // exponent's bias from 127 to 7.
    const unsigned int wide = __float_as_uint(size);
    code = (wide + 0x7ffffu + (wide >> 20 & 1u) - (120u << 23)) >> 20;
  }
  return x != x ? 0x7fu : code | sign;
}

// Four codes, that of q[0] in bits 0 to 7. HARDWARE: by the instruction of CC 8.9 and newer, two
// items each, where the card has it.
template <bool HARDWARE>
__device__ __forceinline__ unsigned int e4m3_codes(float q0, float q1, float q2, float q3) {
#if __CUDA_ARCH__ >= 890
  if constexpr (HARDWARE) {
    unsigned int codes;
    asm("{\n.reg .b16 low, high;\n"
        "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
        "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
        "mov.b32 %0, {low, high};\n}"
        : "=r"(codes)
        : "f"(q0), "f"(q1), "f"(q2), "f"(q3));
    return codes;
  }
#endif
  return e4m3_code(q0) | e4m3_code(q1) << 8 | e4m3_code(q2) << 16 | e4m3_code(q3) << 24;
}

// round(value / divisor), item by item.
template <bool HARDWARE, typename T, int VEC>
__device__ __forceinline__ Vec<unsigned char, VEC> e4m3_quotients(const Vec<T, VEC>& value,
                                                                  const Divisor& divisor) {
  Vec<float, VEC> q = floats(value);
  if (divisor.lift != 1.0f) {
#pragma unroll
    for (int j = 0; j < VEC; ++j) q.item[j] *= divisor.lift;
  }
#pragma unroll
  for (int j = 0; j < VEC; ++j) q.item[j] = divisor.quotient(q.item[j]);
  Vec<unsigned char, VEC> codes;
  if constexpr (VEC % 4 == 0) {
    auto& words = reinterpret_cast<unsigned int(&)[VEC / 4]>(codes);
#pragma unroll
    for (int w = 0; w < VEC / 4; ++w) {
      const float* four = &q.item[4 * w];
      words[w] = e4m3_codes<HARDWARE>(four[0], four[1], four[2], four[3]);
    }
  } else {
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      codes.item[j] = static_cast<unsigned char>(e4m3_codes<HARDWARE>(q.item[j], 0.0f, 0.0f, 0.0f));
    }
  }
  return codes;
}

// The largest magnitude, as bits: those of |x| are in the order of its values, NaN above all. `most`
// is a running maximum, 0 at first: of two-byte items two side by side where the card compares them
// so (CC 9.0 on), else of all in the upper bits, the sign's bit shifted out.
template <typename T, int VEC>
__device__ __forceinline__ unsigned int larger_magnitude(unsigned int most,
                                                         const Vec<T, VEC>& value) {
  constexpr int BYTES = VEC * sizeof(T);
  if constexpr (BYTES < 4) {
    const auto item = static_cast<unsigned int>(reinterpret_cast<const unsigned short&>(value));
#if __CUDA_ARCH__ >= 900
    return max(most, item & 0x7fffu);
#else
    return max(most, item << 17);
#endif
  } else {
    auto& words = reinterpret_cast<const unsigned int(&)[BYTES / 4]>(value);
#pragma unroll
    for (int w = 0; w < BYTES / 4; ++w) {
      if constexpr (sizeof(T) == 4) {
        most = max(most, words[w] << 1);
      } else {
#if __CUDA_ARCH__ >= 900
        asm("max.u16x2 %0, %0, %1;" : "+r"(most) : "r"(words[w] & 0x7fff7fffu));
#else
        // The lower item only breaks ties of the upper one; its own turn is next.
        most = max(max(most, words[w] << 1), words[w] << 17);
#endif
      }
    }
    return most;
  }
}

// The bits of one number out of a running maximum; they are in order, too.
template <typename T>
__device__ __forceinline__ unsigned int magnitude_bits(unsigned int most) {
#if __CUDA_ARCH__ >= 900
  if constexpr (sizeof(T) == 2) return max(most >> 16, most & 0xffffu);
#endif
  return most >> (sizeof(T) == 2 ? 17 : 1);
}

// The float that such bits stand for.
template <typename T>
__device__ __forceinline__ float magnitude(unsigned int bits) {
  if constexpr (sizeof(T) == 4) {
    return __uint_as_float(bits);
  } else {
    const unsigned short item = static_cast<unsigned short>(bits);
    return to_float(reinterpret_cast<const T&>(item));
  }
}

}  // namespace solkit
