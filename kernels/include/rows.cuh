// How threads share a row and hold it in registers: ROW_THREADS neighbouring threads of each of RANKS
// blocks own a row, and each holds CHUNKS vectors of it. Chunk c of a thread lies as many vectors
// behind its chunk c - 1 as the row has threads, so that neighbours always touch neighbouring
// vectors, and all of a thread's addresses are one pointer and constants.
//
// Rows of a warp's width at most stand ROWS to a block and need no barrier; longer ones have a block
// each, or, where they are few, a cluster of RANKS blocks: one SM takes about 0.5 us for 32 KB, and
// several fetch it at once; some thousands of long ones also get clusters. The declaration picks the
// numbers so that only the last chunk can reach over the row's end (solkit.declare.geometry,
// row_layout).
#pragma once

#include "cluster.cuh"
#include "reduce.cuh"
#include "sm.cuh"
#include "vec.cuh"

namespace solkit {

// Blocks for __launch_bounds__ that an SM should hold at once: `wanted` of them, if they fit. Left to
// itself, the compiler unpacks long rows early, so that half as many are under way, and saves
// registers with short ones by moving a weight's loads behind the reduction.
constexpr int resident_blocks(int threads, int wanted) {
  int most = SM_THREADS / threads;
  if (most > SM_BLOCKS) most = SM_BLOCKS;
  return most < 1 ? 1 : wanted < most ? wanted : most;
}

// Registers that a thread then gets: each of an SM's four parts has 16,384 for whole warps, and gives
// them by eights. 42 warps are 11 of one part, so that 40 are left, not the 48 of 65,536 / 1344.
constexpr int registers_left(int threads, int blocks) {
  const int warps_of_part = (threads / 32 * blocks + 3) / 4;
  return 16384 / 32 / warps_of_part / 8 * 8;
}

// Warps that share a row, over all of its blocks.
template <int ROW_THREADS, int RANKS>
constexpr int ROW_WARPS = ROW_THREADS > 32 ? ROW_THREADS / 32 * RANKS : RANKS;

// Where a block gets two numbers from each warp of its row, and, where other blocks send some of them
// (RANKS > 1), the bell that tells when all have come. One a kernel.
template <int WARPS>
struct RowMail {
  float2 slots[WARPS];
  unsigned long long bell;
};

template <int WARPS>
__device__ __forceinline__ RowMail<WARPS>& row_mail() {
  __shared__ RowMail<WARPS> mail;
  return mail;
}

template <int ROW_THREADS, int ROWS, int VEC, int CHUNKS, int RANKS = 1>
struct RowShare {
  static_assert(ROWS == 1 || ROW_THREADS <= 32, "several rows a block: a warp each at most");
  static_assert(RANKS == 1 || ROW_THREADS >= 32, "several blocks a row: whole warps");
  // Where the last block has rows too few, its idle threads do the last row again, with equal
  // results: no branch, and every lane is there for the shuffles.
  long long row;
  int first;  // the column at which the thread's first chunk starts
  bool last;  // whether its last chunk lies within the row

  __device__ __forceinline__ RowShare(long long rows, long long cols) {
    int lane = threadIdx.x % ROW_THREADS;
    if constexpr (RANKS == 1) {
      row = static_cast<long long>(blockIdx.x) * ROWS + threadIdx.x / ROW_THREADS;
      if (ROWS > 1 && row >= rows) row = rows - 1;
    } else {
      row = blockIdx.x / RANKS;
      lane += cluster_rank() * ROW_THREADS;
    }
    first = lane * VEC;
    last = first + offset(CHUNKS - 1) < cols;
  }

  // Where a row has several blocks: open the mail, and tell the others that this block runs and may be
  // written to. Once, as soon as all loads are under way. The branch, never taken, holds it there;
  // without, the compiler put it behind the first use of what is loaded, and all blocks waited for it.
  __device__ __forceinline__ void loads_under_way(long long cols) const {
    if constexpr (RANKS > 1) {
      if (threadIdx.x == 0) open_mailbox(&row_mail<ROW_WARPS<ROW_THREADS, RANKS>>().bell);
      __syncwarp();
      cluster_arrive_started();
      if (cols < 0) __trap();
    }
  }

