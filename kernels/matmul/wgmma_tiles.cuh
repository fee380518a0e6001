// Products on Hopper's tensor cores: out = epilogue(x @ weight), x [M, K], weight [K, N] or [N, K].
// From CC 9.0a alone; fp16 and bf16, K and N multiples of 8 (the copy engine wants rows of 16 bytes).
//
// A tile is a [BM x K] times b [K x BN]. As a rule a is x and b is weight. SWAPPED, a is weight and b is
// x, so that the tile's columns are tokens: a product has 64 rows, but any multiple of 8 columns, which
// suits few tokens, and numbers of them that no multiple of 64 comes near.
//
// A block makes tiles of BM x BN, one after the other (a persistent grid). Its warps have roles, and
// hand each other places in shared memory by mbarriers; once it has begun nobody waits for all of it:
//
//   the load warp    one thread asks the copy engine for 64 k of a and of b, stage by stage, into a ring
//                    of STAGES; it runs ahead as far as the ring is empty, over the end of a tile into
//                    the next one.
//   WARPGROUPS       warpgroups multiply what has arrived, each 64 MI rows of the tile, all BN columns;
//                    a stage is empty again once all have multiplied it.
//   a store warp     for each warpgroup brings the tile's residual under the products and stores what
//                    the warpgroup has made of it. Both have the same place: a slice, 64 rows x SLICE
//                    columns; APART of a warpgroup's slices lie beside the ring. The others lie in
//                    further stages of the ring, after the tile's last one: four stages of 128 x 256 and
//                    the 64 KB of its residual are more than an SM has.
//
// In a cluster of CLUSTER_M x CLUSTER_N blocks, blocks of one row of tiles share a, blocks of one column
// share b: each loads a part and sends it to all that share it, so L2 is read less often. A stage is then
// empty when the warpgroups of every block that it comes from or goes to have left it.
// SPLIT blocks of a cluster share one tile's k, when tiles are too few for the card; each then adds up
// BN / SPLIT columns, whose sums the others send. Such a block makes one tile.
//
// Fences and barriers, each with its reason:
//   fence_mbarrier_init   barriers are opened before the copy engine and other blocks count on them.
//   full[stage]           bytes of a stage have arrived: the wait orders them before the products.
//   empty[stage]          the products that read a stage have completed (wait_products): no data is
//                         handed back, so no fence is needed before the next copy into it.
//   begin_products        registers written by the threads are seen by the tensor cores.
//   ready[warpgroup]      its slices beside the ring hold the residual, and are no more read by stores;
//                         and the last tile's results are taken: where k is so short that the ring holds
//                         two tiles, done[slice] would go two phases ahead of a store warp, which then
//                         waits for a parity that has come and gone.
//   fence_async_proxy     what threads wrote into a slice is seen by the copy engine that stores it.
//   done[slice]           all 128 threads have written it.
//   wait_stores_read      the copy engine has read a slice: the next residual may come into it.
//   mail[warpgroup]       where k is split: the other blocks' sums have arrived.
//   cluster barrier       the others run, before operands or sums are sent to them. There is none at the
//                         end: its release waits for every store, so a block ends when its mail has
//                         come and, where it shares stages, all have left them.
#pragma once

#include "epilogue.cuh"
#include "mma.cuh"
#include "wgmma.cuh"
#include "wgmma_block.cuh"

