// Several items in one memory access, 2 to 16 bytes, with named cache hints.
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

// Read once and not again: it takes no room in L1. The data must not change while the kernel runs
// (read-only path).
template <typename T, int N>
__device__ __forceinline__ Vec<T, N> load_stream(const T* source) {
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

template <typename T, int N>
__device__ __forceinline__ void store(T* target, Vec<T, N> value) {
  using W = typename Word<N * sizeof(T)>::type;
  *reinterpret_cast<W*>(target) = *reinterpret_cast<W*>(&value);
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

}  // namespace solkit
