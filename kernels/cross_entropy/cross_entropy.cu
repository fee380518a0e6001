// Cross entropy of each token: lse = log sum exp(logits), loss = lse - logits[label].
//
// logits [tokens, vocab]; label [tokens] int32; loss, lse [tokens] fp32; dtypes fp32, fp16, bf16, fp32
// inside. Any vocab. A token whose label is IGNORED has loss 0; its lse is written all the same. Any
// other label outside 0 .. vocab - 1 gives NaN, and nothing is read there.
// Traffic: the logits once, 12 bytes a token. Ceiling: DRAM, reads alone.
// Technique: nothing is written but two numbers a row, so nothing needs to be kept of it: one pass
// with a running maximum and a sum relative to it. ITEMS loads are in flight a thread; their maximum
// is taken first, so that the sum is rescaled once for them all, not once an item. What a 2-byte
// stream leaves free at the ceiling of an H200 is 15 instructions an element; this takes 6.
// Maximum and sum then travel together: one exchange, one barrier a row. A token is a warp's, a
// block's or, where tokens are few, a cluster's (before CC 9.0 a block's, too).
// The label's logit is one load of its own, right after the row's first ones; odd lengths are cut at
// 16-byte boundaries. A row that holds +inf or NaN gives NaN, as the formula does.
// Measured on an H200, 2026-11-30, cold L2, of the roof measured at the same traffic, bf16: 8192 tokens x
// 32000 120 us (97 %), x 128256 464 us (99 %); 4096 x 262144 475 us (99 %); 2048 x 128256 122 us (95 %);
// 64 x 128256 7.0 us (73 %).
#include "cluster.cuh"
#include "math.cuh"
#include "max_sum.cuh"
#include "row_cut.cuh"
#include "vec.cuh"

using namespace solkit;

constexpr int IGNORED = -100;

template <bool VALUE>
struct Flag {
  static constexpr bool value = VALUE;
};

// One token, by THREADS threads of each of RANKS blocks; `lane` is a thread's number among them.
template <typename T, bool EDGES, int RANKS, int THREADS, int ITEMS>
__device__ __forceinline__ void one_token(const T* logits, const int* label, float* loss,
                                          float* lse, long long token, long long vocab, int rank,
                                          int lane) {
  constexpr int VEC = 16 / sizeof(T), STEP = RANKS * THREADS;
  __shared__ MailboxOf<THREADS, RANKS> box;
  open(box);
  const RowCut<VEC, EDGES> cut(token, vocab);
  const T* const row = logits + cut.origin;
  const bool writer = rank == 0 && lane == 0;
  const int wanted = writer ? label[token] : IGNORED;
  float single = minus_infinity();  // an item at one of the row's ends
  if (EDGES && rank == 0 && lane < 32) {
    const int column = cut.edge_column(lane);
    if (column >= 0) single = to_float(row[cut.head + column]);
  }
  // Asked for once the row's first loads are under way: it has to wait for the label.
  bool asked = !writer || wanted < 0 || wanted >= vocab;
  float labelled = __int_as_float(0x7fc00000);

  MaxSum part{minus_infinity(), 0.0f};
  const auto take = [&](int base, auto whole) {
    constexpr bool WHOLE = decltype(whole)::value;  // all ITEMS vectors are there
    const auto has = [&](int k) {
      const bool certain = WHOLE && (k > 0 || !EDGES);  // but for the lanes before the row
      return certain || cut.full(base + k * STEP);
    };
    Vec<T, VEC> value[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      if (has(k)) {
        value[k] = load_stream_alone<T, VEC>(row + static_cast<long long>(base + k * STEP) * VEC);
      }
    }
    if (!asked) {
      labelled = to_float(row[cut.head + wanted]);
      asked = true;
    }
    float most = part.most;
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      if (has(k)) {
        most = most_of(value[k], most);
        stay_packed(value[k]);
      }
    }
    part.sum *= rescale(part.most, most, LOG2_E);
    const Exponent exponent = exponent_within(most, LOG2_E);
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      if (has(k)) part.sum += sum_of_exp(value[k], exponent);
    }
    part.most = most;
  };
  int base = rank * THREADS + lane;
  for (; base + (ITEMS - 1) * STEP < cut.full_end; base += STEP * ITEMS) take(base, Flag<true>());
  if (base < cut.full_end) take(base, Flag<false>());
  if (!asked) labelled = to_float(row[cut.head + wanted]);
  if constexpr (EDGES) part = joined(part, single, LOG2_E);

  const MaxSum all = join_all<THREADS, RANKS>(part, LOG2_E, box);
  if (writer) {
    // The sum is relative to a rounded multiple of the maximum: divided by what the maximum adds.
    const float own = all.most == minus_infinity() ? 1.0f : Exponent(all.most, LOG2_E)(all.most);
    const float log_sum = all.most + logf(all.sum / own);
    lse[token] = log_sum;
    loss[token] = wanted == IGNORED ? 0.0f : log_sum - labelled;
  }
}

template <typename T, bool EDGES, int THREADS, int TOKENS, int ITEMS>
__global__ void __launch_bounds__(THREADS* TOKENS)
    cross_entropy(const T* __restrict__ logits, const int* __restrict__ label,
                  float* __restrict__ loss, float* __restrict__ lse, long long tokens,
                  long long vocab) {
  static_assert(TOKENS == 1 || THREADS == 32, "several tokens a block: one warp each");
  const long long token = static_cast<long long>(blockIdx.x) * TOKENS + threadIdx.x / THREADS;
  if (token >= tokens) return;  // whole warps leave: TOKENS > 1 has no barrier
  one_token<T, EDGES, 1, THREADS, ITEMS>(logits, label, loss, lse, token, vocab, 0,
                                         threadIdx.x % THREADS);
}

template <typename T, bool EDGES, int RANKS, int THREADS, int ITEMS>
__global__ void
#if __CUDA_ARCH__ >= 900
__cluster_dims__(RANKS, 1, 1)
#endif
    __launch_bounds__(THREADS)
        cross_entropy_cluster(const T* __restrict__ logits, const int* __restrict__ label,
                              float* __restrict__ loss, float* __restrict__ lse, long long tokens,
                              long long vocab) {
  if constexpr (HAS_CLUSTERS) {
    one_token<T, EDGES, RANKS, THREADS, ITEMS>(logits, label, loss, lse, blockIdx.x / RANKS, vocab,
                                               cluster_rank(), threadIdx.x);
  } else if (blockIdx.x < tokens) {  // the first blocks take a token each, the others none
    one_token<T, EDGES, 1, THREADS, ITEMS>(logits, label, loss, lse, blockIdx.x, vocab, 0,
                                           threadIdx.x);
  }
}
