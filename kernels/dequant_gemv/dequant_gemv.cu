// Matrix-vector product with packed weights: y[token, row] = sum over col of
// x[token, col] weight[row, col] scale, for 1 to 8 tokens at once.
//
// x [tokens, cols], y [tokens, rows]: fp16, bf16. Weights, one of two formats:
//   Int4: weight [rows, cols / 2] bytes, the even column in the low nibble, value = nibble - 8;
//         scale [rows, cols / 128], one for 128 columns. cols a multiple of 128.
//   Int8: weight [rows, cols] signed bytes; scale [rows]. cols a multiple of 16.
// Weights are exact in the tensor cores' input type, products and sums are fp32, y is rounded once.
// NaN in x reaches y; so does infinity, as NaN where the weights are Int4 (see OFFSET).
// Traffic: the weights and scales, once; x is small and comes from L2. Ceiling: DRAM read.
// Design: the tensor core's 16x8x16 product takes 16 weight rows against 8 tokens, so that one
// instruction does 256 weights for all tokens. At the H200's ceiling there are 3.8 issue slots for
// an int4 weight, and one fused multiply-add for each of 8 tokens would take twice as many.
//   - The order of the columns in a product is free, as long as weights and x agree. So lane 4 r + j
//     takes 16 bytes of row r as they lie, and columns that one mask brings out of a 32-bit word
//     together (0 and 4, 1 and 5, ...) make a pair; x is paired to match. No shuffle, no table.
//   - Each warp streams its weights through a ring of its own in shared memory, RING_KIB of it, filled
//     by asynchronous copies, a tile of 16 rows x 128 columns at a time: what is under way takes no
//     register. A lane reads back only what it copied itself, so the ring needs no barrier.
//   - The warps of a block take neighbouring columns of the same 16 x TILES rows, and add up at the
//     end. x goes from L2 to the registers that the product wants, once for all TILES.
//   - The caller cuts the rows so that the blocks of a large card end together.
#include "mma.cuh"
#include "vec.cuh"

using namespace solkit;

constexpr int TILE_ROWS = 16, MOST_TOKENS = 8;
constexpr int QUAD = 4;                         // lanes that share a row
constexpr int STEP_COLS = 128;                  // of a warp at a time
constexpr int COPY_BYTES = 16, COPY_WORDS = 4;  // of a lane at a time

// A number that the compiler doesn't see: it takes one immediate in an instruction, and would move
// another to a register anew for each use.
__device__ __forceinline__ unsigned int hidden(unsigned int number) {
  return __shfl_sync(0xffffffffu, number, 0);
}

// (word & MASK) | base, in one instruction.
template <unsigned int MASK>
__device__ __forceinline__ unsigned int masked_onto(unsigned int word, unsigned int base) {
  unsigned int result;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(word), "n"(MASK), "r"(base));
  return result;
}

__device__ __forceinline__ unsigned int difference(unsigned int a, unsigned int b, __half) {
  const __half2 pair = __hsub2(reinterpret_cast<__half2&>(a), reinterpret_cast<__half2&>(b));
  return reinterpret_cast<const unsigned int&>(pair);
}

__device__ __forceinline__ unsigned int difference(unsigned int a, unsigned int b, __nv_bfloat16) {
  const __nv_bfloat162 pair =
      __hsub2(reinterpret_cast<__nv_bfloat162&>(a), reinterpret_cast<__nv_bfloat162&>(b));
  return reinterpret_cast<const unsigned int&>(pair);
}

template <typename T>
constexpr bool IS_BF16 = false;
template <>
constexpr bool IS_BF16<__nv_bfloat16> = true;

// The formats. unpack: a 32-bit word of weights as T, in pairs: weight p of the word and weight
// p + PAIRS. BASE: what their bits are OR-ed onto, a pair of powers of two. OFFSET: minus what all
// weights are too large by, as a pair; 0 where unpack has taken it off.

// A nibble in the mantissa of 128 (bf16) or 64 (fp16) is added to it. The difference is not taken
// weight by weight: x times the offset is the same for all rows.
template <typename T>
struct Int4 {
  static constexpr int PAIRS = 4;
  static constexpr unsigned int BASE = IS_BF16<T> ? 0x43004300 : 0x54005400;
  static constexpr unsigned int OFFSET =
      IS_BF16<T> ? 0xc308c308 : 0xd480d480;  // -(128 + 8), -(64 + 8)