  // Where chunk `chunk` lies from the thread's first.
  static constexpr int offset(int chunk) { return chunk * RANKS * ROW_THREADS * VEC; }

  // Where the thread's first chunk lies in a tensor of rows of `cols`.
  __device__ __forceinline__ long long start(long long cols) const { return row * cols + first; }

  // Whether the thread has this chunk.
  __device__ __forceinline__ bool has(int chunk) const { return chunk + 1 < CHUNKS || last; }

  // How many columns warp `warp` of the row holds, where the row has several.
  static __device__ __forceinline__ float held_by_warp(int warp, long long cols) {
    const int rest = static_cast<int>(cols) - warp * 32 * VEC - offset(CHUNKS - 1);
    const int of_last = rest < 0 ? 0 : rest < 32 * VEC ? rest : 32 * VEC;
    return static_cast<float>(of_last + (CHUNKS - 1) * 32 * VEC);
  }

  // The number of this thread's warp among those of its row.
  __device__ __forceinline__ int warp() const { return first / (32 * VEC); }
};

// load_stream where the vector lies within the row, else zeros. The choice is made on words, by a
// predicate: a branch would part the loads, and a choice item by item costs eight instructions.
template <typename T, int N>
__device__ __forceinline__ Vec<T, N> load_within(const T* source, bool within) {
  using W = typename Word<N * sizeof(T)>::type;
  W word;
  if constexpr (sizeof(W) == 16) {
    asm volatile(
        "{\n.reg .pred within;\nsetp.ne.u32 within, %5, 0;\n"
        "mov.u32 %0, 0;\nmov.u32 %1, 0;\nmov.u32 %2, 0;\nmov.u32 %3, 0;\n"
        "@within ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
        : "=&r"(word.x), "=&r"(word.y), "=&r"(word.z), "=&r"(word.w)
        : "l"(source), "r"(static_cast<unsigned int>(within)));
  } else {
    word = within ? __ldg(reinterpret_cast<const W*>(source)) : W{};
  }
  return *reinterpret_cast<Vec<T, N>*>(&word);
}

// The thread's chunk `c` of a row; zeros where it lies behind the row's end.
template <typename T, int ROW_THREADS, int ROWS, int VEC, int CHUNKS, int RANKS>
__device__ __forceinline__ Vec<T, VEC> load_chunk(
    const RowShare<ROW_THREADS, ROWS, VEC, CHUNKS, RANKS>& share, const T* first, int c) {
  return c + 1 < CHUNKS ? load_stream<T, VEC>(first + share.offset(c))
                        : load_within<T, VEC>(first + share.offset(c), share.last);
}

// All of the thread's chunks of a row.
template <typename Share, typename T, int VEC, int CHUNKS>
__device__ __forceinline__ void load_row(const Share& share, const T* first,
                                         Vec<T, VEC> (&chunk)[CHUNKS]) {
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) chunk[c] = load_chunk(share, first, c);
}

// `source`, computed from the vector `come` as well, so that no load from there is asked for before
// `come` is here. No bit of it counts: `cols` is never negative, but the compiler can't know.
template <typename T, int VEC>
__device__ __forceinline__ const T* after(const Vec<T, VEC>& come, const T* source,
                                          long long cols) {
  if constexpr (VEC * sizeof(T) >= 4) {
    const auto never = static_cast<unsigned int>(cols >> 63);
    source += reinterpret_cast<const unsigned int&>(come) & never;
  }
  return source;
}

// A row that all rows need, such as a weight. With few chunks it is fetched beside the row; with more,
// for which there are no registers, chunk by chunk as it is used, one ahead, from L1 or L2.
template <typename T, int VEC, int CHUNKS>
struct Weights {
  static constexpr bool EARLY = CHUNKS <= 2;
  static constexpr int KEPT = EARLY ? CHUNKS : 1;
  const T* first;
  Vec<T, VEC> kept[KEPT];