namespace solkit {

// A box for this block alone, or for all whose bits are set.
template <bool SHARED>
__device__ __forceinline__ void load_shared_box(void* target, const TensorMap& map,
                                                Mbarrier* barrier, int row, int col,
                                                unsigned int ranks) {
  if constexpr (SHARED) {
    load_box_to_ranks(target, map, barrier, row, col, static_cast<unsigned short>(ranks));
  } else {
    load_box(target, map, barrier, row, col);
  }
}

// The load warp, one thread of it: a's and b's stages of every tile, then its residual's.
template <typename FORM, bool HAS_RESIDUAL>
__device__ __forceinline__ void load_tiles(const WgmmaBlock<FORM>& block, const TensorMap& a_map,
                                           const TensorMap& b_map, const TensorMap& b_last_map,
                                           const TensorMap& residual_map) {
  // What this block loads of a stage, and who else gets it: a part of a for the blocks beside it, a part
  // of b for those above and below. A part is of rows (columns of b), or of k where that comes first.
  constexpr bool SHARES_A = FORM::CLUSTER_N > 1, SHARES_B = FORM::CLUSTER_M > 1;
  constexpr int A_ROWS = FORM::BM / FORM::CLUSTER_N, A_K = STAGE_K / FORM::CLUSTER_N;
  constexpr int B_COLUMNS = FORM::BN / FORM::CLUSTER_M, B_K = STAGE_K / FORM::CLUSTER_M;
  const unsigned int a_ranks = ((1u << FORM::CLUSTER_N) - 1)
                               << (block.first_rank + block.in_m * FORM::CLUSTER_N);
  unsigned int b_ranks = 0;
  for (int m = 0; m < FORM::CLUSTER_M; ++m) {
    b_ranks |= 1u << (block.first_rank + m * FORM::CLUSTER_N + block.in_n);
  }
  RingPlace<FORM::STAGES> at;
  for (int tile = block.first_tile; tile < block.tiles(); tile += block.step) {
    const Tile from = block.origin(tile);
    for (int k_stage = block.k_first; k_stage < block.k_end; ++k_stage) {
      const int k = k_stage * STAGE_K;
      Mbarrier* const arrived = block.full + at.stage;
      wait(block.empty + at.stage, at.parity ^ 1);
      // The whole of a stage is announced, whoever sends it: a byte that comes before this is counted,
      // and the phase can't end without this arrival.
      arrive_and_expect(arrived, FORM::LOADED_BYTES);
      unsigned char* const stage = block.shared + at.stage * FORM::STAGE_BYTES;
      if constexpr (FORM::A_BY_K) {
        const int row = block.in_n * A_ROWS;
        load_shared_box<SHARES_A>(stage + row * 128, a_map, arrived, from.m + row, k, a_ranks);
      } else {
#pragma unroll
        for (int row = 0; row < FORM::BM; row += 64) {
          load_shared_box<SHARES_A>(stage + (row + block.in_n * A_K) * 128, a_map, arrived,
                                    k + block.in_n * A_K, from.m + row, a_ranks);
        }
      }
      if constexpr (FORM::B_BY_K) {
        constexpr int BOXES = B_COLUMNS > 256 ? 2 : 1;  // of at most 256 rows each
#pragma unroll
        for (int box = 0; box < BOXES; ++box) {
          const int col = block.in_m * B_COLUMNS + box * (B_COLUMNS / BOXES);
          load_shared_box<SHARES_B>(stage + FORM::B_AT + col * 128, b_map, arrived, from.n + col, k,
                                    b_ranks);
        }
      } else {
        const int part = block.in_m * B_K;
#pragma unroll
        for (int col = 0; col < FORM::WHOLE; col += 64) {
          load_shared_box<SHARES_B>(stage + FORM::B_AT + col * 128 + part * 128, b_map, arrived,
                                    k + part, block.column(from.n, col), b_ranks);
        }
        if constexpr (FORM::LAST > 0) {
          load_shared_box<SHARES_B>(stage + FORM::B_AT + FORM::WHOLE * 128 + part * 128, b_last_map,
                                    arrived, k + part, block.column(from.n, FORM::WHOLE), b_ranks);
        }
      }
      at.advance();
    }
    for (int tail = 0; tail < FORM::TAIL_STAGES; ++tail) {
      const int begin = FORM::tail_begin(tail), end = FORM::tail_end(tail);
      const int bytes = FORM::WARPGROUPS * (end - begin) * FORM::SLICE_BYTES;
      wait(block.empty + at.stage, at.parity ^ 1);
      arrive_and_expect(block.full + at.stage, HAS_RESIDUAL ? bytes : 0);
      if constexpr (HAS_RESIDUAL) {
        for (int slice = begin; slice < end; ++slice) {
          for (int warpgroup = 0; warpgroup < FORM::WARPGROUPS; ++warpgroup) {
            const Tile to = block.slice_origin(from, warpgroup, slice);
            load_box(block.slice_place(warpgroup, slice, at.stage), residual_map,
                     block.full + at.stage, to.m, to.n);
          }
        }
      }
      at.advance();
    }
  }
  // A block that shares stages lasts until all have left them: then nobody arrives here any more, and
  // what others sent has come.
  if constexpr (FORM::SHARES) {
#pragma unroll 1
    for (int stage = 0; stage < FORM::STAGES; ++stage) {
      wait(block.empty + at.stage, at.parity ^ 1);
      at.advance();
    }
  }
}

// A store warp: before, it says that the tile may be handed over, with the residual of its warpgroup's
// slices beside the ring; after the warpgroup has written them, it stores all of its slices.
template <typename FORM, bool HAS_RESIDUAL>
__device__ __forceinline__ void store_tiles(const WgmmaBlock<FORM>& block, int warpgroup,
                                            const TensorMap& residual_map,
                                            const TensorMap& out_map) {
  RingPlace<FORM::STAGES> at;
  int parity = 0;  // of the phases that go by tiles
  for (int tile = block.first_tile; tile < block.tiles(); tile += block.step) {
    const Tile from = block.origin(tile);
    if (elect_lane()) {
      constexpr int BYTES = FORM::APART * FORM::SLICE_BYTES;
      arrive_and_expect(block.ready + warpgroup, HAS_RESIDUAL ? BYTES : 0);
      if constexpr (HAS_RESIDUAL) {
        for (int slice = 0; slice < FORM::APART; ++slice) {
          const Tile to = block.slice_origin(from, warpgroup, slice);
          load_box(block.slice_place(warpgroup, slice, 0), residual_map, block.ready + warpgroup,
                   to.m, to.n);
        }
      }
      if constexpr (FORM::SPLIT > 1) {
        expect_mail(block.mail + warpgroup, (FORM::SPLIT - 1) * FORM::PART * 128 * 16);
      }
    }
    __syncwarp();
    for (int k_stage = block.k_first; k_stage < block.k_end; ++k_stage) at.advance();
    auto store_slices = [&](int begin, int end) {
      if (elect_lane()) {
        for (int slice = begin; slice < end; ++slice) {
          const Tile to = block.slice_origin(from, warpgroup, slice);
          wait(block.done + warpgroup * FORM::SLICES + slice, parity);
          store_box(out_map, to.m, to.n, block.slice_place(warpgroup, slice, at.stage));
        }
        commit_stores();
        wait_stores_read<0>();
      }
      __syncwarp();
    };
    for (int tail = 0; tail < FORM::TAIL_STAGES; ++tail) {
      store_slices(FORM::tail_begin(tail), FORM::tail_end(tail));
      for (int i = 0; i < 4; ++i) block.leave(at.stage);  // for the four warps that wrote into it
      at.advance();
    }
    if constexpr (FORM::APART > 0) store_slices(0, FORM::APART);
    parity ^= 1;
  }
}

// The accumulators of a thread: of MI products of 64 rows, four for every eight columns.
template <typename FORM>
struct WgmmaSums {
  float wide[FORM::MI][FORM::WIDE / 2], rest[FORM::MI][FORM::REST > 0 ? FORM::REST / 2 : 1];

