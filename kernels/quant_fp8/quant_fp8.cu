// Quantisation to fp8 e4m3 with a scale for each row (token) or for each 128 columns of a row
// (block): scale = max |x| / 448 (1 where all are 0), y = round(x / scale).
//
// x [rows, cols]; y [rows, cols] e4m3; scale fp32 [rows], or [rows, ceil(cols / 128)]; x fp32, fp16,
// bf16. Rounding is to nearest even, of the quotient itself, not of a product with the reciprocal:
// see fp8.cuh. NaN in a group makes its scale and all its codes NaN; infinity makes the scale
// infinity, finite items 0 and infinite ones NaN. cols a multiple of VEC.
// Traffic: rows x cols x (1 read + 1 byte written) + the scales. Ceiling: DRAM.
// Technique: the row is read once and stays in registers, packed. The maximum is taken over bits, as
// integers: an instruction an item at most, NaN wins by itself, and a warp reduces in one. A quotient
// takes three instructions, its conversion half of one from CC 8.9 on: about eight an item in all,
// where a stream of 2 bytes in and 1 out leaves room for 23 on H200.
// quant_fp8_token: several rows a warp, a warp or a block a row. quant_fp8_token_cluster: where rows
// are few, several blocks a row, which send their maxima into each other's shared memory; cards
// without clusters (before CC 9.0) take the passes of quant_fp8_token_looped. quant_fp8_token_looped:
// rows too long for registers are read again, from L2 where they still are.
// quant_fp8_block: a few neighbouring lanes hold a block of 128, so it needs shuffles alone; each lane
// has vectors of BLOCKS blocks under way.
// Measured on an H200, bf16, 2026-11-30, against its own streams at the same traffic: 32768 x 4096 in
// 93.6 us (token, 100 %) and 95.2 us (block, 99 %), 1 x 8192 in 1.3 us (token).
#include "fp8.cuh"
#include "rows.cuh"

using namespace solkit;

// One row, or ROWS of them, by ROW_THREADS threads of each of RANKS blocks.
template <typename T, int RANKS, int ROW_THREADS, int ROWS, int VEC, int CHUNKS, bool HARDWARE>
__device__ __forceinline__ void in_registers(const T* __restrict__ x, unsigned char* __restrict__ y,
                                             float* __restrict__ scale, long long rows,
                                             long long cols) {
  const RowShare<ROW_THREADS, ROWS, VEC, CHUNKS, RANKS> share(rows, cols);
  const long long start = share.start(cols);

  Vec<T, VEC> value[CHUNKS];
  load_row(share, x + start, value);
  share.loads_under_way(cols);
  unsigned int most = 0;
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    most = larger_magnitude(most, value[c]);
    stay_packed(value[c]);
  }
  const float row_scale =
      e4m3_scale(magnitude<T>(row_max<ROW_THREADS, RANKS>(magnitude_bits<T>(most))));
  const Divisor divisor(row_scale);
  if (share.first == 0) scale[share.row] = row_scale;
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    stay_packed(value[c]);
    const auto codes = e4m3_quotients<HARDWARE>(value[c], divisor);
    if (share.has(c)) store(y + start + share.offset(c), codes);
  }
}

// One row too long for registers, by THREADS threads.
template <typename T, int THREADS, int VEC, bool HARDWARE>
__device__ __forceinline__ void in_passes(const T* __restrict__ x, unsigned char* __restrict__ y,
                                          float* __restrict__ scale, long long cols,
                                          long long row) {
  const long long start = row * cols, first = threadIdx.x * VEC;
  unsigned int most = 0;
#pragma unroll 4
  for (long long col = first; col < cols; col += THREADS * VEC) {
    most = larger_magnitude(most, load<T, VEC>(x + start + col));
  }
  const float row_scale = e4m3_scale(magnitude<T>(row_max<THREADS>(magnitude_bits<T>(most))));
  const Divisor divisor(row_scale);
  if (threadIdx.x == 0) scale[row] = row_scale;
#pragma unroll 4
  for (long long col = first; col < cols; col += THREADS * VEC) {
    store(y + start + col, e4m3_quotients<HARDWARE>(load<T, VEC>(x + start + col), divisor));
  }
}

