// Rotary position embedding of queries and keys: each pair (a, b) of a head becomes
//   (a cos - b sin, b cos + a sin).
//
// q, q_out [tokens, heads, head_dim], k, k_out [tokens, kv_heads, head_dim] in fp32, fp16, bf16;
// cos, sin [tokens, head_dim / 2] in fp32, one of each for a pair. head_dim even; 16-byte aligned.
// Computed in fp32, rounded once. The pairs are (i, i + head_dim / 2) where Half, (2 i, 2 i + 1)
// where Interleaved.
// Traffic: q and k are read and written once, cos and sin are read once (by the first head of a
// token from DRAM, by the others from L1). Ceiling: DRAM.
// Technique: Q and K in one launch, as HEADS heads of a token, numbered through. A thread turns
// PAIRS pairs of one head, TX threads a head, TY heads stand side by side in a block, whichever
// token they are of. Threads that walk several heads with cos and sin in registers read the tables
// less often, but have fewer bytes in flight when it counts: 8192 tokens of 32 + 8 heads of 128 in
// bf16 took 41.9 us with one head a thread on an H200, 42.4 with two, 43.2 with five.
// Measured on an H200, 2026-11-30, cold L2, of the roof measured at the same traffic: 8192 tokens
// of 32 + 8 heads of 128 in bf16 41.8 us (0.98), interleaved 41.6 us (0.99); 16 tokens 1.60 us, 0.2
// above.
#include "vec.cuh"

using namespace solkit;

// PAIRS pairs of a head, as they lie: HALF items are between the two of a pair, or none. The thread
// that owns the pairs from p on begins at item STEP * p.
template <typename T, int PAIRS, int HALF>
struct Half {
  static constexpr int STEP = 1;
  Vec<T, PAIRS> a, b;

  __device__ __forceinline__ void read(const T* part) {
    a = load_stream<T, PAIRS>(part);
    b = load_stream<T, PAIRS>(part + HALF);
  }
  __device__ __forceinline__ void write(T* part) const {
    store<T, PAIRS>(part, a);
    store<T, PAIRS>(part + HALF, b);
  }
  __device__ __forceinline__ void turn(const Vec<float, PAIRS>& cos, const Vec<float, PAIRS>& sin) {
    const Vec<float, PAIRS> from_a = floats(a), from_b = floats(b);
#pragma unroll
    for (int j = 0; j < PAIRS; ++j) {
      const float c = cos.item[j], s = sin.item[j];
      a.item[j] = from_float<T>(from_a.item[j] * c - from_b.item[j] * s);
      b.item[j] = from_float<T>(from_b.item[j] * c + from_a.item[j] * s);
    }
  }
};

template <typename T, int PAIRS, int HALF>
struct Interleaved {
  static constexpr int STEP = 2;
  Vec<T, 2 * PAIRS> both;  // a0 b0 a1 b1 ...

  __device__ __forceinline__ void read(const T* part) { both = load_stream<T, 2 * PAIRS>(part); }
  __device__ __forceinline__ void write(T* part) const { store<T, 2 * PAIRS>(part, both); }
  __device__ __forceinline__ void turn(const Vec<float, PAIRS>& cos, const Vec<float, PAIRS>& sin) {
    const Vec<float, 2 * PAIRS> from = floats(both);
#pragma unroll
    for (int j = 0; j < PAIRS; ++j) {
      const float c = cos.item[j], s = sin.item[j];
      both.item[2 * j] = from_float<T>(from.item[2 * j] * c - from.item[2 * j + 1] * s);
      both.item[2 * j + 1] = from_float<T>(from.item[2 * j + 1] * c + from.item[2 * j] * s);
    }
  }
};

// N floats of a table, in accesses of 16 bytes at most.
template <int N>
__device__ __forceinline__ Vec<float, N> load_table(const float* source) {
  constexpr int VEC = N < 4 ? N : 4;
  Vec<float, N> entries;
#pragma unroll
  for (int i = 0; i < N; i += VEC) {
    const Vec<float, VEC> part = load_shared_by_blocks<float, VEC>(source + i);
#pragma unroll
    for (int j = 0; j < VEC; ++j) entries.item[i + j] = part.item[j];
  }
  return entries;
}

template <typename T, template <typename, int, int> class Style, int TX, int TY, int PAIRS,
          int HEADS>
__global__ void __launch_bounds__(TX* TY)
    rope(const T* __restrict__ q, const T* __restrict__ k, const float* __restrict__ cos,
         const float* __restrict__ sin, T* __restrict__ q_out, T* __restrict__ k_out,
         long long tokens, long long heads) {
  constexpr int HALF = TX * PAIRS, HEAD_DIM = 2 * HALF;
  using Part = Style<T, PAIRS, HALF>;
  const unsigned int number =
      blockIdx.x * TY + threadIdx.y;  // of the head, among all tokens' heads
  const unsigned int head = number % HEADS, pair = threadIdx.x * PAIRS;
  const long long token = number / HEADS;
  if (token >= tokens) return;

  const bool of_q = head < heads;
  const long long row = of_q ? token * heads + head : token * (HEADS - heads) + (head - heads);
  const long long at = row * HEAD_DIM + Part::STEP * pair;
  Part part;
  part.read((of_q ? q : k) + at);
  const Vec<float, PAIRS> c = load_table<PAIRS>(cos + token * HALF + pair);
  const Vec<float, PAIRS> s = load_table<PAIRS>(sin + token * HALF + pair);
  part.turn(c, s);
  part.write((of_q ? q_out : k_out) + at);
}