  // Those of the eight columns from `col` on; both indices are known when compiled.
  __device__ __forceinline__ float* at(int m, int col) {
    return col < FORM::WIDE ? wide[m] + col / 2 : rest[m] + (col - FORM::WIDE) / 2;
  }
};

// Where k is split: each block adds up its own columns of the tile and sends the other sums to their
// owners. A letter needs no answer; a warpgroup goes on when those of its own columns have come. By a
// barrier of the cluster, whose release waits for every store, a tile took 0.2 to 0.4 us longer (an H200,
// 128 x 2560 x 2560 by 128 x 64, kn: 8.32 us where it takes 7.94).
template <typename FORM>
__device__ __forceinline__ void add_up(const WgmmaBlock<FORM>& block, int warpgroup,
                                       WgmmaSums<FORM>& sums) {
  constexpr int EIGHTS = FORM::OWN / 8, PART_QUADS = FORM::PART_BYTES / 16;
  float4* const parts = reinterpret_cast<float4*>(block.shared + FORM::PARTS_AT);
  const int beside = warpgroup * FORM::PART * 128 + threadIdx.x % 128;
  auto four = [&](int owner, int i) {
    return sums.at(i / EIGHTS, owner * FORM::OWN + i % EIGHTS * 8);
  };
  block.wait_until_others_run();
#pragma unroll
  for (int owner = 0; owner < FORM::SPLIT; ++owner) {
    if (owner == block.split) continue;
    const int place = (block.split - (block.split > owner)) * PART_QUADS + beside;
    const int rank = owner * FORM::SHARERS + block.in_m * FORM::CLUSTER_N + block.in_n;
#pragma unroll
    for (int i = 0; i < FORM::PART; ++i) {
      const float* const sum = four(owner, i);
      send_to_rank(parts + place + i * 128, block.mail + warpgroup, rank,
                   make_float4(sum[0], sum[1], sum[2], sum[3]));
    }
  }
  wait_for_mail(block.mail + warpgroup);
#pragma unroll
  for (int owner = 0; owner < FORM::SPLIT; ++owner) {
    if (owner != block.split) continue;
#pragma unroll
    for (int i = 0; i < FORM::PART; ++i) {
      float* const sum = four(owner, i);
#pragma unroll
      for (int other = 0; other < FORM::SPLIT - 1; ++other) {
        const float4 more = parts[other * PART_QUADS + beside + i * 128];
        sum[0] += more.x;
        sum[1] += more.y;
        sum[2] += more.z;
        sum[3] += more.w;
      }
    }
  }
}

// A warpgroup turns a slice's sums into results, in the place where its residual lies. OWNER: the part
// of the columns that this block adds up.
template <typename T, typename EPILOGUE, typename FORM>
__device__ __forceinline__ void finish_slice(const WgmmaBlock<FORM>& block, int warpgroup,
                                             WgmmaSums<FORM>& sums, Tile from, int owner, int slice,
                                             int stage, const T* bias, long long N, float alpha,
                                             float beta) {
  constexpr bool SWAPPED = FORM::SWAPPED, HAS_RESIDUAL = EPILOGUE::HAS_RESIDUAL;
  constexpr int SLICE = FORM::SLICE, ACROSS = FORM::ACROSS;
  // A lane's place in it, as ldmatrix and stmatrix ask for it: of EACH matrices of 8 x 8, rows +0, +8 at
  // 8 columns, and the same at the next 8. A slice that is SWAPPED has them transposed.
  constexpr int EACH = SLICE % 16 == 0 ? 4 : 2, TIMES = SLICE / (EACH * 4);
  const int lane = block.lane, matrix = lane / 8, warp_row = block.warp % 4 * 16;
  const int row = SWAPPED ? matrix / 2 * 8 + lane % 8 : warp_row + matrix % 2 * 8 + lane % 8;
  const int col = SWAPPED ? warp_row + matrix % 2 * 8 : matrix / 2 * 8;
  const unsigned int place =
      shared_address(block.slice_place(warpgroup, slice, stage)) +
      swizzled_offset<FORM::SLICE_SWIZZLE>((row * (SWAPPED ? 64 : SLICE) + col) * 2);
  // Matrices further on: other rows of tokens, or an XOR away within a swizzled row.
  auto place_of = [&](int i) { return SWAPPED ? place + i * EACH * 512 : place ^ (i * 32); };
  const Tile to = block.slice_origin(from, warpgroup, slice);

  // All of the residual first: a load can't pass a store that might be to its place.
  unsigned int words[TIMES][EACH], biases[TIMES][EACH / 2];
  float row_bias[2] = {0, 0};
  if constexpr (EPILOGUE::HAS_BIAS && SWAPPED) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int n = to.n + warp_row + half * 8 + lane / 4;
      if (n < N) row_bias[half] = to_float(bias[n]);
    }
  }
