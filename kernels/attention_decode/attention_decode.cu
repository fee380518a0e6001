// Attention of one new token: y = softmax(q k^T / sqrt(head_dim)) v for each query head.
//
// q, y [batch, kv_heads, group, head_dim]: `group` query heads share a KV head (1: MHA; all: MQA).
// k, v [batch, kv_len, kv_heads, head_dim], or pages of 16 tokens [pages, 16, kv_heads, head_dim] in
// the order of page_table [batch, kv_len / 16].
// k and v cross DRAM once and are all that counts; q and y are small. Work: 4 batch heads kv_len
// head_dim flop on the tensor pipe. Scores, weights' sums and outputs are fp32; weights are rounded
// to the cache's type for the second product, the output once.
// head_dim 64, 128, 256; any group (above 16 the cache is read once per 16 heads, mostly from L2);
// any kv_len. fp16 from CC 7.5, bf16 from 8.0. k and v 16-byte aligned.
//
// Technique: split KV, a ring a warp. Each warp walks its own tiles of 16 keys through a ring in
// shared memory that it alone fills (cp.async) and reads (ldmatrix): no barrier in the loop. A block
// has 64 KB of rings, about 48 KB of it on the way; two blocks an SM, or one on every SM, are enough.
// Products are transposed, keys and head_dim along the 16 rows of the tensor core's tile and query
// heads along its 8 columns: scores^T = K Q^T, out^T = V^T P^T. A group of up to 8 heads then wastes
// no rows, a column's softmax statistics lie in the lanes that hold its outputs, and the weights
// become an operand by one movmatrix. Warps of a block merge through shared memory, blocks that
// share a head through that of their cluster; or, where a few heads need more blocks than a cluster
// has (and on cards without clusters), through a workspace, where the last to arrive merges.
//
// Public sources that taught the design: the split-KV decoding of Dao-AILab/flash-attention
// (csrc/flash_attn/src/flash_fwd_kernel.h) and the threadFenceReduction sample of
// NVIDIA/cuda-samples (the last block finishes). No code was taken.
// Measured on an H200, 2026-11-30, cold L2, of the roof measured at the same traffic, bf16, head_dim 128,
// contiguous: 64 sequences of 4096 tokens, 32 heads on 8, 240 us (98 %); 1 of 131072 123 us (96 %); 1 of
// 32768 35 us; 64 of 131072 7.5 ms (100 %). Paged: 64 of 4096 242 us (97 %).
#include "cluster.cuh"
#include "math.cuh"
#include "mma.cuh"
#include "parts.cuh"
#include "tiles.cuh"
#include "vec.cuh"

using namespace solkit;

// Blocks an SM whose registers are to suffice: their shared memory is 64 KB, all that CC 7.5 has.
#if __CUDA_ARCH__ >= 800
constexpr int RESIDENT_BLOCKS = 2;
#else
constexpr int RESIDENT_BLOCKS = 1;
#endif

// Blocks that have left their part of some heads' sums. They are zero between launches (the last
// block's increment wraps to zero), so no launch has to clear them; two launches of this kernel must
// not overlap. More are never split: see the declaration.
__device__ unsigned int arrived[1 << 10];

// A block: HEADS KV heads beside each other, KEY_WARPS warps a head, which take tiles in turn; up to
// 8 QUERY_TILES query heads a KV head; STAGES tiles of k and of v a warp under way.
// The grid: heads (and blocks of query heads), splits, sequences; so blocks that run at the same time
// read neighbouring rows. A null page_table is not read.
// sums [batch, kv_heads, query blocks, splits, 8 QUERY_TILES, D] and statistics (the same less D)
// are the workspace.
template <typename T, bool PAGED, int D, int QUERY_TILES, int HEADS, int KEY_WARPS, int STAGES,
          int RANKS>
