// Embedding: y[i] = table[token[i]], row by row.
//
// token [tokens] int32, table [vocab, cols], y [tokens, cols]; fp32, fp16, bf16, copied bit by bit.
// cols a multiple of VEC; the caller takes VEC = 16 bytes where that holds. Every token is an index of
// table: solkit holds them against its extent before the launch.
// Traffic: each row that occurs read once, y written, the tokens read. Ceiling: DRAM copy.
// Design: a copy whose source row is looked up. A row is cut into PIECES; TX threads take one, ITEMS
// vectors each, all of them under way together, and TY rows stand side by side in a block. Blocks are
// small, so that many are resident: while one waits for its index, others move rows.
// A block waits for DRAM twice in a row, for its index and then for its row. Where tokens are many, it
// therefore asks L2 for the piece that a later block will copy, AHEAD rows further on; that block finds
// both in L2, and one vector a thread is enough under way. AHEAD is what all SMs hold at once: from
// nearer, the other block has begun already, from further off, L2 has lost part of it again (8192 rows
// of 16 KB, 2 KB a request, one run: 67.9 us at half a wave, 67.1 at one, 71.9 at two, 89.1 at four).
// WHOLE: the pieces fill the row exactly. Only so is the row's length a constant, no load has a guard,
// and a piece begins at the 16 bytes that a bulk prefetch asks for.
// Measured on an H200, 2026-12-01, cold L2, of the roof measured at the same traffic, bf16, rows of
// 4096: 32768 tokens 130.1 us (97 %), 2048 tokens 10.1 us (93 %), 64 tokens 1.8 us (88 %); rows of 8192:
// 32768 tokens 258.7 us (97 %), 512 tokens 5.3 us (98 %).
#include "vec.cuh"

using namespace solkit;

// Ask L2 for `bytes` from `source` on, both multiples of 16. From CC 9.0 on.
template <typename T>
__device__ __forceinline__ void prefetch_to_l2(const T* source, unsigned int bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(source), "r"(bytes) : "memory");
}

// AHEAD: rows. 0: no prefetch, on cards before CC 9.0, too.
template <typename T, int TX, int TY, int VEC, int ITEMS, int PIECES, bool WHOLE, int AHEAD>
__global__ void __launch_bounds__(TX* TY)
    embedding(const int* __restrict__ token, const T* __restrict__ table, T* __restrict__ y,
              long long tokens, long long cols) {
  static_assert(AHEAD == 0 || WHOLE, "what is asked for are whole pieces");
  constexpr unsigned int SPAN = TX * VEC * ITEMS;
  const unsigned int length = WHOLE ? PIECES * SPAN : static_cast<unsigned int>(cols);
  const unsigned int row = blockIdx.x / PIECES * TY + (TY > 1 ? threadIdx.y : 0);
  const unsigned int piece = blockIdx.x % PIECES * SPAN;
  if (TY > 1 && row >= tokens) return;  // a block of one row always has one
  const bool asks = AHEAD > 0 && threadIdx.x == TX - 1 && row + AHEAD < tokens;
  const long long from = __ldg(token + row);
  const long long later = asks ? __ldg(token + row + AHEAD) : 0;
  const T* const source = table + from * length;
  T* const target = y + static_cast<long long>(row) * length;
  Vec<T, VEC> value[ITEMS];
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const unsigned int at = piece + (k * TX + threadIdx.x) * VEC;
    if (WHOLE || at < length) value[k] = load_stream<T, VEC>(source + at);
  }
  if constexpr (AHEAD > 0) {
    if (asks) prefetch_to_l2(table + later * length + piece, SPAN * sizeof(T));
  }
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const unsigned int at = piece + (k * TX + threadIdx.x) * VEC;
    if (WHOLE || at < length) store<T, VEC>(target + at, value[k]);
  }
}
