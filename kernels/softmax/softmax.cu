// Softmax over each row: y = exp(t - max t) / sum(exp(t - max t)), t = x scale + mask.
//
// x, mask, y [rows, cols]; dtypes fp32, fp16, bf16; fp32 inside, y rounded once. Any cols.
// Mask::additive reads a mask like x. Mask::causal: row i sees columns 0 .. (i mod cols); the others
// give 0, whatever stands there, and no 16 bytes are read of which nothing is seen.
// Traffic: what is seen of x (and the mask) once, y once. Ceiling: DRAM.
// Technique: a row stays on the chip between the pass that needs its maximum and sum and the pass
// that writes: up to 8 vectors of 16 bytes a thread, packed in registers, all loaded before the first
// is looked at. What a row's blocks wait for each other is hidden by other rows on the same SM, so
// blocks are small and long rows have many, up to 16.
// Every thread takes exp relative to its own maximum, so that maximum and sum travel together: one
// exchange a row, over a warp, a block or the blocks of a cluster.
// exp is computed twice, for the sum and for the output: 2 exp2 an element stay under the 3.9 that a
// 2-byte stream leaves free on H200, and packed items need half the room of kept exponentials.
// Odd lengths are cut at 16-byte boundaries, single items at the ends go to the lanes of one warp.
// softmax: a warp or a block a row. softmax_cluster: a cluster a row, of at most as many blocks as the
// card holds; cards without clusters (before CC 9.0) take the two passes of softmax_looped, a block a
// row. softmax_looped: longer rows still; one pass for maximum and sum, a second that reads the row
// again, partly from L2, and writes.
// A row that holds +inf or NaN gives NaN, as the formula does; a row of -inf gives NaN too.
// Measured on an H200, 2026-11-30, cold L2, of the roof measured at the same traffic, bf16: 32768 x 4096
// 130 us (97 %), 8192 x 16384 130 us (96 %), 4096 x 50257 195 us (98 %), 4096 x 128256 498 us (99 %),
// 2048 x 262144 512 us (98 %), 512 x 128256 65 us (96 %), 64 x 128256 10.4 us (88 %), 1 x 262144 3.6 us;
// 32768 x 4096 with an additive mask 186 us (99 %), with a causal one 104 us (88 %).
// Tried at 512 x 128256, 65 us here: exponentials kept as fp32, 77; clusters that fetch the next row
// into shared memory while they write one, 81. At 8192 x 32768 causal, 154 us here: hidden zeros by
// bulk copies, 164; by blocks of their own, 154, but 113 for 104 at 32768 x 4096.
#include "cluster.cuh"
#include "math.cuh"
#include "max_sum.cuh"
#include "row_cut.cuh"
#include "sm.cuh"
#include "vec.cuh"

using namespace solkit;

enum class Mask { none, additive, causal };

// What a row is made of, and how its vectors become the scores t. For a causal mask and none, scores
// are the items themselves: the scale is part of to_log2, by which exponents are multiplied.
template <typename T, Mask MASK, bool EDGES>
struct Row {
  static constexpr int VEC = 16 / sizeof(T);
  using Items = Vec<T, VEC>;
  using Scores = Vec<float, VEC>;

  RowCut<VEC, EDGES> cut;
  const T *x, *mask;  // at the thread's first vector: where the others lie is then known at compile
  T* y;               // time, and a load's address costs nothing
  int mine;           // that vector's number
  float scale, to_log2;
  int seen, seen_end;  // columns, from the first; the vectors up to which any is seen

  __device__ __forceinline__ Row(const T* all_x, const T* all_mask, T* all_y, long long row,
                                 long long cols, float factor, int first)
      : cut(row, cols),
        x(all_x + cut.origin + first * VEC),
        mask(all_mask + cut.origin + first * VEC),
        y(all_y + cut.origin + first * VEC),
        mine(first),
        scale(factor),
        to_log2(MASK == Mask::additive ? LOG2_E : LOG2_E * factor),
        seen(cut.cols),
        seen_end(cut.full_end) {
    if constexpr (MASK == Mask::causal) {  // both fit into 32 bits, in which a division is short
      seen = static_cast<int>(static_cast<unsigned int>(row) % static_cast<unsigned int>(cols)) + 1;
      const int end = (cut.head + seen + VEC - 1) / VEC;
      seen_end = end < cut.full_end ? end : cut.full_end;
    }
  }

  __device__ __forceinline__ int offset(int vector) const { return (vector - mine) * VEC; }