__device__ __forceinline__ void decode(const T* __restrict__ q, const T* __restrict__ k,
                                       const T* __restrict__ v, const int* __restrict__ page_table,
                                       T* __restrict__ y, float* sums, Statistics* statistics,
                                       long long kv_heads, long long group, long long kv_len) {
  constexpr int ROWS = 8 * QUERY_TILES, STEPS = D / 16, WARPS = HEADS * KEY_WARPS;
  constexpr int CHUNKS = D / 8, TILE_BYTES = TILE_KEYS * CHUNKS * 16;  // 16-byte chunks of a row
  constexpr int PASS_ROWS = 32 / CHUNKS, COPIES = TILE_KEYS / PASS_ROWS;

  extern __shared__ uint4 shared[];
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int head_blocks = static_cast<int>(kv_heads) / HEADS, key_count = static_cast<int>(kv_len);
  const int query_blocks = (static_cast<int>(group) + ROWS - 1) / ROWS;
  const int query_block = blockIdx.x / head_blocks;
  const int first_head = (blockIdx.x - query_block * head_blocks) * HEADS;
  const int split = blockIdx.y, splits = gridDim.y;
  const long long sequence = blockIdx.z;
  // Query heads of this block, out of those that share a KV head.
  const int rows = min(ROWS, static_cast<int>(group) - query_block * ROWS);

  // This warp's tiles: first, first + KEY_WARPS, ... before end.
  const int head = first_head + warp % HEADS;
  const int all_tiles = (key_count - 1) / TILE_KEYS + 1;
  const int split_tiles = all_tiles / splits, longer_splits = all_tiles % splits;
  const int first_tile = split * split_tiles + min(split, longer_splits);
  const int first = first_tile + warp / HEADS;
  const int end = first_tile + split_tiles + (split < longer_splits);
  const int count = max(0, (end - first + KEY_WARPS - 1) / KEY_WARPS);

  // Tile n of k and of v lies in stage n % STAGES of the warp's ring. A lane copies one chunk column
  // of every PASS_ROWS-th row; keys past the last one become zeros.
  const unsigned int ring = shared_address(shared) + warp * STAGES * 2 * TILE_BYTES;
  const int copy_chunk = lane % CHUNKS, copy_row = lane / CHUNKS;
  const long long row_items = kv_heads * D;
  const long long lane_item = copy_row * row_items + head * D + copy_chunk * 8;
  Tiles<KEY_WARPS, PAGED> tiles(page_table, sequence, key_count, first, end);
  long long tile_item = 0;  // where the lane's part of the tile last begun starts, in k as in v
  auto copy_tile = [&](const T* cache, int n, unsigned int target) {
    const T* source = cache + tile_item;
    const int keys_left = key_count - (first + n * KEY_WARPS) * TILE_KEYS;
#pragma unroll
    for (int i = 0; i < COPIES; ++i) {
      const int row = copy_row + i * PASS_ROWS;
      copy16_async(target + swizzled<CHUNKS>(row, copy_chunk) * 16, source, row < keys_left);
      source += PASS_ROWS * row_items;
    }
  };
  auto copy_keys = [&](int n, unsigned int stage) {
    if (n < count) {
      tile_item = tiles.next() * row_items + lane_item;
      copy_tile(k, n, stage);
    }
    commit_copies();  // empty groups too: the count of groups is what the waits rely on
  };
  auto copy_values = [&](int n, unsigned int stage) {
    if (n < count) copy_tile(v, n, stage + TILE_BYTES);
    commit_copies();
  };
#pragma unroll
  for (int n = 0; n < STAGES; ++n) {
    copy_keys(n, ring + n * 2 * TILE_BYTES);
    copy_values(n, ring + n * 2 * TILE_BYTES);
  }

  // q^T as the second operand: query head lane / 4 of each query tile, head_dim along the steps.
  const long long query_row = (sequence * kv_heads + head) * group + query_block * ROWS;
  unsigned int query[QUERY_TILES][STEPS][2];
#pragma unroll
  for (int t = 0; t < QUERY_TILES; ++t) {
    const int row = t * 8 + lane / 4;
    const T* source = q + (query_row + row) * D + lane % 4 * 2;
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        query[t][step][half] = 0;
        if (row < rows) {
          query[t][step][half] =
              __ldg(reinterpret_cast<const unsigned int*>(source + step * 16 + half * 8));
        }
      }
    }
  }

  // This lane's part of the results: query heads 2 (lane % 4) and the next one of each query tile,
  // head_dim lane / 4 and 8 more of each step.
  float out[QUERY_TILES][STEPS][4] = {};
  float column_max[QUERY_TILES][2], column_sum[QUERY_TILES][2] = {};