  template <typename Share>
  __device__ __forceinline__ Weights(const Share& share, const T* weight)
      : first(weight + share.first) {
    if constexpr (EARLY) load_row(share, first, kept);
  }

  // Where that pays: have those loads done before `held`, of what the reduction needs, is used
  // again, by a use in it that changes nothing (no row has a negative number of columns, but the
  // compiler can't know). It would move them behind the reduction, to save registers, and each block
  // would wait for DRAM twice.
  template <typename Held>
  __device__ __forceinline__ void come_with(Held& held, long long cols) const {
    if constexpr (EARLY && VEC * sizeof(T) >= 4) {
      const auto never = static_cast<unsigned int>(cols >> 63);
#pragma unroll
      for (int c = 0; c < CHUNKS; ++c) {
        reinterpret_cast<unsigned int&>(held) |=
            reinterpret_cast<const unsigned int&>(kept[c]) & never;
      }
    }
  }

  // Before the first chunk is used.
  template <typename Share>
  __device__ __forceinline__ void begin(const Share& share) {
    if constexpr (!EARLY) kept[0] = load_chunk(share, first, 0);
  }

  // Chunk `c`; they are taken in order.
  template <typename Share>
  __device__ __forceinline__ Vec<T, VEC> take(const Share& share, int c) {
    Vec<T, VEC> taken = kept[EARLY ? c : 0];
    if constexpr (EARLY) {
      stay_packed(taken);
    } else if (c + 1 < CHUNKS) {
      kept[0] = load_chunk(share, first, c + 1);
    }
    return taken;
  }
};

// Two numbers of each warp of a row, handed to all of its threads: lane l of each warp gets those of
// warp l of the row, and zeros where there is none. Once a kernel. Between blocks, each letter rings
// where it arrives: a second barrier of the cluster, after the numbers are stored, took 0.15 to 0.2 us
// more on an H200.
template <int ROW_THREADS, int RANKS>
__device__ __forceinline__ float2 exchange(float2 of_warp) {
  constexpr int WARPS = ROW_WARPS<ROW_THREADS, RANKS>;
  static_assert(WARPS <= 32, "a warp joins them");
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  auto& mail = row_mail<WARPS>();
  if constexpr (RANKS == 1) {
    if (lane == 0) mail.slots[warp] = of_warp;
    __syncthreads();
  } else {
    cluster_wait();  // until all its blocks have started
    if (threadIdx.x == 0) expect_mail(&mail.bell, sizeof(mail.slots));
    if (lane < RANKS) {
      send_to_rank(&mail.slots[cluster_rank() * (WARPS / RANKS) + warp], &mail.bell, lane, of_warp);
    }
    wait_for_mail(&mail.bell);
  }
  const int from = lane % power_of_two(WARPS);
  return from < WARPS ? mail.slots[from] : make_float2(0.0f, 0.0f);
}

// The sum over the threads of a row.
template <int ROW_THREADS, int RANKS = 1>
__device__ __forceinline__ float row_sum(float value) {
  constexpr int WARPS = ROW_WARPS<ROW_THREADS, RANKS>, WIDTH = ROW_THREADS < 32 ? ROW_THREADS : 32;
  value = warp_reduce<Sum, WIDTH>(value);
  if constexpr (WARPS == 1) {
    return value;
  } else {
    const float2 part = exchange<ROW_THREADS, RANKS>(make_float2(value, 0.0f));
    return warp_reduce<Sum, power_of_two(WARPS)>(part.x);
  }
}

// The largest of unsigned integers over the threads of a row.
template <int ROW_THREADS, int RANKS = 1>
__device__ __forceinline__ unsigned int row_max(unsigned int value) {
  constexpr int WARPS = ROW_WARPS<ROW_THREADS, RANKS>, WIDTH = ROW_THREADS < 32 ? ROW_THREADS : 32;
  value = warp_max<WIDTH>(value);
  if constexpr (WARPS == 1) {
    return value;
  } else {
    const float2 mine = make_float2(__uint_as_float(value), 0.0f);
    return warp_max(__float_as_uint(exchange<ROW_THREADS, RANKS>(mine).x));
  }
}

}  // namespace solkit