  // Whether a vector is whole and any of it is seen.
  __device__ __forceinline__ bool has(int vector) const {
    return vector < seen_end && (!EDGES || vector >= cut.full_begin);
  }

  // Whether a vector is whole and nothing of it is seen.
  __device__ __forceinline__ bool hidden(int vector) const {
    return cut.full(vector) && vector >= seen_end;
  }

  __device__ __forceinline__ Scores scores(Items items, Items added) const {
    Scores t = floats(items);
    if constexpr (MASK == Mask::additive) {
      const Scores plus = floats(added);
#pragma unroll
      for (int j = 0; j < VEC; ++j) t.item[j] = fmaf(t.item[j], scale, plus.item[j]);
    }
    return t;
  }

  __device__ __forceinline__ float most_of(Items items, Items added, float most) const {
    if constexpr (MASK == Mask::additive) {
      return solkit::most_of(scores(items, added), most);
    } else {
      return solkit::most_of(items, most);
    }
  }

  // Take what a causal mask hides out of the one vector in which it ends.
  __device__ __forceinline__ void hide(Items& items, int vector) const {
    if constexpr (MASK == Mask::causal) {
      const int left = seen - (vector * VEC - cut.head);
      if (left >= VEC) return;
#pragma unroll
      for (int j = 0; j < VEC; ++j) {
        if (j >= left) items.item[j] = from_float<T>(minus_infinity());
      }
    }
  }

  // Write a whole vector of the result: scores where the row has them, else zeros.
  __device__ __forceinline__ void finish(Scores t, int vector, Exponent exponent,
                                         float factor) const {
    Items out;
#pragma unroll
    for (int j = 0; j < VEC; ++j) out.item[j] = from_float<T>(exponent(t.item[j]) * factor);
    if constexpr (MASK == Mask::causal) {  // not by exp(-inf): the row may be NaN
      const int left = seen - (vector * VEC - cut.head);
      if (left < VEC) {
#pragma unroll
        for (int j = 0; j < VEC; ++j) out.item[j] = j < left ? out.item[j] : from_float<T>(0.0f);
      }
    }
    store<T, VEC>(y + offset(vector), out);
  }

  __device__ __forceinline__ void finish_hidden(int vector) const {
    Items zeros;
#pragma unroll
    for (int j = 0; j < VEC; ++j) zeros.item[j] = from_float<T>(0.0f);
    store<T, VEC>(y + offset(vector), zeros);
  }
};

// A single item at the end of a row, in one lane; column -1: none. What is not seen is -inf.
template <typename T, Mask MASK, bool EDGES>
struct Edge {
  int column = -1;
  float score = minus_infinity();

  __device__ __forceinline__ Edge(const Row<T, MASK, EDGES>& row, int lane) {
    if (!EDGES || lane >= 32) return;
    column = row.cut.edge_column(lane);
    if (column < 0 || column >= row.seen) return;
    score = to_float(row.x[row.cut.head + column + row.offset(0)]);
    if constexpr (MASK == Mask::additive) {
      score = fmaf(score, row.scale, to_float(row.mask[row.cut.head + column + row.offset(0)]));
    }
  }

  __device__ __forceinline__ void finish(const Row<T, MASK, EDGES>& row, Exponent exponent,
                                         float factor) const {
    if (!EDGES || column < 0) return;
    const float share = exponent(score) * factor;
    row.y[row.cut.head + column + row.offset(0)] = from_float<T>(column < row.seen ? share : 0.0f);
  }
};

