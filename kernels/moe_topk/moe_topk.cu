// Routing of a mixture of experts: softmax over each token's logits, the TOP_K largest in descending
// order, their weights scaled to the sum 1.
//
// logits [tokens, experts]: fp32, fp16, bf16; weight [tokens, TOP_K] fp32, expert [tokens, TOP_K]
// int32. Equal logits: the lowest index first. The full sum of exponentials cancels, so only TOP_K
// are taken: weight = exp(logit - most) / sum of these over the chosen. NaN ranks first, and makes
// all weights of its token NaN; so does +inf, as in the formula.
// Traffic: tokens x experts read, tokens x TOP_K x 8 bytes written. Ceiling: DRAM, above the launch
// itself: 8 MB of logits take 3.5 us, and a token may then cost a warp about 200 issue slots.
// Design: one warp a token, neighbouring experts in a lane, their logits as keys: unsigned integers
// in the order of the floats. A lane holds its largest key ready, and the one after it.
//   - In each of TOP_K rounds one warp-wide maximum finds the largest key, and one ballot the first
//     lane that holds it: lanes hold experts in order, so that is the lowest index, too.
//   - That lane notes its expert in shared memory and moves up the next. It rarely wins a third time
//     (5 in 100 tokens, for 8 of 256 random logits); only then it looks through its logits again.
//   - A population count or a second warp-wide operation in a round would each cost as much as eight
//     plain instructions.
// Measured on an H200, 2026-11-30, cold L2, fp32: 8192 tokens of 256 experts, top 8, 6.2 us (bf16 5.8),
// of 64, top 6, 3.1 us, of 512, top 8, 9.5 us; one token 1.8 us.
#include "math.cuh"
#include "reduce.cuh"
#include "vec.cuh"

using namespace solkit;

constexpr unsigned int ALL = 0xffffffffu;

// Larger for the larger float; the same for -0 and 0; never 0. The sum makes 0 of -0, and of any NaN
// the one whose bits are 0x7fffffff, so that its key is the largest of all.
__device__ __forceinline__ unsigned int key_of(float value) {
  const int bits = __float_as_int(value + 0.0f);
  return static_cast<unsigned int>(bits ^ (bits >> 31 | 0x80000000));
}

__device__ __forceinline__ float value_of(unsigned int key) {
  return __int_as_float(static_cast<int>(key >> 31 ? key ^ 0x80000000u : ~key));
}

// FULL: every lane has VALUES experts.
template <typename T, int VEC, int VALUES, bool FULL, int TOP_K, int WARPS>
__global__ void __launch_bounds__(WARPS * 32)
    moe_topk(const T* __restrict__ logits, float* __restrict__ weight, int* __restrict__ expert,
             long long tokens, long long experts) {
  static_assert(TOP_K <= 32, "a lane holds one of the chosen");
  __shared__ uint2 chosen[WARPS][TOP_K];  // key, expert
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const long long token = static_cast<long long>(blockIdx.x) * WARPS + warp;
  if (token >= tokens) return;  // whole warps leave: there is no barrier

  const int first = lane * VALUES, count = static_cast<int>(experts) - first;
  const T* const source = logits + token * experts + first;
  Vec<T, VEC> loaded[VALUES / VEC];
#pragma unroll
  for (int i = 0; i < VALUES; i += VEC) {
    if (FULL || i < count) loaded[i / VEC] = load_shared_by_blocks<T, VEC>(source + i);
  }
  unsigned int key[VALUES];
  unsigned int most = 0, next = 0;  // 0: none
  int most_at = 0, next_at = 0;     // which of the lane's VALUES
#pragma unroll
  for (int i = 0; i < VALUES; ++i) {
    key[i] = FULL || i < count ? key_of(to_float(loaded[i / VEC].item[i % VEC])) : 0;
    const bool before = key[i] > most;
    next_at = before ? most_at : key[i] > next ? i : next_at;
    next = max(next, min(most, key[i]));
    most_at = before ? i : most_at;
    most = max(most, key[i]);
  }

  const unsigned int below = (1u << lane) - 1;
#pragma unroll 1
  for (int k = 0; k < TOP_K; ++k) {
    const unsigned int largest = warp_max(most);
    const unsigned int holders = __ballot_sync(ALL, most == largest);
    const bool won = most == largest && !(holders & below);
    const int won_at = most_at;
    if (won) {
      chosen[warp][k] = {largest, static_cast<unsigned int>(first + won_at)};
      most = next;
      most_at = next_at;
      next = 0;
    }
    if (VALUES > 2 && won && most == 0) {
#pragma unroll
      for (int i = 0; i < VALUES; ++i) {
        const bool after = key[i] < largest || (key[i] == largest && i > won_at);
        if (after && key[i] > most) {
          most = key[i];
          most_at = i;
        }
      }
    }
  }
  __syncwarp();

  const uint2 mine = chosen[warp][lane < TOP_K ? lane : 0];
  const float top = value_of(chosen[warp][0].x);
  const float share = lane < TOP_K ? exp_fast(value_of(mine.x) - top) : 0.0f;
  const float sum = warp_reduce<Sum, power_of_two(TOP_K)>(share);
  if (lane < TOP_K) {
    weight[token * TOP_K + lane] = share * reciprocal_fast(sum);
    expert[token * TOP_K + lane] = static_cast<int>(mine.y);
  }
}