#pragma unroll
  for (int t = 0; t < QUERY_TILES; ++t) column_max[t][0] = column_max[t][1] = minus_infinity();
  const float scale = LOG2_E * rsqrtf(static_cast<float>(D));  // weights are powers of two

  const int matrix = lane / 8, in_matrix = lane % 8;  // the row of ldmatrix that a lane points to
  unsigned int stage = ring;
  for (int n = 0; n < count; ++n) {
    // scores^T (16 keys x query heads): matrices of keys +0, +8, +0, +8 at head_dim +0, +0, +8, +8.
    wait_copies<2 * STAGES - 1>();
    __syncwarp();
    float score[QUERY_TILES][4] = {};
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
      unsigned int keys[4];
      const int row = matrix % 2 * 8 + in_matrix;
      load_matrices<false>(keys, stage + swizzled<CHUNKS>(row, step * 2 + matrix / 2) * 16);
#pragma unroll
      for (int t = 0; t < QUERY_TILES; ++t) {
        multiply_add<T>(score[t], keys, query[t][step][0], query[t][step][1]);
      }
    }
    __syncwarp();  // all lanes have read the keys: their place is free
    copy_keys(n + STAGES, stage);

    const int keys_left = key_count - (first + n * KEY_WARPS) * TILE_KEYS;
    if (keys_left < TILE_KEYS) {
#pragma unroll
      for (int t = 0; t < QUERY_TILES; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (lane / 4 + i / 2 * 8 >= keys_left) score[t][i] = minus_infinity();
        }
      }
    }

    // Online softmax of each query head (a column: 8 lanes, two keys each).
    unsigned int weights[QUERY_TILES][2];
#pragma unroll
    for (int t = 0; t < QUERY_TILES; ++t) {
#pragma unroll
      for (int column = 0; column < 2; ++column) {
        float tile_max = fmaxf(score[t][column], score[t][column + 2]);
#pragma unroll
        for (int distance = 4; distance < 32; distance *= 2) {
          tile_max = fmaxf(tile_max, __shfl_xor_sync(ALL_LANES, tile_max, distance));
        }
        const float new_max = fmaxf(column_max[t][column], tile_max * scale),
                    base = base_of(new_max);
        const float shrink = exp2_fast(column_max[t][column] - base);
        column_max[t][column] = new_max;
        score[t][column] = exp2_fast(fmaf(score[t][column], scale, -base));
        score[t][column + 2] = exp2_fast(fmaf(score[t][column + 2], scale, -base));
        column_sum[t][column] =
            fmaf(column_sum[t][column], shrink, score[t][column] + score[t][column + 2]);
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
          out[t][step][column] *= shrink;
          out[t][step][column + 2] *= shrink;
        }
      }
      weights[t][0] = transpose_matrix(rounded_pair<T>(score[t][0], score[t][1]));
      weights[t][1] = transpose_matrix(rounded_pair<T>(score[t][2], score[t][3]));
    }

    // out^T (head_dim x query heads): matrices of head_dim +0, +8, +0, +8 at keys +0, +0, +8, +8.
    wait_copies<2 * STAGES - 1>();
    __syncwarp();
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
      unsigned int values[4];
      const int row = matrix / 2 * 8 + in_matrix;
      load_matrices<true>(values,
                          stage + TILE_BYTES + swizzled<CHUNKS>(row, step * 2 + matrix % 2) * 16);