// One row, by THREADS threads of each of RANKS blocks; `lane` is a thread's number among them. Every
// thread's first WHOLE vectors are there in every row, so that nothing has to be asked before they
// are loaded: with a predicate for each load, the compiler ran out of predicates and held one back
// until another had arrived. So, and with an arrival in open() that waits for nothing, 64 x 128256
// bf16 went from 13.9 to 11.3 us on an H200.
template <typename T, Mask MASK, bool EDGES, int RANKS, int THREADS, int KEPT, int WHOLE>
__device__ __forceinline__ void on_chip(const T* x, const T* mask, T* y, long long number,
                                        long long cols, float scale, int rank, int lane) {
  constexpr int VEC = 16 / sizeof(T), STEP = RANKS * THREADS;
  constexpr bool ADDS = MASK == Mask::additive;
  __shared__ MailboxOf<THREADS, RANKS> box;
  open(box);
  const int mine = rank * THREADS + lane;
  const Row<T, MASK, EDGES> row(x, mask, y, number, cols, scale, mine);
  const auto has = [&](int c) { return row.has(mine + c * STEP); };
  const auto surely = [&](int c) { return c < WHOLE && (c > 0 || !EDGES); };  // odd rows begin late

  Vec<T, VEC> kept[KEPT], plus[ADDS ? KEPT : 1];
#pragma unroll
  for (int c = 0; c < KEPT; ++c) {
    const int v = mine + c * STEP;
    if (surely(c) || has(c)) {
      kept[c] = load_stream<T, VEC>(row.x + row.offset(v));
      if constexpr (ADDS) plus[c] = load_stream<T, VEC>(row.mask + row.offset(v));
    }
  }
  const Edge<T, MASK, EDGES> edge(row, rank == 0 ? lane : 32);
  if constexpr (MASK == Mask::causal) {  // while the loads are under way
#pragma unroll
    for (int c = 0; c < KEPT; ++c) {
      if (row.hidden(mine + c * STEP)) row.finish_hidden(mine + c * STEP);
    }
  }
  const auto added = [&](int c) {
    if constexpr (ADDS) {
      return plus[c];
    } else {
      return Vec<T, VEC>();
    }
  };

  // A few vectors at a time, as they arrive: the first are added up before the last are here.
  constexpr int GROUP = 2;
  MaxSum part{minus_infinity(), 0.0f};
#pragma unroll
  for (int first = 0; first < KEPT; first += GROUP) {
    float most = part.most;
#pragma unroll
    for (int c = first; c < first + GROUP && c < KEPT; ++c) {
      if (has(c)) {
        row.hide(kept[c], mine + c * STEP);
        stay_packed(kept[c]);
        most = row.most_of(kept[c], added(c), most);
      }
    }
    if (first > 0) part.sum *= rescale(part.most, most, row.to_log2);
    const Exponent exponent = exponent_within(most, row.to_log2);
#pragma unroll
    for (int c = first; c < first + GROUP && c < KEPT; ++c) {
      if (has(c)) {
        part.sum += sum_of_exp(row.scores(kept[c], added(c)), exponent);
        stay_packed(kept[c]);
      }
    }
    part.most = most;
    hold_order(part);
  }
  if constexpr (EDGES) part = joined(part, edge.score, row.to_log2);
  const MaxSum all = join_all<THREADS, RANKS>(part, row.to_log2, box);
  const Exponent exponent(all.most, row.to_log2);
  const float factor = reciprocal_fast(all.sum);
#pragma unroll
  for (int c = 0; c < KEPT; ++c) {
    const int v = mine + c * STEP;
    if (has(c)) row.finish(row.scores(kept[c], added(c)), v, exponent, factor);
  }
  edge.finish(row, exponent, factor);
}

// The same with two passes over the row, for any length.
template <typename T, Mask MASK, bool EDGES, int RANKS, int THREADS, int ITEMS>
__device__ __forceinline__ void in_two_passes(const T* x, const T* mask, T* y, long long number,
                                              long long cols, float scale, int rank, int lane) {
  constexpr int VEC = 16 / sizeof(T), STEP = RANKS * THREADS;
  __shared__ MailboxOf<THREADS, RANKS> box;
  open(box);
  const int mine = rank * THREADS + lane;
  const Row<T, MASK, EDGES> row(x, mask, y, number, cols, scale, mine);
  const Edge<T, MASK, EDGES> edge(row, rank == 0 ? lane : 32);

  MaxSum part{minus_infinity(), 0.0f};
  for (int base = mine; base < row.cut.full_end; base += STEP * ITEMS) {
    Vec<T, VEC> items[ITEMS], added[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      const int v = base + k * STEP;
      if (row.has(v)) items[k] = load<T, VEC>(row.x + row.offset(v));
      if (MASK == Mask::additive && row.has(v)) added[k] = load<T, VEC>(row.mask + row.offset(v));
    }
    float most = part.most;
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      const int v = base + k * STEP;
      if (row.has(v)) {
        row.hide(items[k], v);
        most = row.most_of(items[k], added[k], most);
      }
    }
    part.sum *= rescale(part.most, most, row.to_log2);
    const Exponent exponent = exponent_within(most, row.to_log2);
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      const int v = base + k * STEP;
      if (row.has(v)) {
        part.sum += sum_of_exp(row.scores(items[k], added[k]), exponent);
      }
    }
    part.most = most;
  }
  if constexpr (EDGES) part = joined(part, edge.score, row.to_log2);
  const MaxSum all = join_all<THREADS, RANKS>(part, row.to_log2, box);
  const Exponent exponent(all.most, row.to_log2);
  const float factor = reciprocal_fast(all.sum);
  for (int base = mine; base < row.cut.full_end; base += STEP * ITEMS) {
    Vec<T, VEC> items[ITEMS], added[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      const int v = base + k * STEP;
      if (row.has(v)) items[k] = load<T, VEC>(row.x + row.offset(v));
      if (MASK == Mask::additive && row.has(v)) added[k] = load<T, VEC>(row.mask + row.offset(v));
    }
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      const int v = base + k * STEP;
      if (row.has(v)) {
        row.finish(row.scores(items[k], added[k]), v, exponent, factor);
      } else if (MASK == Mask::causal && row.hidden(v)) {
        row.finish_hidden(v);
      }
    }
  }
  edge.finish(row, exponent, factor);
}