#pragma unroll
  for (int i = 0; i < TIMES; ++i) {
    if constexpr (HAS_RESIDUAL) load_matrices<SWAPPED>(words[i], place_of(i));
    if constexpr (EPILOGUE::HAS_BIAS && !SWAPPED) {
#pragma unroll
      for (int j = 0; j < EACH / 2; ++j) {
        const int n = to.n + i * 16 + j * 8 + lane % 4 * 2;
        biases[i][j] = 0;
        if (n < N) biases[i][j] = __ldg(reinterpret_cast<const unsigned int*>(bias + n));
      }
    }
  }
#pragma unroll
  for (int i = 0; i < TIMES; ++i) {
#pragma unroll
    for (int j = 0; j < EACH; ++j) {  // 8 columns j / 2, upper or lower rows j % 2
      const int eight = owner * FORM::OWN + slice % ACROSS * SLICE + i * EACH * 4 + j / 2 * 8;
      const float* const two = sums.at(slice / ACROSS, eight) + j % 2 * 2;
      float2 residual = make_float2(0, 0), added = make_float2(0, 0);
      if constexpr (HAS_RESIDUAL) residual = unpacked_pair<T>(words[i][j]);
      if constexpr (EPILOGUE::HAS_BIAS) {
        added = SWAPPED ? make_float2(row_bias[j % 2], row_bias[j % 2])
                        : unpacked_pair<T>(biases[i][j / 2]);
      }
      words[i][j] =
          rounded_pair<T>(EPILOGUE::template apply<T>(two[0], added.x, residual.x, alpha, beta),
                          EPILOGUE::template apply<T>(two[1], added.y, residual.y, alpha, beta));
    }
    store_matrices<SWAPPED>(place_of(i), words[i]);
  }
  fence_async_proxy();
  arrive(block.done + warpgroup * FORM::SLICES + slice);
}