#pragma unroll
      for (int t = 0; t < QUERY_TILES; ++t) {
        multiply_add<T>(out[t][step], values, weights[t][0], weights[t][1]);
      }
    }
    __syncwarp();
    copy_values(n + STAGES, stage);
    stage =
        stage + 2 * TILE_BYTES == ring + STAGES * 2 * TILE_BYTES ? ring : stage + 2 * TILE_BYTES;
  }
  wait_copies<0>();
  __syncthreads();  // the rings are free: every warp leaves its part there

  // In shared memory: the warps' parts, and what the block makes of them. Rows of PITCH floats: the
  // lanes' columns then fall on different banks.
  constexpr int PITCH = D + 4, BLOCK_ROWS = HEADS * ROWS;
  static_assert((KEY_WARPS + 1) * BLOCK_ROWS * (PITCH + 2) * 4 <= WARPS * STAGES * 2 * TILE_BYTES,
                "the parts fit");
  float* const warp_items = reinterpret_cast<float*>(shared);
  float* const block_items = warp_items + KEY_WARPS * BLOCK_ROWS * PITCH;
  Statistics* const warp_statistics =
      reinterpret_cast<Statistics*>(block_items + BLOCK_ROWS * PITCH);
  Statistics* const block_statistics = warp_statistics + KEY_WARPS * BLOCK_ROWS;