// Blocks that an SM must have room for: a thread's registers are what it keeps of a row and 16 to 30
// more, as the compiler counts them; 44 at the least (56 with odd ends), unless little is kept; up to
// 128 for a causal mask and odd ends together. Left to itself, the compiler spills some of what is kept
// to make room for more blocks.
template <Mask MASK, bool EDGES>
constexpr int resident_blocks(int threads, int kept) {
  const bool small = !EDGES && MASK != Mask::additive && kept <= 4;
  const int words = 4 * kept * (MASK == Mask::additive ? 2 : 1);
  const int most = words + (small ? MASK == Mask::none ? 16 : 30 : 28), least = EDGES ? 56 : 44;
  const int registers = MASK == Mask::causal && EDGES ? 128 : small || most > least ? most : least;
  const int fitting = 65536 / registers;
  const int resident = fitting < SM_THREADS ? fitting : SM_THREADS;
  const int blocks = resident / threads;
  return blocks < 1 ? 1 : blocks < 16 ? blocks : 16;
}

template <typename T, Mask MASK, bool EDGES, int THREADS, int ROWS, int KEPT, int WHOLE>
__global__ void __launch_bounds__(THREADS* ROWS, resident_blocks<MASK, EDGES>(THREADS* ROWS, KEPT))
    softmax(const T* __restrict__ x, const T* __restrict__ mask, T* __restrict__ y, long long rows,
            long long cols, float scale) {
  static_assert(ROWS == 1 || THREADS == 32, "several rows a block: a warp each");
  const long long row = static_cast<long long>(blockIdx.x) * ROWS + threadIdx.x / THREADS;
  if (row >= rows) return;  // whole warps leave: ROWS > 1 has no barrier
  on_chip<T, MASK, EDGES, 1, THREADS, KEPT, WHOLE>(x, mask, y, row, cols, scale, 0,
                                                   threadIdx.x % THREADS);
}

template <typename T, Mask MASK, bool EDGES, int RANKS, int THREADS, int KEPT, int WHOLE, int ITEMS>
__global__ void
#if __CUDA_ARCH__ >= 900
__cluster_dims__(RANKS, 1, 1)
#endif
    __launch_bounds__(THREADS, HAS_CLUSTERS ? resident_blocks<MASK, EDGES>(THREADS, KEPT) : 1)
        softmax_cluster(const T* __restrict__ x, const T* __restrict__ mask, T* __restrict__ y,
                        long long rows, long long cols, float scale) {
  if constexpr (HAS_CLUSTERS) {
    on_chip<T, MASK, EDGES, RANKS, THREADS, KEPT, WHOLE>(x, mask, y, blockIdx.x / RANKS, cols,
                                                         scale, cluster_rank(), threadIdx.x);
  } else if (blockIdx.x < rows) {  // the first blocks take a row each, the others none
    in_two_passes<T, MASK, EDGES, 1, THREADS, ITEMS>(x, mask, y, blockIdx.x, cols, scale, 0,
                                                     threadIdx.x);
  }
}

template <typename T, Mask MASK, bool EDGES, int RANKS, int THREADS, int ITEMS>
__global__ void
#if __CUDA_ARCH__ >= 900
__cluster_dims__(RANKS, 1, 1)
#endif
    __launch_bounds__(THREADS)
        softmax_looped(const T* __restrict__ x, const T* __restrict__ mask, T* __restrict__ y,
                       long long rows, long long cols, float scale) {
  if constexpr (HAS_CLUSTERS) {
    in_two_passes<T, MASK, EDGES, RANKS, THREADS, ITEMS>(x, mask, y, blockIdx.x / RANKS, cols,
                                                         scale, cluster_rank(), threadIdx.x);
  } else if (blockIdx.x < rows) {
    in_two_passes<T, MASK, EDGES, 1, THREADS, ITEMS>(x, mask, y, blockIdx.x, cols, scale, 0,
                                                     threadIdx.x);
  }
}