// A warpgroup: the products of every tile, then what follows them.
template <typename T, typename EPILOGUE, typename FORM>
__device__ __forceinline__ void multiply_tiles(const WgmmaBlock<FORM>& block, int warpgroup,
                                               const T* bias, long long N, float alpha,
                                               float beta) {
  WgmmaSums<FORM> sums;
  RingPlace<FORM::STAGES> at;
  int parity = 0;  // of the phases that go by tiles
  // The descriptors of the first stage; others lie whole bytes further on.
  const unsigned int ring = shared_address(block.shared);
  const unsigned long long a_tile =
      tile_descriptor(ring + warpgroup * FORM::MI * 64 * 128, 0, 1024);
  const unsigned long long wide_tile = tile_descriptor(ring + FORM::B_AT, FORM::LEADING, 1024);
  const unsigned long long rest_tile = tile_descriptor(ring + FORM::REST_AT, FORM::LEADING, 1024);
  // 16 k further on: 32 bytes along a row, or 16 rows.
  constexpr int A_STEP = FORM::A_BY_K ? 32 : 16 * 128, B_STEP = FORM::B_BY_K ? 32 : 16 * 128;

  for (int tile = block.first_tile; tile < block.tiles(); tile += block.step) {
    int last_stage = 0;
    for (int k_stage = block.k_first; k_stage < block.k_end; ++k_stage) {
      wait(block.full + at.stage, at.parity);
      begin_products();
#pragma unroll
      for (int quarter = 0; quarter < STAGE_K / 16; ++quarter) {
#pragma unroll
        for (int m = 0; m < FORM::MI; ++m) {
          const int stage = at.stage * FORM::STAGE_BYTES;
          const bool more = k_stage > block.k_first || quarter > 0;
          const unsigned long long a = moved(a_tile, stage + m * 64 * 128 + quarter * A_STEP);
          Product<T, FORM::WIDE, !FORM::A_BY_K, !FORM::B_BY_K>::multiply(
              sums.wide[m], a, moved(wide_tile, stage + quarter * B_STEP), more);
          if constexpr (FORM::REST > 0) {
            Product<T, FORM::REST, !FORM::A_BY_K, !FORM::B_BY_K>::multiply(
                sums.rest[m], a, moved(rest_tile, stage + quarter * B_STEP), more);
          }
        }
      }
      commit_products();
      // One group stays under way, so that the tensor cores never wait for the threads.
      if (k_stage > block.k_first) {
        wait_products<1>();
        block.leave(last_stage);
      }
      last_stage = at.stage;
      at.advance();
    }
    wait_products<0>();
    block.leave(last_stage);

    if constexpr (FORM::SPLIT > 1) add_up(block, warpgroup, sums);
    const Tile from = block.origin(tile);
    auto finish = [&](int owner, int slice, int stage) {
      finish_slice<T, EPILOGUE>(block, warpgroup, sums, from, owner, slice, stage, bias, N, alpha,
                                beta);
    };
    wait(block.ready + warpgroup, parity);
    // The ring's stages first: the load warp waits for them.
#pragma unroll
    for (int tail = 0; tail < FORM::TAIL_STAGES; ++tail) {
      wait(block.full + at.stage, at.parity);
#pragma unroll
      for (int i = 0; i < FORM::IN_STAGE; ++i) {
        const int slice = FORM::tail_begin(tail) + i;
        if (slice < FORM::SLICES) finish(0, slice, at.stage);
      }
      at.advance();
    }
#pragma unroll
    for (int owner = 0; owner < FORM::SPLIT; ++owner) {
      if (owner != block.split) continue;  // each a branch: accumulators are known when compiled
#pragma unroll
      for (int slice = 0; slice < FORM::APART; ++slice) finish(owner, slice, 0);
    }
    parity ^= 1;
  }
}

