// The two numbers that a softmax needs of a row, joined in any order: the largest value m and the sum
// of exp(value - m). Two parts join as M = max(m1, m2), s1 exp(m1 - M) + s2 exp(m2 - M).
//
// exp(v) is taken as 2^(v to_log2); to_log2 is log2(e), times a positive scale of the values where
// there is one. An exponent is one multiply-add, value to_log2 - m to_log2: the product is exact in
// it, and every part of a row subtracts the same rounded m to_log2, so its rounding cancels out.
// NaN never wins the maximum and always reaches the sum, and so does +inf (inf - inf): a row that
// holds either gives NaN, as the formula does. Nothing yet is (-inf, 0).
#pragma once

#include "cluster.cuh"
#include "math.cuh"
#include "reduce.cuh"
#include "vec.cuh"

namespace solkit {

__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }

// Exponents of this size and more have no digits left behind the point: two of them that differ do so
// by 64 or more, and 2 to that power is nothing beside 1. Only ties count there (rows filled with
// the lowest number there is), so values are compared without a factor, which could overflow.
constexpr float HUGE_EXPONENT = 1073741824.0f;  // 2^30

// How a value becomes the exponent that is relative to `most`: value * factor - shift.
struct Exponent {
  float factor, shift;

  __device__ __forceinline__ Exponent(float most, float to_log2)
      : factor(to_log2), shift(most * to_log2) {
    if (!(fabsf(shift) < HUGE_EXPONENT)) {
      factor = 1.0f;
      shift = most;
    }
  }

  __device__ __forceinline__ float operator()(float value) const {
    return exp2_fast(fmaf(value, factor, -shift));
  }
};

// What values are taken relative to in a part of a row: its maximum, and 0 where that is -inf, since
// -inf - -inf would turn a part without any weight into NaN.
__device__ __forceinline__ Exponent exponent_within(float most, float to_log2) {
  return Exponent(most == minus_infinity() ? 0.0f : most, to_log2);
}

// exp(part - most), by which a part's sum is scaled when `most` takes the place of its maximum. The
// products are rounded as a shift is, not joined with the difference into one multiply-add.
__device__ __forceinline__ float rescale(float part, float most, float to_log2) {
  const float shift = __fmul_rn(most, to_log2);
  return fabsf(shift) < HUGE_EXPONENT ? exp2_fast(__fmul_rn(part, to_log2) - shift)
                                      : (part == most ? 1.0f : 0.0f);
}

// The maximum over a warp, NaN left out. Bits of floats, those of negative ones turned round, are in
// the order of their values: one instruction from CC 8.0 on, not five shuffles in a row.
__device__ __forceinline__ float warp_most(float value) {
#if __CUDA_ARCH__ >= 800
  const int bits = __float_as_int(value);
  const int most = __reduce_max_sync(0xffffffffu, bits ^ ((bits >> 31) & 0x7fffffff));
  return __int_as_float(most ^ ((most >> 31) & 0x7fffffff));
#else
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
#endif
}

// The larger of two items each, one instruction from CC 8.0 on; NaN left out.
__device__ __forceinline__ __half2 larger(__half2 a, __half2 b) { return __hmax2(a, b); }
__device__ __forceinline__ __nv_bfloat162 larger(__nv_bfloat162 a, __nv_bfloat162 b) {
  return __hmax2(a, b);
}

template <typename T>
struct PairOf;
template <>
struct PairOf<__half> {
  using type = __half2;
};
template <>
struct PairOf<__nv_bfloat16> {
  using type = __nv_bfloat162;
};

// The largest item and `most`. Two-byte items are compared in pairs, which need not be unpacked.
template <typename T, int VEC>
__device__ __forceinline__ float most_of(Vec<T, VEC> value, float most) {
  if constexpr (sizeof(T) == 2 && VEC % 2 == 0) {
    using Pair = typename PairOf<T>::type;
    const auto& pair = reinterpret_cast<const Pair(&)[VEC / 2]>(value);
    Pair largest = pair[0];
#pragma unroll
    for (int j = 1; j < VEC / 2; ++j) largest = larger(largest, pair[j]);
    const Vec<float, 2> last = floats(reinterpret_cast<Vec<T, 2>&>(largest));
    return fmaxf(most, fmaxf(last.item[0], last.item[1]));
  } else {
#pragma unroll
    for (int j = 0; j < VEC; ++j) most = fmaxf(most, to_float(value.item[j]));
    return most;
  }
}

