// Matrix-vector product with packed weights: y[token, row] = sum over col of
// x[token, col] weight[row, col] scale, for 1 to 8 tokens at once.
//
// x [tokens, cols], y [tokens, rows]: fp16, bf16. Weights, one of two formats (packed.cuh):
//   Int4: weight [rows, cols / 2] bytes, the even column in the low nibble, value = nibble - 8;
//         scale [rows, cols / 128], one for 128 columns. cols a multiple of 128.
//   Int8: weight [rows, cols] signed bytes; scale [rows]. cols a multiple of 16.
// Weights are exact in the tensor cores' input type, products and sums are fp32, y is rounded once.
// NaN in x reaches y; so does infinity, as NaN where the weights are Int4 (see OFFSET). There, in bf16,
// finite x from about 2e34 on can do the same: 128 columns of 136 x are beyond fp32.
// Traffic: the weights and scales, once; x is small and comes from L2. Ceiling: DRAM read.
// Design: the tensor core's 16x8x16 product takes 16 weight rows against 8 tokens, so that one
// instruction does 256 weights for all tokens. At the H200's ceiling there are 3.8 issue slots for
// an int4 weight, and one fused multiply-add for each of 8 tokens would take twice as many.
//   - The order of the columns in a product is free, as long as weights and x agree. So lane
//     4 r + j takes 16 bytes of row r as they lie, and columns that one mask brings out of a 32-bit
//     word together (0 and 4, 1 and 5, ...) make a pair; x is paired to match. It takes no shuffle
//     and no table.
//   - Each warp streams its weights through a ring of its own in shared memory, filled by
//     asynchronous copies, a tile of 16 rows x 128 columns at a time: what is under way takes no
//     register. A lane reads back only what it copied itself, so the ring needs no barrier.
// dequant_gemv: the rows stay, x passes. The warps of a block take neighbouring columns of the same
//   16 x TILES rows, and add up at the end. x goes from L2 to the registers that the product wants,
//   once for all TILES. The caller cuts the rows so that the blocks of a large card end together.
// dequant_gemv_walk: x stays, the rows pass. Where the columns are so few that the warps of a block
//   can hold all of x, and the rows so many that fetching it pays: a block an SM walks down the
//   matrix, tile after tile, with its ring always full. All columns of a tile are one piece of
//   memory, and what depends on x alone (its pairs, the offset's product) is computed once. The
//   warps add up after each tile.
// Measured on an H200, 2026-11-30, cold L2, of the roof measured at the same traffic, bf16, rows x cols
// with 1 and 8 tokens. int4: 57344 x 8192 62.3 us (87 %) and 65.3 (84 %), 28672 x 8192 33.2 (83 %) and
// 35.3 (78 %), 8192 x 28672 32.3 (85 %) and 34.7 (79 %), 4096 x 4096 5.7 and 6.4. int8: 57344 x 8192
// 116 (89 %) and 116 (90 %), 28672 x 8192 60.3 (87 %) and 60.7 (87 %), 4096 x 4096 7.3 and 7.5.
#include "packed.cuh"

using namespace solkit;