// The maps are of boxes of a stage of a and of b (b_last_map: of the columns that fill no line, else
// b_map again), and of a slice of residual (without one, any map) and out.
template <typename T, typename FORM, typename EPILOGUE>
__global__ void __launch_bounds__(FORM::THREADS, FORM::RESIDENT)
    matmul_wgmma(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
                 const __grid_constant__ TensorMap b_last_map,
                 const __grid_constant__ TensorMap residual_map,
                 const __grid_constant__ TensorMap out_map, const T* __restrict__ bias, long long M,
                 long long K, long long N, float alpha, float beta) {
  // Its own name: compiled together, the other kernels' `shared` is of another type.
  extern __shared__ __align__(1024) unsigned char wgmma_shared[];
  const WgmmaBlock<FORM> block(wgmma_shared, M, K, N);
  block.open_barriers();
  if (block.warp < 4) {
    if constexpr (FORM::FEW < FORM::LAUNCHED) shrink_registers<FORM::FEW>();
    if (block.warp == 0) {
      if (elect_lane()) {
        load_tiles<FORM, EPILOGUE::HAS_RESIDUAL>(block, a_map, b_map, b_last_map, residual_map);
      }
      __syncwarp();
      block.wait_until_others_run();  // it sends no sums, but each arrival wants its wait
    } else {
      // At once: racecheck stood still, as if all warps of a block had to be in this wait, where these
      // came to it after their work, which needs warps that wait before theirs.
      block.wait_until_others_run();
      if (block.warp <= FORM::WARPGROUPS) {
        store_tiles<FORM, EPILOGUE::HAS_RESIDUAL>(block, block.warp - 1, residual_map, out_map);
      }
    }
  } else {
    if constexpr (FORM::MANY > FORM::LAUNCHED) grow_registers<FORM::MANY>();
    multiply_tiles<T, EPILOGUE>(block, block.warp / 4 - 1, bias, N, alpha, beta);
  }
}

}  // namespace solkit
