// How a warp walks the rows of a cache, tile by tile: tiles of TILE_KEYS rows, STEP tiles apart.
#pragma once

#include "parts.cuh"

namespace solkit {

constexpr int TILE_KEYS = 16;  // keys a warp takes at a time, and tokens a page

// next() is the row of the cache where the warp's next tile starts; all lanes call together.
template <int STEP, bool PAGED>
struct Tiles {
  long long row;

  __device__ __forceinline__ Tiles(const int*, long long sequence, int kv_len, int first, int)
      : row(sequence * kv_len + static_cast<long long>(first) * TILE_KEYS) {}

  __device__ __forceinline__ long long next() {
    const long long here = row;
    row += STEP * TILE_KEYS;
    return here;
  }
};

// Paged: a lane holds one entry of the page table, so 32 tiles a load; the next 32 are under way.
template <int STEP>
struct Tiles<STEP, true> {
  const int* entries;
  int tile, end, held, ahead, place;

  __device__ __forceinline__ Tiles(const int* page_table, long long sequence, int kv_len, int first,
                                   int end)
      : entries(page_table + sequence * ((kv_len - 1) / TILE_KEYS + 1)),
        tile(first + static_cast<int>(threadIdx.x) % 32 * STEP),
        end(end),
        place(0) {
    held = entry(tile);
    ahead = entry(tile += 32 * STEP);
  }

  __device__ __forceinline__ int entry(int at) const { return at < end ? __ldg(entries + at) : 0; }

  __device__ __forceinline__ long long next() {
    if (place == 32) {
      held = ahead;
      ahead = entry(tile += 32 * STEP);
      place = 0;
    }
    return static_cast<long long>(__shfl_sync(ALL_LANES, held, place++)) * TILE_KEYS;
  }
};

}  // namespace solkit