template <typename T, template <typename> typename Weights, int TILES, int WARPS, int RING_KIB>
__global__ void __launch_bounds__(WARPS * 32, 16 / WARPS)
    dequant_gemv(const T* __restrict__ x, const unsigned char* __restrict__ weight,
                 const T* __restrict__ scale, T* __restrict__ y, long long tokens, long long rows,
                 long long cols) {
  using Format = Weights<T>;
  constexpr int PAIRS = Format::PAIRS;
  constexpr bool GROUPED = Format::OFFSET != 0;         // a scale for 128 columns, or for a row
  constexpr int COPY_COLS = COPY_WORDS * 2 * PAIRS;     // of a lane
  constexpr int COPIES = STEP_COLS / QUAD / COPY_COLS;  // of a row, in a step
  constexpr int ROWS = TILES * TILE_ROWS, HALVES = 2 * TILES;  // a half: 8 rows, one for each quad
  constexpr int SLOT = COPIES * 2 * 32;                        // copies of a warp for a tile
  constexpr int SLOTS = RING_KIB * 1024 / COPY_BYTES / SLOT;
  static_assert(SLOTS >= 2 && (SLOTS & (SLOTS - 1)) == 0, "slots are counted by a mask");
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, r = lane / QUAD, j = lane % QUAD;
  // The last block begins early enough to have all its rows: some are computed twice, to the same
  // values. Only with fewer rows than one tile are there rows past the end; their weights are zero.
  const long long first =
      max(min(static_cast<long long>(blockIdx.x) * ROWS, rows - ROWS), static_cast<long long>(0));
  const int own_rows = static_cast<int>(min(rows, static_cast<long long>(ROWS)));
  const auto exists = [&](int half) { return TILES > 1 || half * 8 + r < own_rows; };

  // A warp takes every WARPS-th step. Blocks begin at different ones, and come to those before them
  // at the end: x is the same for all, and they would ask for the same lines at once. It gave 6 %
  // with 8 tokens and 28672 columns (with one token 2 %).
  const int row_cols = static_cast<int>(cols);
  const int steps = (row_cols + STEP_COLS - 1) / STEP_COLS;
  const int own_steps = (steps - warp + WARPS - 1) / WARPS, back = own_steps * WARPS;
  const int first_step =
      warp + (own_steps > 0 ? static_cast<int>(blockIdx.x % own_steps) * WARPS : 0);
  // Whether copy c of a lane lies within the row: weights and x are zero beyond it.
  const auto inside = [&](int step, int c) {
    return GROUPED || step * STEP_COLS + c * QUAD * COPY_COLS + j * COPY_COLS < row_cols;
  };

  // What a step needs besides weights is loaded a step ahead. Lane j of a quad holds the scales of
  // halves j, j + 4 ... for all four.
  constexpr int KEPT = (HALVES + QUAD - 1) / QUAD;
  Vec<T, 8> items[COPIES][PAIRS];
  unsigned int next_factor[KEPT][1] = {};
  const bool has_token = r < tokens;
  int x_step = first_step;
  x += (has_token ? r : 0) * cols + x_step * STEP_COLS + j * COPY_COLS;
  const T* const row_scale = scale + first;
  scale += (first + j * 8 + r) * steps + x_step;
  const auto fetch_x_and_scales = [&]() {
#pragma unroll
    for (int i = 0; i < COPIES * PAIRS; ++i) {
      const int c = i / PAIRS;
      items[c][i % PAIRS] = {};
      if (has_token && inside(x_step, c)) {
        items[c][i % PAIRS] = load_stream<T, 8>(x + c * QUAD * COPY_COLS + i % PAIRS * 8);
      }
    }
    if constexpr (GROUPED) {
#pragma unroll
      for (int i = 0; i < KEPT; ++i) {
        const int half = i * QUAD + j;
        if (half < HALVES && exists(half)) {
          load_scales<T, 1>(next_factor[i], scale + i * (QUAD * 8) * steps);
        }
      }
    }
    x_step += WARPS;
    x += WARPS * STEP_COLS;
    scale += WARPS;
    if (x_step >= steps) {
      x_step -= back;
      x -= back * STEP_COLS;
      scale -= back;
    }
  };

  // The ring is filled in the order in which it is read: tile by tile, then a step on.
  constexpr int STEP_BYTES = COPIES * QUAD * COPY_BYTES;
  extern __shared__ uint4 shared[];
  uint4* const ring = shared + warp * SLOTS * SLOT + lane;
  const unsigned int row_bytes = row_cols / COPY_COLS * COPY_BYTES, half_bytes = 8 * row_bytes;
  int weight_step = first_step;
  weight += (first + r) * row_bytes + weight_step * STEP_BYTES + j * COPY_BYTES;
  const auto fetch = [&](int slot, int k, int tile) {  // of the warp's k-th step
    if (k < own_steps) {
#pragma unroll
      for (int i = 0; i < 2 * COPIES; ++i) {
        const int c = i / 2, half = 2 * tile + i % 2;
        copy16_async_of_256(
            shared_address(ring + slot * SLOT + i * 32),
            weight + static_cast<unsigned long long>(half_bytes) * half + c * QUAD * COPY_BYTES,
            exists(half) && inside(weight_step, c));
      }
    }
    commit_copies();
    if (tile == TILES - 1) {
      weight_step += WARPS;
      weight += WARPS * STEP_BYTES;
      if (weight_step >= steps) {
        weight_step -= back;
        weight -= back * STEP_BYTES;
      }
    }
  };

  // x and scales first: they would come behind all that fills the ring. 9 % at 4096 x 4096.
  if (own_steps > 0) fetch_x_and_scales();
#pragma unroll
  for (int s = 0; s < SLOTS; ++s) fetch(s, s / TILES, s % TILES);

  const unsigned int weight_base = hidden(Format::BASE);
  float total[TILES][4] = {};
  int slot = 0;
  uint4 loaded[COPIES][2];  // the tile that is computed next
  wait_copies<SLOTS - 1>();
#pragma unroll
  for (int i = 0; i < 2 * COPIES; ++i) loaded[i / 2][i % 2] = ring[i * 32];
  for (int k = 0; k < own_steps; ++k) {
    unsigned int b[COPIES][COPY_WORDS][PAIRS];
#pragma unroll
    for (int i = 0; i < COPIES * COPY_WORDS; ++i) {
      const auto& words = reinterpret_cast<const unsigned int(&)[4 * PAIRS]>(items[i / COPY_WORDS]);
      pair_up<PAIRS>(words + i % COPY_WORDS * PAIRS, b[i / COPY_WORDS][i % COPY_WORDS]);
    }
    unsigned int factor[KEPT];
#pragma unroll
    for (int i = 0; i < KEPT; ++i) factor[i] = next_factor[i][0];
    if (k + 1 < own_steps) fetch_x_and_scales();

    float base[4] = {};
    if constexpr (GROUPED) {
      const unsigned int a[4] = {Format::OFFSET, Format::OFFSET, Format::OFFSET, Format::OFFSET};
#pragma unroll
      for (int i = 0; i < COPY_WORDS * PAIRS; i += 2) {
        multiply_add<T>(base, a, b[0][i / PAIRS][i % PAIRS], b[0][i / PAIRS][i % PAIRS + 1]);
      }
    }
#pragma unroll
    for (int t = 0; t < TILES; ++t) {
      // This tile is in registers: its slot takes the next copies, the tile behind it comes out.
      fetch(slot, k + (t + SLOTS) / TILES, (t + SLOTS) % TILES);
      wait_copies<SLOTS - 1>();
      slot = (slot + 1) & (SLOTS - 1);
      uint4 ahead[COPIES][2];
#pragma unroll
      for (int i = 0; i < 2 * COPIES; ++i) ahead[i / 2][i % 2] = ring[slot * SLOT + i * 32];
      // Two sums for a group: a product waits for the one before it in the same sum.
      float group[2][4] = {{base[0], base[1], base[2], base[3]}, {}};
      float of_half[2];
      if constexpr (GROUPED) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int half = 2 * t + i;
          of_half[i] =
              scale_of<T>(__shfl_sync(0xffffffffu, factor[half / QUAD], half % QUAD, QUAD), 0);
        }
      }
#pragma unroll
      for (int c = 0; c < COPIES; ++c) {
        const auto& words = reinterpret_cast<const unsigned int(&)[2][COPY_WORDS]>(loaded[c]);
#pragma unroll
        for (int w = 0; w < COPY_WORDS; ++w) {
          unsigned int above[PAIRS], below[PAIRS];
          Format::unpack(words[0][w], weight_base, above);
          Format::unpack(words[1][w], weight_base, below);
#pragma unroll
          for (int p = 0; p < PAIRS; p += 2) {
            const unsigned int a[4] = {above[p], below[p], above[p + 1], below[p + 1]};
            multiply_add<T>(GROUPED ? group[p / 2] : total[t], a, b[c][w][p], b[c][w][p + 1]);
          }
        }
      }
      if constexpr (GROUPED) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          total[t][i] = fmaf(of_half[i / 2], group[0][i] + group[1][i], total[t][i]);
        }
      }
