// Sums of products that were split over the warps of a block and over the blocks of a cluster: added
// up, finished by the epilogue, and stored once.
//
// Each block has its parts in its shared memory as [PARTS][TOKENS][part_pitch(BN)] floats. Its warps
// add up their own, then every block of the cluster fetches its share of the outputs from all of them:
// loads of all ranks are under way at once. A quad, 4 neighbouring columns of a token, is the unit.
#pragma once

#include "cluster.cuh"
#include "epilogue.cuh"
#include "vec.cuh"

namespace solkit {

// Columns of a token in shared memory, padded: an accumulator fragment of mma.sync, whose lane has
// column t / 4 of tokens 2 (t % 4) and one more, is then stored without a bank conflict, and rows of
// quads begin at multiples of 16 bytes.
constexpr int part_pitch(int columns) { return columns + 4; }

// The first of `count` pieces that falls to block `rank` of `ranks`; that of the next rank ends its own.
__device__ __forceinline__ int first_of_rank(int count, int rank, int ranks) {
  return static_cast<int>(static_cast<long long>(count) * rank / ranks);
}

__device__ __forceinline__ float4 add(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// The quads of the block's TOKENS x BN outputs which block `rank` of the cluster finishes: a stretch of
// them, dealt to its threads in turn.
template <int TOKENS, int BN, int RANKS, int THREADS>
struct Share {
  static constexpr int ROW = BN / 4;  // quads of a token
  static constexpr int MOST = (TOKENS * ROW + RANKS * THREADS - 1) / (RANKS * THREADS);
  int first, end;  // of the stretch

  __device__ __forceinline__ Share(int rank, int tokens) {
    const int own = (tokens * ROW + RANKS - 1) / RANKS;
    first = rank * own;
    end = min(first + own, tokens * ROW);
  }

  // body(i, token, column) for this thread's quads whose columns are below `columns`.
  template <typename Body>
  __device__ __forceinline__ void for_each(long long columns, Body&& body) const {
#pragma unroll
    for (int i = 0; i < MOST; ++i) {
      const int quad = first + static_cast<int>(threadIdx.x) + i * THREADS;
      const int column = quad % ROW * 4;
      if (quad < end && column < columns) body(i, quad / ROW, column);
    }
  }
};

// What the epilogue adds starts on its way to L2: it is needed after the last product.
template <typename T, typename EPILOGUE, int TOKENS, int BN, int RANKS, int THREADS>
__device__ __forceinline__ void ask_for_addends(int rank, const T* bias, const T* residual,
                                                long long first_n, long long M, long long N) {
  const Share<TOKENS, BN, RANKS, THREADS> share(rank, static_cast<int>(M));
  share.for_each(N - first_n, [&](int, int token, int column) {
    if constexpr (EPILOGUE::HAS_BIAS) {
      asm volatile("prefetch.global.L2 [%0];" ::"l"(bias + first_n + column));
    }
    if constexpr (EPILOGUE::HAS_RESIDUAL) {
      asm volatile("prefetch.global.L2 [%0];" ::"l"(residual + token * N + first_n + column));
    }
  });
}

// The whole block calls it, with its part of the sums written to `parts`, and no barrier since.
template <typename T, typename EPILOGUE, int TOKENS, int BN, int PARTS, int RANKS, int THREADS>
__device__ __forceinline__ void add_up_and_store(float* parts, int rank, const T* bias,
                                                 const T* residual, T* out, long long first_n,
                                                 long long M, long long N, float alpha,
                                                 float beta) {
  static_assert(RANKS == 1 || HAS_CLUSTERS, "blocks of older cards stand alone");
  constexpr int PITCH = part_pitch(BN), PART = TOKENS * PITCH;
  const int tokens = static_cast<int>(M);
  const Share<TOKENS, BN, RANKS, THREADS> share(rank, tokens);
  const auto place = [&](int token, int column) {
    return reinterpret_cast<float4*>(parts + token * PITCH + column);
  };

  // Before the barriers: they take as long as these loads do.
  Vec<T, 4> bias_items[share.MOST], residual_items[share.MOST];
  share.for_each(N - first_n, [&](int i, int token, int column) {
    if constexpr (EPILOGUE::HAS_BIAS) {
      bias_items[i] = load_shared_by_blocks<T, 4>(bias + first_n + column);
    }
    if constexpr (EPILOGUE::HAS_RESIDUAL) {
      residual_items[i] = load_stream<T, 4>(residual + token * N + first_n + column);
    }
  });

  __syncthreads();
  if constexpr (RANKS > 1) {
    if constexpr (PARTS > 1) {
      const Share<TOKENS, BN, 1, THREADS> all(0, tokens);
      all.for_each(BN, [&](int, int token, int column) {
        float4* const target = place(token, column);
        float4 sum = *target;
#pragma unroll
        for (int p = 1; p < PARTS; ++p) sum = add(sum, target[p * PART / 4]);
        *target = sum;
      });
    }
    cluster_arrive();
    cluster_wait();
  }
  share.for_each(N - first_n, [&](int i, int token, int column) {
    const float4* const source = place(token, column);
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if constexpr (RANKS > 1) {
      float4 of_rank[RANKS];
#pragma unroll
      for (int r = 0; r < RANKS; ++r) of_rank[r] = load_from_rank(source, r);
#pragma unroll
      for (int r = 0; r < RANKS; ++r) sum = add(sum, of_rank[r]);
    } else {
#pragma unroll
      for (int p = 0; p < PARTS; ++p) sum = add(sum, source[p * PART / 4]);
    }
    const float sums[4] = {sum.x, sum.y, sum.z, sum.w};
    Vec<T, 4> items;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float b = EPILOGUE::HAS_BIAS ? to_float(bias_items[i].item[j]) : 0.0f;
      const float r = EPILOGUE::HAS_RESIDUAL ? to_float(residual_items[i].item[j]) : 0.0f;
      items.item[j] = from_float<T>(EPILOGUE::template apply<T>(sums[j], b, r, alpha, beta));
    }
    store<T, 4>(out + token * N + first_n + column, items);
  });
  if constexpr (RANKS > 1) {
    // "I have read": no block ends before all of its cluster have said so. Nothing is handed over, the
    // sums have come; a release would wait for the stores above.
    cluster_arrive_started();
    cluster_wait();
  }
}

}  // namespace solkit