  static __device__ __forceinline__ void unpack(unsigned int word, unsigned int base,
                                                unsigned int (&pair)[PAIRS]) {
#pragma unroll
    for (int p = 0; p < PAIRS; ++p) {
      if constexpr (IS_BF16<T>) {
        pair[p] = masked_onto<0x000f000f>(word >> (4 * p), base);
      } else {
        pair[p] = masked_onto<0x00f000f0>(p ? word >> (4 * p - 4) : word << 4, base);
      }
    }
  }
};

// fp16: value + 128, which has no sign, in the mantissa of 1024. bf16 has 7 bits of mantissa: the low
// 7 bits of a byte are added to 128, and the sign bit, which counts -128, lands on the exponent and
// makes 256 of another 128; the difference is the value.
template <typename T>
struct Int8 {
  static constexpr int PAIRS = 2;
  static constexpr unsigned int BASE = IS_BF16<T> ? 0x43004300 : 0x64006400;
  static constexpr unsigned int OFFSET = 0;

  static __device__ __forceinline__ void unpack(unsigned int word, unsigned int base,
                                                unsigned int (&pair)[PAIRS]) {
#pragma unroll
    for (int p = 0; p < PAIRS; ++p) {
      if constexpr (IS_BF16<T>) {
        pair[p] = difference(masked_onto<0x007f007f>(word >> (8 * p), base),
                             masked_onto<0x00800080>(word >> (8 * p), base), T());
      } else {
        const unsigned int raised = masked_onto<0x00ff00ff>((word ^ 0x80808080) >> (8 * p), base);
        pair[p] = difference(raised, 0x64806480, T());  // 1024 + 128
      }
    }
  }
};

// A copy that has L2 fetch the 256 bytes around it: the warps of a block take 64 or 128 bytes of a row
// each, side by side.
__device__ __forceinline__ void copy16_async_of_256(unsigned int target, const void* source,
                                                    bool valid) {
#if __CUDA_ARCH__ >= 800
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" ::"r"(target), "l"(source),
               "r"(bytes)
               : "memory");
#else
  copy16_async(target, source, valid);
#endif
}

// A scale's bits in a register of their own. The compiler would put two of them into one, and for that
// wait at once for loads that are to be under way for a step: 25 % of the stalls were there.
template <typename T>
__device__ __forceinline__ unsigned int load_scale(const T* source) {
  unsigned int bits;
  asm volatile("ld.global.nc.u16 %0, [%1];" : "=r"(bits) : "l"(source));
  return bits;
}

__device__ __forceinline__ float scale_of(unsigned int bits, __nv_bfloat16) {
  return __uint_as_float(bits << 16);
}

__device__ __forceinline__ float scale_of(unsigned int bits, __half) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

// The items of x that stand against a word of weights, 2 PAIRS in order, in its pairs.
template <int PAIRS>
__device__ __forceinline__ void pair_up(const unsigned int* x, unsigned int (&pair)[PAIRS]) {
#pragma unroll
  for (int p = 0; p < PAIRS; ++p) {
    pair[p] = __byte_perm(x[p / 2], x[p / 2 + PAIRS / 2], p % 2 ? 0x7632 : 0x5410);
  }
}

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
  const int row_cols = static_cast<int>(cols);
  const int steps = (row_cols + STEP_COLS - 1) / STEP_COLS;
  // Whether copy c of a lane lies within the row: weights and x are zero beyond it.
  const auto inside = [&](int step, int c) {
    return GROUPED || step * STEP_COLS + c * QUAD * COPY_COLS + j * COPY_COLS < row_cols;
  };

  // The ring is filled in the order in which it is read: tile by tile, then a step on.
  constexpr int STEP_BYTES = COPIES * QUAD * COPY_BYTES;
  extern __shared__ uint4 shared[];
  uint4* const ring = shared + warp * SLOTS * SLOT + lane;
  const unsigned int row_bytes = row_cols / COPY_COLS * COPY_BYTES, half_bytes = 8 * row_bytes;
  weight += (first + r) * row_bytes + warp * STEP_BYTES + j * COPY_BYTES;
  const auto fetch = [&](int slot, int step, int tile) {
    if (step < steps) {
#pragma unroll
      for (int i = 0; i < 2 * COPIES; ++i) {
        const int c = i / 2, half = 2 * tile + i % 2;
        copy16_async_of_256(
            shared_address(ring + slot * SLOT + i * 32),
            weight + static_cast<unsigned long long>(half_bytes) * half + c * QUAD * COPY_BYTES,
            exists(half) && inside(step, c));
      }
    }
    commit_copies();
    if (tile == TILES - 1) weight += WARPS * STEP_BYTES;
  };

  // What a step needs besides weights is loaded a step ahead. Lane j of a quad holds the scales of
  // halves j, j + 4 ... for all four.
  constexpr int KEPT = (HALVES + QUAD - 1) / QUAD;
  Vec<T, 8> items[COPIES][PAIRS];
  unsigned int next_factor[KEPT];
  const bool has_token = r < tokens;
  x += (has_token ? r : 0) * cols + warp * STEP_COLS + j * COPY_COLS;
  const T* const row_scale = scale + first;
  scale += first * steps + warp;
  unsigned int scale_row[KEPT];