template <typename T, int VEC>
__device__ __forceinline__ float sum_of_exp(Vec<T, VEC> value, Exponent exponent) {
  const Vec<float, VEC> wide = floats(value);
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < VEC; ++j) sum += exponent(wide.item[j]);
  return sum;
}

struct MaxSum {
  float most, sum;
};

// Between two parts of a row: what follows is not moved before it. A compiler that is free to takes
// all maxima first and so waits for the last load before the first exp (4096 x 128256 bf16 on an H200:
// 604 us, 540 in order). A sum of exp is not negative, which it can't know; a branch is what it moves
// nothing over.
__device__ __forceinline__ void hold_order(MaxSum part) {
  if (part.sum < 0.0f) __trap();
}

__device__ __forceinline__ MaxSum joined(MaxSum part, float value, float to_log2) {
  const float most = fmaxf(part.most, value);
  return {most,
          part.sum * rescale(part.most, most, to_log2) + exponent_within(most, to_log2)(value)};
}

// Over WIDTH neighbouring lanes (a power of two); below 32, every group of WIDTH holds the same.
template <int WIDTH = 32>
__device__ __forceinline__ MaxSum warp_join(MaxSum mine, float to_log2) {
  const float most = warp_most(mine.most);
  return {most, warp_reduce<Sum, WIDTH>(mine.sum * rescale(mine.most, most, to_log2))};
}

// Where the warps of a block, and then the blocks of a cluster, leave their pairs.
template <int WARPS, int RANKS>
struct Mailbox {
  float2 of_warp[WARPS], of_rank[RANKS];
  unsigned long long barrier;
};

template <int THREADS, int RANKS>
using MailboxOf = Mailbox<THREADS / 32, RANKS>;

// Every block of a cluster opens its box and says that it runs and may be written to. The arrival is
// relaxed: one with release waits for all of the warp's loads first (28 % of a warp's time in a softmax
// of 4096 x 50257 on an H200).
template <int WARPS, int RANKS>
__device__ __forceinline__ void open(Mailbox<WARPS, RANKS>& box) {
  if constexpr (RANKS > 1) {
    if (threadIdx.x == 0) open_mailbox(&box.barrier);
    __syncwarp();
    cluster_arrive_started();
  }
}

template <int COUNT>
__device__ __forceinline__ MaxSum join_pairs(const float2 (&pair)[COUNT], float to_log2) {
  constexpr int WIDTH = power_of_two(COUNT);
  const int from = threadIdx.x % WIDTH;
  const float2 part = from < COUNT ? pair[from] : make_float2(minus_infinity(), 0.0f);
  return warp_join<WIDTH>(MaxSum{part.x, part.y}, to_log2);
}

// Over all threads of a cluster of RANKS blocks (or of a block, RANKS = 1), once a kernel. A block
// joins first and sends one pair to each of the others: a letter a warp would be 16 times as many.
template <int THREADS, int RANKS>
__device__ __forceinline__ MaxSum join_all(MaxSum mine, float to_log2,
                                           MailboxOf<THREADS, RANKS>& box) {
  static_assert(THREADS % 32 == 0 && THREADS <= 1024, "whole warps only");
  mine = warp_join(mine, to_log2);
  if constexpr (THREADS > 32) {
    if (threadIdx.x % 32 == 0) box.of_warp[threadIdx.x / 32] = make_float2(mine.most, mine.sum);
    __syncthreads();
  }
  if constexpr (RANKS == 1) {
    return THREADS > 32 ? join_pairs(box.of_warp, to_log2) : mine;
  } else {
    if (threadIdx.x < 32) {
      if constexpr (THREADS > 32) mine = join_pairs(box.of_warp, to_log2);
      cluster_wait();
      if (threadIdx.x == 0) expect_mail(&box.barrier, sizeof(box.of_rank));
      if (threadIdx.x < RANKS) {
        send_to_rank(&box.of_rank[cluster_rank()], &box.barrier, threadIdx.x,
                     make_float2(mine.most, mine.sum));
      }
    } else {
      cluster_wait();
    }
    wait_for_mail(&box.barrier);
    return join_pairs(box.of_rank, to_log2);
  }
}

}  // namespace solkit
