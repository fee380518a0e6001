// Products of the fewest rows by fp32 multiply-adds; see few_rows.cuh.
//
// matmul_gemv_nk: SHARERS warps take COLS columns; a warp reads 256 neighbouring k of each at once,
//   DEPTH such pieces before the first product.
// matmul_gemv_kn: a thread takes 8 neighbouring columns and reads 8 rows of weight before the first
//   product. COL_LANES lanes lie along the columns; the others of a warp, the warps of a block and the
//   RANKS blocks of a cluster share K.
// RESIDENT blocks are to stand on an SM. It must leave a thread the registers to have all its loads
// under way at once: with none said, the compiler puts loads off, to need fewer registers.
#pragma once

#include "reduce.cuh"
#include "split_sums.cuh"

namespace solkit {

// 8 weights, read once. ALONE: they take no room in L1.
template <bool ALONE, typename T>
__device__ __forceinline__ Vec<T, 8> load_weights(const T* source) {
  if constexpr (ALONE) {
    return load_stream_alone<T, 8>(source);
  } else {
    return load_stream<T, 8>(source);
  }
}

template <typename T>
__device__ __forceinline__ Vec<T, 8> zero_unless(bool valid, Vec<T, 8> items) {
  auto& words = reinterpret_cast<unsigned int (&)[4]>(items);
#pragma unroll
  for (int w = 0; w < 4; ++w) words[w] = valid ? words[w] : 0;
  return items;
}

// A bool as a type, for a lambda.
template <bool V>
struct Known {
  static constexpr bool VALUE = V;
};

template <typename T, int TOKENS, int COLS, int DEPTH, int WARPS, int SHARERS, int RESIDENT,
          bool ALONE, typename EPILOGUE>
__global__ void __launch_bounds__(32 * WARPS, RESIDENT)
    matmul_gemv_nk(const T* __restrict__ x, const T* __restrict__ weight,
                   const T* __restrict__ bias, const T* __restrict__ residual, T* __restrict__ out,
                   long long M, long long K, long long N, float alpha, float beta) {
  constexpr int PIECE = 32 * 8, GROUPS = WARPS / SHARERS, SUMS = TOKENS * COLS;
  static_assert(SUMS <= 32 && WARPS % SHARERS == 0, "a lane finishes one sum");
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int group = warp / SHARERS, sharer = warp % SHARERS;
  const long long first_n = (static_cast<long long>(blockIdx.x) * GROUPS + group) * COLS;

  // Columns beyond N and tokens beyond M are the last ones again, and not stored.
  const T *source[COLS], *tokens[TOKENS];
#pragma unroll
  for (int c = 0; c < COLS; ++c) source[c] = weight + min(first_n + c, N - 1) * K;
#pragma unroll
  for (int t = 0; t < TOKENS; ++t) tokens[t] = x + min(static_cast<long long>(t), M - 1) * K;

  // Lane token * COLS + c finishes that sum, in one of the warps that share it.
  const int token = lane / COLS;
  const long long n = first_n + lane % COLS;
  const bool finishes = sharer == 0 && token < M && token < TOKENS && n < N;
  float bias_item = 0.0f, residual_item = 0.0f;
  if constexpr (EPILOGUE::HAS_BIAS) {
    if (finishes) bias_item = to_float(bias[n]);
  }
  if constexpr (EPILOGUE::HAS_RESIDUAL) {
    if (finishes) residual_item = to_float(residual[token * N + n]);
  }

  float sum[TOKENS][COLS] = {};
  const int depth = static_cast<int>(K);
  // DEPTH pieces from k on. WHOLE: none of them reaches beyond K; there the last weights are read again
  // by an ordinary load, and count as zeros.
  const auto multiply = [&](int k, auto whole) {
    constexpr bool WHOLE = decltype(whole)::VALUE;
    const int from = k + lane * 8;
    const auto place = [&](int d) {
      return WHOLE ? from + d * PIECE : min(from + d * PIECE, depth - 8);
    };
    Vec<T, 8> weights[DEPTH][COLS];
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
#pragma unroll
      for (int c = 0; c < COLS; ++c) weights[d][c] = load_weights<ALONE>(source[c] + place(d));
    }
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
      const bool valid = WHOLE || from + d * PIECE < depth;
      Vec<float, 8> wide[COLS];
#pragma unroll
      for (int c = 0; c < COLS; ++c) wide[c] = floats(zero_unless(valid, weights[d][c]));
#pragma unroll
      for (int t = 0; t < TOKENS; ++t) {
        const Vec<T, 8> items = load_shared_by_blocks<T, 8>(tokens[t] + place(d));
        const Vec<float, 8> factor = floats(zero_unless(valid, items));
#pragma unroll
        for (int c = 0; c < COLS; ++c) {
          float part = 0.0f;  // a chain of its own for each piece
#pragma unroll
          for (int j = 0; j < 8; ++j) part = fmaf(factor.item[j], wide[c].item[j], part);
          sum[t][c] += part;
        }
      }
    }
  };
  constexpr int STRIDE = DEPTH * PIECE;
  int k = sharer * STRIDE;
