// In which order blocks take the tiles of a product's output.
#pragma once

namespace solkit {

// The output tile of a block: by columns inside groups of GROUP tile rows, so that blocks which run
// at the same time share rows of x and columns of weight in L2.
struct Tile {
  int m, n;
};

template <int GROUP>
__device__ __forceinline__ Tile tile_at(int id, int tiles_m, int tiles_n) {
  const int group_size = GROUP * tiles_n;
  const int first_m = id / group_size * GROUP;
  const int height = min(tiles_m - first_m, GROUP), place = id % group_size;
  return {first_m + place % height, place / height};
}

template <int GROUP>
__device__ __forceinline__ Tile tile_of_block(int tiles_m, int tiles_n) {
  return tile_at<GROUP>(blockIdx.x, tiles_m, tiles_n);
}

}  // namespace solkit