#pragma unroll
      for (int i = 0; i < 2 * COPIES; ++i) loaded[i / 2][i % 2] = ahead[i / 2][i % 2];
    }
  }

  // A lane holds rows r and r + 8 of each tile, tokens 2 j and 2 j + 1. With 4 more rows a token
  // the lanes of a warp fall on 32 different banks. The ring has been read: its place is taken.
  constexpr int TOKEN_STRIDE = ROWS + 4, WARP_STRIDE = RING_KIB * 256;
  static_assert(WARP_STRIDE >= MOST_TOKENS * TOKEN_STRIDE, "the sums fit into the ring");
  float* const partial = reinterpret_cast<float*>(shared);
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 4 * TILES; ++i) {
    const int token = 2 * j + i % 2, row = i / 2 * 8 + r;
    partial[warp * WARP_STRIDE + token * TOKEN_STRIDE + row] = total[i / 4][i % 4];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < tokens * ROWS; i += WARPS * 32) {
    const int token = i / ROWS, row = i % ROWS;
    if (row >= own_rows) continue;
    float sum = 0.0f;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) sum += partial[w * WARP_STRIDE + token * TOKEN_STRIDE + row];
    if constexpr (!GROUPED) sum *= to_float(row_scale[row]);
    y[token * rows + first + row] = from_float<T>(sum);
  }
}