#pragma unroll 1
  for (; k + STRIDE <= depth; k += SHARERS * STRIDE) multiply(k, Known<true>{});
  if (k < depth) multiply(k, Known<false>{});

  float own = 0.0f;
#pragma unroll
  for (int i = 0; i < SUMS; ++i) {
    const float total = warp_reduce<Sum>(sum[i / COLS][i % COLS]);
    if (lane == i) own = total;
  }
  if constexpr (SHARERS > 1) {
    __shared__ float parts[WARPS][SUMS];
    if (lane < SUMS) parts[warp][lane] = own;
    __syncthreads();
    if (finishes) {
#pragma unroll
      for (int s = 1; s < SHARERS; ++s) own += parts[warp + s][lane];
    }
  }
  if (finishes) {
    out[token * N + n] =
        from_float<T>(EPILOGUE::template apply<T>(own, bias_item, residual_item, alpha, beta));
  }
}

template <typename T, int TOKENS, int COL_LANES, int WARPS, int RANKS, int RESIDENT, bool ALONE,
          typename EPILOGUE>
__global__ void __launch_bounds__(32 * WARPS, RESIDENT)
    matmul_gemv_kn(const T* __restrict__ x, const T* __restrict__ weight,
                   const T* __restrict__ bias, const T* __restrict__ residual, T* __restrict__ out,
                   long long M, long long K, long long N, float alpha, float beta) {
  constexpr int BN = COL_LANES * 8, SHARERS = 32 / COL_LANES, THREADS = 32 * WARPS;
  constexpr int PITCH = part_pitch(BN);
  extern __shared__ uint4 shared[];  // [WARPS][TOKENS][PITCH] floats
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int rank = RANKS > 1 ? cluster_rank() : 0, sharer = lane / COL_LANES;
  const long long first_n = static_cast<long long>(blockIdx.x / RANKS) * BN;
  const int column = lane % COL_LANES * 8, last_token = static_cast<int>(M) - 1;
  ask_for_addends<T, EPILOGUE, TOKENS, BN, RANKS, THREADS>(rank, bias, residual, first_n, M, N);

  // Columns beyond N and tokens beyond M are the last ones again, and not stored.
  const T* const source = weight + min(first_n + column, N - 8);
  float sum[TOKENS][8] = {};
  const int pieces = static_cast<int>(K / 8), end = first_of_rank(pieces, rank + 1, RANKS);
  for (int piece = first_of_rank(pieces, rank, RANKS) + warp * SHARERS + sharer; piece < end;
       piece += WARPS * SHARERS) {
    Vec<T, 8> weights[8], items[TOKENS];
#pragma unroll
    for (int k = 0; k < 8; ++k) weights[k] = load_weights<ALONE>(source + (piece * 8ll + k) * N);
#pragma unroll
    for (int t = 0; t < TOKENS; ++t) {
      items[t] = load_shared_by_blocks<T, 8>(x + min(t, last_token) * K + piece * 8);
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const Vec<float, 8> wide = floats(weights[k]);
#pragma unroll
      for (int t = 0; t < TOKENS; ++t) {
        const float factor = to_float(items[t].item[k]);
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[t][j] = fmaf(factor, wide.item[j], sum[t][j]);
      }
    }
  }
  __syncwarp();

  float* const parts = reinterpret_cast<float*>(shared);
#pragma unroll
  for (int t = 0; t < TOKENS; ++t) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
#pragma unroll
      for (int distance = COL_LANES; distance < 32; distance *= 2) {
        sum[t][j] += __shfl_xor_sync(0xffffffffu, sum[t][j], distance);
      }
    }
    if (sharer == 0) {
      float4* const target =
          reinterpret_cast<float4*>(parts + (warp * TOKENS + t) * PITCH + column);
      target[0] = make_float4(sum[t][0], sum[t][1], sum[t][2], sum[t][3]);
      target[1] = make_float4(sum[t][4], sum[t][5], sum[t][6], sum[t][7]);
    }
  }
  add_up_and_store<T, EPILOGUE, TOKENS, BN, WARPS, RANKS, THREADS>(parts, rank, bias, residual, out,
                                                                   first_n, M, N, alpha, beta);
}

}  // namespace solkit