// RESIDENT blocks of it should stand on an SM at once.
template <typename T, int ROW_THREADS, int ROWS, int VEC, int CHUNKS, int RESIDENT, bool HARDWARE>
__global__ void __launch_bounds__(ROW_THREADS* ROWS, resident_blocks(ROW_THREADS* ROWS, RESIDENT))
    quant_fp8_token(const T* __restrict__ x, unsigned char* __restrict__ y,
                    float* __restrict__ scale, long long rows, long long cols) {
  in_registers<T, 1, ROW_THREADS, ROWS, VEC, CHUNKS, HARDWARE>(x, y, scale, rows, cols);
}

template <typename T, int RANKS, int THREADS, int VEC, int CHUNKS, bool HARDWARE>
__global__ void
#if __CUDA_ARCH__ >= 900
__cluster_dims__(RANKS, 1, 1)
#endif
    __launch_bounds__(THREADS, 1)
        quant_fp8_token_cluster(const T* __restrict__ x, unsigned char* __restrict__ y,
                                float* __restrict__ scale, long long rows, long long cols) {
  if constexpr (HAS_CLUSTERS) {
    in_registers<T, RANKS, THREADS, 1, VEC, CHUNKS, HARDWARE>(x, y, scale, rows, cols);
  } else if (blockIdx.x < rows) {  // the first blocks take a row each, the others none
    in_passes<T, THREADS, VEC, HARDWARE>(x, y, scale, cols, blockIdx.x);
  }
}

template <typename T, int THREADS, int VEC, bool HARDWARE>
__global__ void __launch_bounds__(THREADS)
    quant_fp8_token_looped(const T* __restrict__ x, unsigned char* __restrict__ y,
                           float* __restrict__ scale, long long rows, long long cols) {
  in_passes<T, THREADS, VEC, HARDWARE>(x, y, scale, cols, blockIdx.x);
}

// WHOLE: cols is a multiple of 128, so blocks follow one another without a gap and rows don't
// matter. Else each CUDA block keeps to one row, whose last block is short.
template <typename T, int THREADS, int VEC, int BLOCKS, bool WHOLE, bool HARDWARE>
__global__ void __launch_bounds__(THREADS, resident_blocks(THREADS, 2048 / THREADS))
    quant_fp8_block(const T* __restrict__ x, unsigned char* __restrict__ y,
                    float* __restrict__ scale, long long rows, long long cols) {
  constexpr int COLS = 128;  // that share a scale
  constexpr int LANES = COLS / VEC < 32 ? COLS / VEC : 32;
  constexpr int CHUNKS = COLS / VEC / LANES, GROUPS = THREADS / LANES;
  const int group = threadIdx.x / LANES, lane = threadIdx.x % LANES;
  const long long row_blocks = (cols + COLS - 1) / COLS;
  long long part = blockIdx.x, row = 0;
  if constexpr (!WHOLE) {
    const long long row_parts = (row_blocks + GROUPS * BLOCKS - 1) / (GROUPS * BLOCKS);
    row = part / row_parts;
    part -= row * row_parts;
  }
  // The group's first block and the lane's first column: counted over all rows, or in its own.
  const long long block = (part * GROUPS + group) * BLOCKS, column = block * COLS + lane * VEC;
  const long long rest = (WHOLE ? rows * cols : cols) - column;
  const int limit = static_cast<int>(rest < BLOCKS * COLS ? rest : BLOCKS * COLS);
  const long long start = row * cols + column;
  const auto offset = [](int b, int c) { return b * COLS + c * LANES * VEC; };

  Vec<T, VEC> value[BLOCKS][CHUNKS];
#pragma unroll
  for (int b = 0; b < BLOCKS; ++b) {
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      value[b][c] = load_within<T, VEC>(x + start + offset(b, c), offset(b, c) < limit);
    }
  }
  unsigned int most[BLOCKS] = {};  // all maxima side by side: their shuffles wait for one another
#pragma unroll
  for (int b = 0; b < BLOCKS; ++b) {
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) most[b] = larger_magnitude(most[b], value[b][c]);
    most[b] = warp_max<LANES>(magnitude_bits<T>(most[b]));
  }
#pragma unroll
  for (int b = 0; b < BLOCKS; ++b) {
    const float block_scale = e4m3_scale(magnitude<T>(most[b]));
    const Divisor divisor(block_scale);
    if (lane == 0 && offset(b, 0) < limit) scale[row * row_blocks + block + b] = block_scale;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const auto codes = e4m3_quotients<HARDWARE>(value[b][c], divisor);
      if (offset(b, c) < limit) store(y + start + offset(b, c), codes);
    }
  }
}
