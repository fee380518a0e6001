// What a form of wgmma_tiles.cuh comes to: its products, and its places in shared memory. A form is the
// kernel's template argument; solkit/declare/wgmma.py chooses it and knows the same sizes.
#pragma once

namespace solkit {

constexpr int STAGE_K = 64;  // items of k in a stage: a row of 128 bytes, the widest swizzle

constexpr int lesser(int a, int b) { return a < b ? a : b; }

// The longest row of a box, in bytes, into which columns of 16 bits can be cut: a swizzle but for 16.
constexpr int row_of(int columns) {
  return columns % 64 == 0 ? 128 : columns % 32 == 0 ? 64 : columns % 16 == 0 ? 32 : 16;
}

// The most columns, 64 or fewer, of which whole slices make up `columns`, a multiple of 8.
constexpr int slice_of(int columns) {
  int slice = 64;
  while (columns % slice != 0) slice -= 8;
  return slice;
}

template <bool NK_, bool SWAPPED_, int BM_, int BN_, int WARPGROUPS_, int STAGES_, int APART_,
          int RESIDENT_, int CLUSTER_M_, int CLUSTER_N_, int SPLIT_, int GROUP_>
struct WgmmaForm {
  static constexpr bool NK = NK_, SWAPPED = SWAPPED_;
  static constexpr int BM = BM_, BN = BN_, WARPGROUPS = WARPGROUPS_, STAGES = STAGES_;
  static constexpr int APART = APART_, RESIDENT = RESIDENT_, SPLIT = SPLIT_, GROUP = GROUP_;
  static constexpr int CLUSTER_M = CLUSTER_M_, CLUSTER_N = CLUSTER_N_;
  static constexpr int THREADS = 128 * (WARPGROUPS + 1);
  static constexpr int SHARERS = CLUSTER_M * CLUSTER_N, BLOCKS = SHARERS * SPLIT;  // of a cluster
  static constexpr bool SHARES = SHARERS > 1;
  // Whether an operand is K-major: x is, and weight where it is [N, K].
  static constexpr bool A_BY_K = !SWAPPED || NK, B_BY_K = SWAPPED || NK;

  // Products of 64 rows, one over the other, of WIDE columns; and since none has more than 256, of REST
  // columns beside them where a tile has.
  static constexpr int MI = BM / 64 / WARPGROUPS;
  static constexpr int WIDE = lesser(BN, 256), REST = BN - WIDE;
  static_assert(BM == 64 * MI * WARPGROUPS && BN % 8 == 0, "whole products");

  // The boxes of b: rows of 64 k of one column, or of 64 columns at one k, which are whole lines of
  // memory (by boxes of 32 columns, 586 x 4096 x 4096 by tiles of 128 x 160 took 40.4 us where a weight
  // of [N, K] took 29.1). The LAST columns, which fill no line, have a box of shorter rows; in shared
  // memory those take 128 bytes all the same, and b the place of PLACES columns, so that one product
  // reads it all: with a second one for the last, which reads a once more, 256 x 2560 x 2560 by 64 x 96
  // took 10.6 us where it takes 9.8 (an H200, bf16).
  static constexpr int LAST = B_BY_K ? 0 : BN % 64, WHOLE = BN - LAST;
  static constexpr int PLACES = LAST > 0 ? WHOLE + 64 : BN;
  static constexpr int LEADING = B_BY_K ? 0 : STAGE_K * 128;  // from 64 columns to the next
  static_assert((A_BY_K ? BM : STAGE_K) / CLUSTER_N % 8 == 0 &&
                    (B_BY_K ? BN : STAGE_K) / CLUSTER_M % 8 == 0,
                "a part begins a swizzle's eight rows");
  static_assert(!B_BY_K || BN / CLUSTER_M <= 256 || BN / CLUSTER_M % 16 == 0,
                "and so does the second of two boxes");

  // A slice of the output, 64 rows of the tile: it lies in shared memory as the output does, so in rows
  // of columns, or, SWAPPED, in rows (tokens) of 64 items. None has some of the last columns and some of
  // the others, which may lie apart in memory.
  static constexpr int OWN = BN / SPLIT;  // columns that this block stores
  static constexpr int SLICE = SWAPPED ? slice_of(OWN) : lesser(row_of(OWN), row_of(LAST)) / 2;
  static constexpr int SLICE_SWIZZLE = SWAPPED ? 128 : SLICE < 16 ? 0 : SLICE * 2;
  static constexpr int SLICE_BYTES = 64 * SLICE * 2, ACROSS = OWN / SLICE;
  static constexpr int SLICES = MI * ACROSS;  // of a warpgroup

  // Shared memory: the ring; slices beside it; sums that others send; barriers.
  static constexpr int A_BYTES = BM * STAGE_K * 2, STAGE_BYTES = A_BYTES + PLACES * STAGE_K * 2;
  static constexpr int LOADED_BYTES = A_BYTES + BN * STAGE_K * 2;  // of them, what copies bring
  static constexpr int B_AT = A_BYTES, REST_AT = A_BYTES + WIDE * STAGE_K * 2;  // in a stage
  static constexpr int APART_AT = STAGES * STAGE_BYTES;
  static constexpr int PARTS_AT = APART_AT + WARPGROUPS * APART * SLICE_BYTES;
  // Sums are sent four at a time, a warpgroup's threads side by side.
  static constexpr int PART = MI * OWN / 8;  // float4 a thread
  static constexpr int PART_BYTES = WARPGROUPS * PART * 128 * 16;
  static constexpr int BARRIERS_AT = PARTS_AT + (SPLIT - 1) * PART_BYTES;
  static constexpr int MAILBOXES = SPLIT > 1 ? WARPGROUPS : 0;  // one for a warpgroup's parts

  // The slices that don't lie apart lie in stages of the ring, those after a tile's products.
  static constexpr int IN_STAGE = STAGE_BYTES / (WARPGROUPS * SLICE_BYTES);
  static constexpr int TAIL_STAGES = (SLICES - APART + IN_STAGE - 1) / IN_STAGE;
  static_assert(APART <= SLICES && TAIL_STAGES < STAGES, "the ring holds what does not lie apart");
  static_assert(SPLIT == 1 || APART == SLICES, "where k is split, what a block stores lies apart");
  static constexpr int tail_begin(int tail) { return APART + tail * IN_STAGE; }
  static constexpr int tail_end(int tail) { return lesser(tail_begin(tail + 1), SLICES); }

  // Registers of a thread that loads and stores, and of one that multiplies: of 64 K, as many as
  // WARPGROUPS + 1 warpgroups of RESIDENT blocks are launched with.
  static constexpr int LAUNCHED = 65536 / (THREADS * RESIDENT) / 8 * 8, FEW = 24;
  static constexpr int MANY = lesser((LAUNCHED * (WARPGROUPS + 1) - FEW) / WARPGROUPS / 8 * 8, 240);
};

}  // namespace solkit
