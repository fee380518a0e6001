// Several items in one memory access, 1 to 16 bytes, with named cache hints.
//
// A Vec<T, N> is N items side by side; its address must be a multiple of its size. Every kernel
// takes N as a template argument: 16 bytes where the shape allows it, less where a row's length
// would leave the next row unaligned.
#pragma once

#include "types.cuh"

namespace solkit {

template <int BYTES>
struct Word;
template <>
struct Word<1> {
  using type = unsigned char;
};
template <>
struct Word<2> {
  using type = unsigned short;
};
template <>
struct Word<4> {
  using type = unsigned int;
};
template <>
struct Word<8> {
  using type = uint2;
};
template <>
struct Word<16> {
  using type = uint4;
};

template <typename T, int N>
struct alignas(N * sizeof(T)) Vec {
  T item[N];
};

// Read once, beside writes, by the read-only path: the data must not change while the kernel runs.
// No hint: on an H200, 2 reads + 1 write of 402 MB took 92.9 us so, and 99.1 us with a hint that the
// lines are not needed again (L1::no_allocate, evict_first, .cs); 2 + 2 of 537 MB 127.1 and 130.8.
template <typename T, int N>
__device__ __forceinline__ Vec<T, N> load_stream(const T* source) {
  using W = typename Word<N * sizeof(T)>::type;
  W word;
  if constexpr (sizeof(W) == 16) {
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
                 : "l"(source));
  } else {
    word = __ldg(reinterpret_cast<const W*>(source));
  }
  return *reinterpret_cast<Vec<T, N>*>(&word);
}

// The same for kernels that write next to nothing: it takes no room in L1, which gave reads of
// 537 MB 0.5 % (115.6 us against 116.2 on an H200).
template <typename T, int N>
__device__ __forceinline__ Vec<T, N> load_stream_alone(const T* source) {
  using W = typename Word<N * sizeof(T)>::type;
  W word;
  if constexpr (sizeof(W) == 16) {
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
                 : "l"(source));
  } else {
    word = __ldg(reinterpret_cast<const W*>(source));
  }
  return *reinterpret_cast<Vec<T, N>*>(&word);
}

// Read by many blocks (a weight, a bias): read-only path, kept in L1 and L2.
template <typename T, int N>
__device__ __forceinline__ Vec<T, N> load_shared_by_blocks(const T* source) {
  using W = typename Word<N * sizeof(T)>::type;
  W word = __ldg(reinterpret_cast<const W*>(source));
  return *reinterpret_cast<Vec<T, N>*>(&word);
}

// An ordinary load: for data that this very thread has written, or reads again soon.
template <typename T, int N>
__device__ __forceinline__ Vec<T, N> load(const T* source) {
  using W = typename Word<N * sizeof(T)>::type;
  W word = *reinterpret_cast<const W*>(source);
  return *reinterpret_cast<Vec<T, N>*>(&word);
}

// To global memory, in one instruction. A plain assignment of 16 bytes may be split into four
// stores of 4, each as early as its own items are ready: bias_gelu of 8192 x 10240 in bf16 took
// 136 us so on an H200, and 83 us with whole stores.
template <typename T, int N>
__device__ __forceinline__ void store(T* target, Vec<T, N> value) {
  using W = typename Word<N * sizeof(T)>::type;
  const W word = *reinterpret_cast<W*>(&value);
  if constexpr (sizeof(W) == 16) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(target), "r"(word.x), "r"(word.y),
                 "r"(word.z), "r"(word.w)
                 : "memory");
  } else if constexpr (sizeof(W) == 8) {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(target), "r"(word.x), "r"(word.y)
                 : "memory");
  } else {
    *reinterpret_cast<W*>(target) = word;
  }
}

// Make the compiler forget what it knows of these items' float values, so that between two uses they
// wait in registers packed. Without it, it keeps bf16 items unpacked (a shift it would rather not
// repeat): twice the registers, and spills in long rows.
template <typename T, int N>
__device__ __forceinline__ void stay_packed(Vec<T, N>& value) {
  if constexpr (N * sizeof(T) >= 4) {
    auto& words = reinterpret_cast<unsigned int(&)[N * sizeof(T) / 4]>(value);
#pragma unroll
    for (int w = 0; w < static_cast<int>(N * sizeof(T) / 4); ++w) asm volatile("" : "+r"(words[w]));
  }
}

// All items as floats. Of a bf16 pair, one is a shift and the other a mask of the packed word: one
// instruction each, where items taken out singly cost three for two.
template <typename T, int N>
__device__ __forceinline__ Vec<float, N> floats(Vec<T, N> value) {
  Vec<float, N> wide;
#pragma unroll
  for (int j = 0; j < N; ++j) wide.item[j] = to_float(value.item[j]);
  return wide;
}

template <int N>
__device__ __forceinline__ Vec<float, N> floats(Vec<__nv_bfloat16, N> value) {
  Vec<float, N> wide;
  if constexpr (N % 2 == 0) {
    const auto& words = reinterpret_cast<const unsigned int(&)[N / 2]>(value);
#pragma unroll
    for (int w = 0; w < N / 2; ++w) {
      wide.item[2 * w] = __uint_as_float(words[w] << 16);
      wide.item[2 * w + 1] = __uint_as_float(words[w] & 0xffff0000u);
    }
  } else {
#pragma unroll
    for (int j = 0; j < N; ++j) wide.item[j] = to_float(value.item[j]);
  }
  return wide;
}

// All items rounded to T, to nearest even. Pairs by one instruction: items rounded singly, where their
// values are needed again, take the conversion unit, which has an eighth of the rate.
template <typename T, int N>
__device__ __forceinline__ Vec<T, N> rounded(Vec<float, N> wide) {
  Vec<T, N> value;
  if constexpr (sizeof(T) == 2 && N % 2 == 0) {
    auto& words = reinterpret_cast<unsigned int(&)[N / 2]>(value);
#pragma unroll
    for (int w = 0; w < N / 2; ++w)
      words[w] = rounded_pair<T>(wide.item[2 * w], wide.item[2 * w + 1]);
  } else {
#pragma unroll
    for (int j = 0; j < N; ++j) value.item[j] = from_float<T>(wide.item[j]);
  }
  return value;
}

}  // namespace solkit