#pragma unroll
  for (int t = 0; t < QUERY_TILES; ++t) {
#pragma unroll
    for (int column = 0; column < 2; ++column) {
      const int row = warp * ROWS + t * 8 + lane % 4 * 2 + column;
#pragma unroll
      for (int distance = 4; distance < 32; distance *= 2) {
        column_sum[t][column] += __shfl_xor_sync(ALL_LANES, column_sum[t][column], distance);
      }
      if (lane < 4) warp_statistics[row] = {column_max[t][column], column_sum[t][column]};
#pragma unroll
      for (int step = 0; step < STEPS; ++step) {
        float* target = warp_items + row * PITCH + step * 16 + lane / 4;
        target[0] = out[t][step][column];
        target[8] = out[t][step][column + 2];
      }
    }
  }
  __syncthreads();

  // Four items a thread: from `item` of query head `row` of head `item_head` of the block. Blocks
  // that share the work take an equal part of it each.
  auto for_all_items = [&](int sharer, int sharers, auto&& body) {
    constexpr int QUADS = D / 4;
    const int units = HEADS * rows * QUADS, own = (units + sharers - 1) / sharers;
    const int end_unit = min(units, (sharer + 1) * own);
    for (int unit = sharer * own + thread; unit < end_unit; unit += 32 * WARPS) {
      body(unit / QUADS / rows, unit / QUADS % rows, unit % QUADS * 4);
    }
  };
  const long long block_row = (sequence * kv_heads + first_head) * group + query_block * ROWS;
  auto store_result = [&](int item_head, int row, int item, float4 items, float scale) {
    const Vec<T, 4> result = {from_float<T>(items.x * scale), from_float<T>(items.y * scale),
                              from_float<T>(items.z * scale), from_float<T>(items.w * scale)};
    store(y + (block_row + item_head * group + row) * D + item, result);
  };
  // Splits merge in the cluster, where they are one; else as parts that pass through the workspace.
  constexpr bool IN_CLUSTER = RANKS > 1 && HAS_CLUSTERS;
  const int part_count = IN_CLUSTER ? 1 : splits;
  auto workspace_row = [&](int item_head, int row, int part) {
    const long long head_row = sequence * kv_heads + first_head + item_head;
    return ((head_row * query_blocks + query_block) * part_count + part) * ROWS + row;
  };
  auto pass_on = [&](int item_head, int row, int item, const Part& part) {
    if (part_count == 1) {
      store_result(item_head, row, item, part.items, 1.0f / part.statistics.sum);
    } else {
      const long long target = workspace_row(item_head, row, split);
      *reinterpret_cast<float4*>(sums + target * D + item) = part.items;
      if (item == 0) statistics[target] = part.statistics;
    }
  };

  for_all_items(0, 1, [&](int item_head, int row, int item) {
    const int place = item_head * ROWS + row;
    const Part merged = merge<KEY_WARPS>([&](int part) {
      const int from = part * BLOCK_ROWS + place;
      return Part{*reinterpret_cast<const float4*>(warp_items + from * PITCH + item),
                  warp_statistics[from]};
    });
    if constexpr (IN_CLUSTER) {
      *reinterpret_cast<float4*>(block_items + place * PITCH + item) = merged.items;
      if (item == 0) block_statistics[place] = merged.statistics;
    } else {
      pass_on(item_head, row, item, merged);
    }
  });
  if constexpr (IN_CLUSTER) {
    cluster_arrive();
    cluster_wait();
    for_all_items(split, RANKS, [&](int item_head, int row, int item) {
      const int place = item_head * ROWS + row;
      const Part merged = merge<RANKS>([&](int rank) {
        return load_from_rank(block_items + place * PITCH + item, block_statistics + place, rank);
      });
      store_result(item_head, row, item, merged.items, 1.0f / merged.statistics.sum);
    });
    cluster_arrive();  // "I have read": no block of the cluster ends before all have said so
    cluster_wait();
  } else if (part_count > 1) {
    __syncthreads();
    bool last = false;
    if (thread == 0) {
      last = arrive(arrived + blockIdx.z * gridDim.x + blockIdx.x, part_count) == part_count - 1;
    }
    if (!__syncthreads_or(last)) return;
    for (int unit = warp; unit < HEADS * rows; unit += WARPS) {
      const int item_head = unit / rows, row = unit % rows;
      const long long source = workspace_row(item_head, row, 0);
      merge_row<D, ROWS>(sums + source * D, statistics + source, part_count,
                         reinterpret_cast<Statistics*>(warp_items) + warp * part_count,
                         [&](int item, float4 items, float scale) {
                           store_result(item_head, row, item, items, scale);
                         });
    }
  }
}

template <typename T, bool PAGED, int D, int QUERY_TILES, int HEADS, int KEY_WARPS, int STAGES>
__global__ void __launch_bounds__(32 * HEADS * KEY_WARPS, RESIDENT_BLOCKS)
    attention_decode(const T* q, const T* k, const T* v, const int* page_table, T* y, float* sums,
                     Statistics* statistics, long long kv_heads, long long group,
                     long long kv_len) {
  decode<T, PAGED, D, QUERY_TILES, HEADS, KEY_WARPS, STAGES, 1>(
      q, k, v, page_table, y, sums, statistics, kv_heads, group, kv_len);
}

// The RANKS splits of a head are a cluster.
template <typename T, bool PAGED, int D, int QUERY_TILES, int HEADS, int KEY_WARPS, int STAGES,
          int RANKS>
__global__ void
#if __CUDA_ARCH__ >= 900
__cluster_dims__(1, RANKS, 1)
#endif
    __launch_bounds__(32 * HEADS * KEY_WARPS, RESIDENT_BLOCKS)
        attention_decode_cluster(const T* q, const T* k, const T* v, const int* page_table, T* y,
                                 float* sums, Statistics* statistics, long long kv_heads,
                                 long long group, long long kv_len) {
  decode<T, PAGED, D, QUERY_TILES, HEADS, KEY_WARPS, STAGES, RANKS>(
      q, k, v, page_table, y, sums, statistics, kv_heads, group, kv_len);
}