#pragma unroll
  for (int i = 0; i < KEPT; ++i) {
    scale_row[i] = min((i * QUAD + j) * 8 + r, own_rows - 1) * steps;
  }
  const auto fetch_x_and_scales = [&](int step) {
#pragma unroll
    for (int i = 0; i < COPIES * PAIRS; ++i) {
      const int c = i / PAIRS;
      items[c][i % PAIRS] = {};
      if (has_token && inside(step, c)) {
        items[c][i % PAIRS] = load_shared_by_blocks<T, 8>(x + c * QUAD * COPY_COLS + i % PAIRS * 8);
      }
    }
    x += WARPS * STEP_COLS;
    if constexpr (GROUPED) {
#pragma unroll
      for (int i = 0; i < KEPT; ++i) next_factor[i] = load_scale(scale + scale_row[i]);
      scale += WARPS;
    }
  };

#pragma unroll
  for (int s = 0; s < SLOTS; ++s) fetch(s, warp + s / TILES * WARPS, s % TILES);
  if (warp < steps) fetch_x_and_scales(warp);

  const unsigned int weight_base = hidden(Format::BASE);
  float total[TILES][4] = {};
  int slot = 0;
  uint4 loaded[COPIES][2];  // the tile that is computed next
  wait_copies<SLOTS - 1>();
#pragma unroll
  for (int i = 0; i < 2 * COPIES; ++i) loaded[i / 2][i % 2] = ring[i * 32];
  for (int step = warp; step < steps; step += WARPS) {
    unsigned int b[COPIES][COPY_WORDS][PAIRS];
#pragma unroll
    for (int i = 0; i < COPIES * COPY_WORDS; ++i) {
      const auto& words = reinterpret_cast<const unsigned int(&)[4 * PAIRS]>(items[i / COPY_WORDS]);
      pair_up<PAIRS>(words + i % COPY_WORDS * PAIRS, b[i / COPY_WORDS][i % COPY_WORDS]);
    }
    unsigned int factor[KEPT];
#pragma unroll
    for (int i = 0; i < KEPT; ++i) factor[i] = next_factor[i];
    if (step + WARPS < steps) fetch_x_and_scales(step + WARPS);

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
      // This tile is in registers: its slot takes the next copies, and the tile behind it comes out.
      fetch(slot, step + (t + SLOTS) / TILES * WARPS, (t + SLOTS) % TILES);
      wait_copies<SLOTS - 1>();
      slot = (slot + 1) & (SLOTS - 1);
      uint4 ahead[COPIES][2];
#pragma unroll
      for (int i = 0; i < 2 * COPIES; ++i) ahead[i / 2][i % 2] = ring[slot * SLOT + i * 32];
      float group[4] = {base[0], base[1], base[2], base[3]};
      float(&sum)[4] = GROUPED ? group : total[t];
      float of_half[2];
      if constexpr (GROUPED) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int half = 2 * t + i;
          of_half[i] =
              scale_of(__shfl_sync(0xffffffffu, factor[half / QUAD], half % QUAD, QUAD), T());
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
            multiply_add<T>(sum, a, b[c][w][p], b[c][w][p + 1]);
          }
        }
      }
      if constexpr (GROUPED) {
#pragma unroll
        for (int i = 0; i < 4; ++i) total[t][i] = fmaf(of_half[i / 2], group[i], total[t][i]);
      }
#pragma unroll
      for (int i = 0; i < 2 * COPIES; ++i) loaded[i / 2][i % 2] = ahead[i / 2][i % 2];
    }
  }

  // A lane holds rows r and r + 8 of each tile, tokens 2 j and 2 j + 1. With 4 more rows a token the
  // lanes of a warp fall on 32 different banks. The ring has been read: the sums take its place.
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