// For weights with a scale for each 128 columns; cols = WARPS x STEPS x 128, rows >= 16.
template <typename T, template <typename> typename Weights, int STEPS, int WARPS, int SLOTS>
__global__ void __launch_bounds__(WARPS * 32, 1)
    dequant_gemv_walk(const T* __restrict__ x, const unsigned char* __restrict__ weight,
                      const T* __restrict__ scale, T* __restrict__ y, long long tokens,
                      long long rows, long long cols) {
  using Format = Weights<T>;
  constexpr int PAIRS = Format::PAIRS;
  constexpr int COPY_COLS = COPY_WORDS * 2 * PAIRS;  // of a lane
  constexpr int STEP_BYTES = QUAD * COPY_BYTES;      // of a row
  constexpr int SLOT = 2 * 32;                       // copies of a warp for a step of a tile
  static_assert(WARPS % QUAD == 0, "a quarter of a warp adds up every fourth warp");
  static_assert(Format::OFFSET != 0 && QUAD * COPY_COLS == STEP_COLS, "a copy takes all columns");
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, r = lane / QUAD, j = lane % QUAD;
  const unsigned int groups = static_cast<unsigned int>(cols) / STEP_COLS;
  // Tiles are known by their first row; the last begins early enough to have all its rows.
  const int end = static_cast<int>(rows), last = end - TILE_ROWS, stride = gridDim.x * TILE_ROWS;
  const auto first_row = [&](int row) { return static_cast<unsigned int>(min(row, last)); };

  const bool has_token = r < tokens;
  x += (has_token ? r : 0) * cols + warp * (STEPS * STEP_COLS) + j * COPY_COLS;
  Vec<T, 8> items[STEPS][PAIRS];
  const auto fetch_x = [&]() {
#pragma unroll
    for (int i = 0; i < STEPS * PAIRS; ++i) {
      items[i / PAIRS][i % PAIRS] = {};
      if (has_token) {
        items[i / PAIRS][i % PAIRS] = load_stream<T, 8>(x + i / PAIRS * STEP_COLS + i % PAIRS * 8);
      }
    }
  };

  // The scales of a tile are loaded a tile ahead.
  constexpr int SCALE_WORDS = (STEPS + 1) / 2;
  unsigned int next_factor[2][SCALE_WORDS];
  const unsigned int scale_at = r * groups + warp * STEPS;
  const auto fetch_scales = [&](int row) {
    if (row < end) {
      const T* const source =
          scale + static_cast<unsigned long long>(first_row(row)) * groups + scale_at;
      load_scales<T, STEPS>(next_factor[0], source);
      load_scales<T, STEPS>(next_factor[1], source + 8 * groups);
    }
  };
  fetch_scales(blockIdx.x * TILE_ROWS);

  extern __shared__ uint4 shared[];
  uint4* const ring = shared + warp * SLOTS * SLOT + lane;
  float* const partial = reinterpret_cast<float*>(shared + WARPS * SLOTS * SLOT);
  const unsigned int row_bytes = static_cast<unsigned int>(cols) / COPY_COLS * COPY_BYTES;
  const unsigned int lane_at = row_bytes * r + warp * (STEPS * STEP_BYTES) + j * COPY_BYTES;
  int fetched = blockIdx.x * TILE_ROWS;
  const unsigned char* source;
  const auto point_at_fetched = [&]() {
    source = weight + static_cast<unsigned long long>(first_row(fetched)) * row_bytes + lane_at;
    asm volatile("" : "+l"(source));  // else it is computed anew for each step
  };
  point_at_fetched();
  const auto fetch = [&](int slot, int s) {
    if (fetched < end) {
      uint4* const target = ring + slot * SLOT;
      copy16_async_of_256(shared_address(target), source + s * STEP_BYTES, true);
      copy16_async_of_256(shared_address(target + 32), source + 8 * row_bytes + s * STEP_BYTES,
                          true);
    }
    commit_copies();
    if (s == STEPS - 1) {
      fetched += stride;
      point_at_fetched();
    }
  };
#pragma unroll
  for (int k = 0; k < SLOTS; ++k) fetch(k, k % STEPS);

  // x, paired, and the offset's product: once for all tiles.
  fetch_x();
  unsigned int b[STEPS][COPY_WORDS][PAIRS];
  float base[STEPS][4] = {};
#pragma unroll
  for (int s = 0; s < STEPS; ++s) {
    const auto& words = reinterpret_cast<const unsigned int(&)[4 * PAIRS]>(items[s]);
#pragma unroll
    for (int w = 0; w < COPY_WORDS; ++w) pair_up<PAIRS>(words + w * PAIRS, b[s][w]);
    const unsigned int a[4] = {Format::OFFSET, Format::OFFSET, Format::OFFSET, Format::OFFSET};
#pragma unroll
    for (int i = 0; i < COPY_WORDS * PAIRS; i += 2) {
      multiply_add<T>(base[s], a, b[s][i / PAIRS][i % PAIRS], b[s][i / PAIRS][i % PAIRS + 1]);
    }
  }

  const unsigned int weight_base = hidden(Format::BASE);
  int slot = 0;
  bool odd = false;
  for (int row = blockIdx.x * TILE_ROWS; row < end; row += stride) {
    unsigned int factor[2][SCALE_WORDS];
#pragma unroll
    for (int i = 0; i < 2 * SCALE_WORDS; ++i) factor[i % 2][i / 2] = next_factor[i % 2][i / 2];
    fetch_scales(row + stride);
    float total[4] = {};
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
      wait_copies<SLOTS - 1>();
      const uint4 loaded[2] = {ring[slot * SLOT], ring[slot * SLOT + 32]};
      const auto& words = reinterpret_cast<const unsigned int(&)[2][COPY_WORDS]>(loaded);
      float group[4] = {};
#pragma unroll
      for (int w = 0; w < COPY_WORDS; ++w) {
        unsigned int above[PAIRS], below[PAIRS];
        Format::unpack(words[0][w], weight_base, above);
        Format::unpack(words[1][w], weight_base, below);
#pragma unroll
        for (int p = 0; p < PAIRS; p += 2) {
          const unsigned int a[4] = {above[p], below[p], above[p + 1], below[p + 1]};
          multiply_add<T>(group, a, b[s][w][p], b[s][w][p + 1]);
        }
        if (w == 0) fetch(slot, (s + SLOTS) % STEPS);  // all of the slot is in registers by now
      }
      slot = slot == SLOTS - 1 ? 0 : slot + 1;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        total[i] =
            fmaf(scale_of<T>(factor[i / 2][s / 2], s % 2), group[i] + base[s][i % 2], total[i]);
      }
    }

    // Sum i of a lane is that of token 2 j + i % 2 and row r + 8 (i / 2). A warp adds up 8 rows of
    // one token, to write them side by side; a quarter of it takes every fourth warp's sums, and
    // these have another bank each by the place they are in. The tile after this one uses the other
    // half.
    constexpr int PLACES = TILE_ROWS * MOST_TOKENS;
    float* const sums = partial + (odd ? WARPS * PLACES : 0);
    odd = !odd;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sums[warp * PLACES + i * 32 + r * QUAD + (j ^ warp % QUAD)] = total[i];
    }
    __syncthreads();
    const int eighth = lane % 8, part = lane / 8;
#pragma unroll 1
    for (int i = warp; i < 2 * static_cast<int>(tokens); i += WARPS) {
      const int token = i / 2, half = i % 2;
      const float* const place =
          sums + (2 * half + token % 2) * 32 + eighth * QUAD + (token / 2 ^ part);
      float sum = 0.0f;
#pragma unroll
      for (int w = 0; w < WARPS; w += QUAD) sum += place[(w + part) * PLACES];
      sum += __shfl_xor_sync(0xffffffffu, sum, 8);
      sum += __shfl_xor_sync(0xffffffffu, sum, 16);
      if (part == 0) y[token * rows + first_row(row) + 8 * half + eighth] = from_float<T>(sum);
    }
  }
}
