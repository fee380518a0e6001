// A block of wgmma_tiles.cuh: where it is in its cluster, which tiles it makes, where things lie in its
// shared memory, and who tells whom by which barrier.
#pragma once

#include "cluster.cuh"
#include "tensor_map.cuh"
#include "tile_order.cuh"
#include "wgmma_form.cuh"

namespace solkit {

// A place in the ring and the parity of its phase there, the same for all who walk along it.
template <int STAGES>
struct RingPlace {
  int stage = 0, parity = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }
};

template <typename FORM>
struct WgmmaBlock {
  unsigned char* shared;
  Mbarrier *full, *empty;  // a stage each: its bytes have come; all have left it
  Mbarrier *ready, *done;  // a warpgroup may hand over a tile; a slice is written
  Mbarrier* mail;          // where k is split: the sums of a warpgroup have come from the others
  int warp, lane;
  int in_m, in_n, split, first_rank;  // rank = first_rank + in_m CLUSTER_N + in_n
  int tiles_m, tiles_n, first_tile, step;
  int k_first, k_end;  // the stages of k that are this block's

  __device__ __forceinline__ WgmmaBlock(unsigned char* memory, long long M, long long K,
                                        long long N)
      : shared(memory),
        full(reinterpret_cast<Mbarrier*>(memory + FORM::BARRIERS_AT)),
        empty(full + FORM::STAGES),
        ready(empty + FORM::STAGES),
        done(ready + FORM::WARPGROUPS),
        mail(done + FORM::WARPGROUPS * FORM::SLICES),
        warp(__shfl_sync(0xffffffffu, threadIdx.x / 32, 0)),  // the same register for all lanes
        lane(threadIdx.x % 32) {
    const int rank = FORM::BLOCKS > 1 ? cluster_rank() : 0;
    in_n = rank % FORM::CLUSTER_N;
    in_m = rank / FORM::CLUSTER_N % FORM::CLUSTER_M;
    split = rank / FORM::SHARERS;
    first_rank = split * FORM::SHARERS;
    // Tiles are dealt out to clusters, CLUSTER_M x CLUSTER_N at a time; what lies beyond the output is
    // loaded as zeros and not stored.
    const long long rows = FORM::SWAPPED ? N : M, columns = FORM::SWAPPED ? M : N;
    constexpr int HEIGHT = FORM::BM * FORM::CLUSTER_M, WIDTH = FORM::BN * FORM::CLUSTER_N;
    tiles_m = static_cast<int>((rows + HEIGHT - 1) / HEIGHT);
    tiles_n = static_cast<int>((columns + WIDTH - 1) / WIDTH);
    first_tile = blockIdx.x / FORM::BLOCKS;
    step = FORM::SPLIT > 1 ? tiles() : gridDim.x / FORM::BLOCKS;
    const int stages = static_cast<int>((K + STAGE_K - 1) / STAGE_K);
    k_first = stages * split / FORM::SPLIT;
    k_end = stages * (split + 1) / FORM::SPLIT;
  }

  __device__ __forceinline__ int tiles() const { return tiles_m * tiles_n; }

  // The first row and column of a tile.
  __device__ __forceinline__ Tile origin(int tile) const {
    const Tile at = tile_at<FORM::GROUP>(tile, tiles_m, tiles_n);
    return {(at.m * FORM::CLUSTER_M + in_m) * FORM::BM, (at.n * FORM::CLUSTER_N + in_n) * FORM::BN};
  }

  // The columns of a tile are those of whole boxes, then the last. In memory the last come first where
  // whole boxes then begin a line of 128 bytes.
  static __device__ __forceinline__ int column(int first_column, int col) {
    const bool last_first = FORM::LAST > 0 && (first_column + FORM::LAST) % 64 == 0;
    return first_column + (!last_first         ? col
                           : col < FORM::WHOLE ? col + FORM::LAST
                                               : col - FORM::WHOLE);
  }

  // Where a warpgroup's slice lies: the first APART beside the ring, the others in stages of it.
  __device__ __forceinline__ unsigned char* slice_place(int warpgroup, int slice, int stage) const {
    if (slice < FORM::APART) {
      return shared + FORM::APART_AT + (warpgroup * FORM::APART + slice) * FORM::SLICE_BYTES;
    }
    const int in_stage = warpgroup * FORM::IN_STAGE + (slice - FORM::APART) % FORM::IN_STAGE;
    return shared + stage * FORM::STAGE_BYTES + in_stage * FORM::SLICE_BYTES;
  }

  // The row and the column of the output at which it begins.
  __device__ __forceinline__ Tile slice_origin(Tile from, int warpgroup, int slice) const {
    const int row = from.m + (warpgroup * FORM::MI + slice / FORM::ACROSS) * 64;
    const int col = column(from.n, split * FORM::OWN + slice % FORM::ACROSS * FORM::SLICE);
    return FORM::SWAPPED ? Tile{col, row} : Tile{row, col};
  }

  // One thread opens the barriers, and the others learn of it: at once those that need no copies of
  // other blocks, else the whole cluster. The load warp doesn't wait where nobody else has to be there
  // for its first copies.
  __device__ __forceinline__ void open_barriers() const {
    if (warp == 0 && elect_lane()) {
      constexpr int WARPS = 4 * FORM::WARPGROUPS * (FORM::CLUSTER_M + FORM::CLUSTER_N - 1);
      for (int i = 0; i < FORM::STAGES; ++i) {
        init_mbarrier(full + i, 1);
        // All that multiply what comes here, or goes out from here; for a stage of results, who stores
        // them arrives in their place.
        init_mbarrier(empty + i, WARPS);
      }
      for (int i = 0; i < FORM::WARPGROUPS; ++i) init_mbarrier(ready + i, 1);
      for (int i = 0; i < FORM::WARPGROUPS * FORM::SLICES; ++i) init_mbarrier(done + i, 128);
      for (int i = 0; i < FORM::MAILBOXES; ++i) init_mbarrier(mail + i, 1);
      fence_mbarrier_init();
    }
    __syncwarp();
    if constexpr (FORM::BLOCKS > 1) cluster_arrive_started();
    if constexpr (FORM::SHARES) {
      cluster_wait();
    } else {
      if (warp == 0) {
        asm volatile("bar.arrive 1, %0;" ::"n"(FORM::THREADS) : "memory");
      } else {
        asm volatile("bar.sync 1, %0;" ::"n"(FORM::THREADS) : "memory");
      }
    }
  }

  // A whole warp leaves a stage: one arrival at each block that fills it here, or that this one fills.
  __device__ __forceinline__ void leave(int stage) const {
    if constexpr (!FORM::SHARES) {
      if (lane == 0) arrive(empty + stage);
    } else {
      const int m = lane / FORM::CLUSTER_N, n = lane % FORM::CLUSTER_N;
      if (lane < FORM::SHARERS && (m == in_m || n == in_n)) {
        arrive_at_rank(empty + stage, first_rank + lane);
      }
    }
  }

  // Where k is split: sums are sent to blocks that run and have opened their barriers. A block whose
  // stages are shared knows it from its beginning.
  __device__ __forceinline__ void wait_until_others_run() const {
    if constexpr (FORM::SPLIT > 1 && !FORM::SHARES) {
      __syncwarp();
      cluster_wait();
    }
  }
};

}  // namespace solkit
