// Kernels as a user would write them, for tests/gpu/test_tensor_maps.py: boxes loaded, stored and sent
// to several blocks by the copy engine, and clusters that the launch asks for.
#include "cluster.cuh"
#include "mma.cuh"
#include "tensor_map.cuh"

using namespace solkit;

// What lies outside of x, too: seen [padded_rows, padded_cols] is made of whole boxes. With a swizzle a
// row takes all of it, however short it is.
template <typename T, int ROWS, int COLS, int SWIZZLE_BYTES>
__global__ void load_boxes(const __grid_constant__ TensorMap x, T* seen, long long padded_cols) {
  constexpr int ROW_BYTES = SWIZZLE_BYTES > 0 ? SWIZZLE_BYTES : COLS * sizeof(T);
  extern __shared__ __align__(1024) unsigned char box[];
  __shared__ Mbarrier full;
  const int row = blockIdx.y * ROWS, col = blockIdx.x * COLS;
  if (threadIdx.x == 0) {
    prefetch_map(x);
    prefetch_box(x, row, col);
    init_mbarrier(&full, 1);
    fence_mbarrier_init();
    arrive_and_expect(&full, ROWS * COLS * sizeof(T));
    load_box(box, x, &full, row, col);
  }
  __syncthreads();  // nobody waits at a barrier that is not open
  wait(&full, 0);
  for (int item = threadIdx.x; item < ROWS * COLS; item += blockDim.x) {
    const int place =
        swizzled_offset<SWIZZLE_BYTES>(item / COLS * ROW_BYTES + item % COLS * sizeof(T));
    seen[(row + item / COLS) * padded_cols + col + item % COLS] =
        *reinterpret_cast<const T*>(box + place);
  }
}

// y = x + 1, in shared memory.
template <int ROWS, int COLS, int SWIZZLE_BYTES>
__global__ void store_boxes(const __grid_constant__ TensorMap x,
                            const __grid_constant__ TensorMap y) {
  extern __shared__ __align__(1024) unsigned char box[];
  __shared__ Mbarrier full;
  const int row = blockIdx.y * ROWS, col = blockIdx.x * COLS;
  const bool one = threadIdx.x < 32 && elect_lane();
  if (one) {
    init_mbarrier(&full, 1);
    fence_mbarrier_init();
    arrive_and_expect(&full, ROWS * COLS * 4);
    load_box(box, x, &full, row, col);
  }
  __syncthreads();
  wait(&full, 0);
  float* items = reinterpret_cast<float*>(box);
  for (int item = threadIdx.x; item < ROWS * COLS; item += blockDim.x) items[item] += 1.0f;
  fence_async_proxy();  // each thread's own stores, before the one that lets the engine read them
  __syncthreads();
  if (one) {
    store_box(y, row, col, box);
    commit_stores();
    wait_stores_read<0>();
  }
}

// A ring of SLOTS boxes that one block of the cluster fills for all RANKS of them: each block writes
// every box of its cluster, y [clusters, RANKS, boxes, ROWS, COLS].
template <int RANKS, int SLOTS, int ROWS, int COLS>
__global__ void share_boxes(const __grid_constant__ TensorMap x, float* y, long long boxes) {
  constexpr int BYTES = ROWS * COLS * 4;
  extern __shared__ __align__(1024) unsigned char ring[];
  __shared__ Mbarrier full[SLOTS], empty[SLOTS];
  const int rank = cluster_rank(), cluster = blockIdx.x / RANKS;
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < SLOTS; ++slot) {
      init_mbarrier(&full[slot], 1);
      init_mbarrier(&empty[slot], RANKS);
    }
    fence_mbarrier_init();
  }
  cluster_arrive();
  cluster_wait();  // every block's barriers are open before a box or an arrival gets there
  for (int number = 0; number < boxes; ++number) {
    const int slot = number % SLOTS, parity = number / SLOTS % 2;
    unsigned char* box = ring + slot * BYTES;
    if (threadIdx.x == 0) {
      arrive_and_expect(&full[slot], BYTES);  // every block counts its own copy
      if (rank == 0) {
        wait(&empty[slot], parity ^ 1);
        load_box_to_ranks(box, x, &full[slot], (cluster * boxes + number) * ROWS, 0,
                          (1 << RANKS) - 1);
      }
    }
    wait(&full[slot], parity);
    float* target = y + ((cluster * RANKS + rank) * boxes + number) * ROWS * COLS;
    for (int item = threadIdx.x; item < ROWS * COLS; item += blockDim.x) {
      target[item] = reinterpret_cast<const float*>(box)[item];
    }
    __syncthreads();
    if (threadIdx.x == 0) arrive_at_rank(&empty[slot], 0);
  }
  cluster_arrive();
  cluster_wait();  // block 0's barriers are there until the last arrival
}

// y[block] = x[the next block of its cluster], read from that block's shared memory.
__global__ void pass_on(const float* x, float* y) {
  __shared__ float mine;
  const int block = blockIdx.y * gridDim.x + blockIdx.x;
  if (threadIdx.x == 0) mine = x[block];
  cluster_arrive();
  cluster_wait();
  float other = mine;
#if __CUDA_ARCH__ >= 900
  unsigned int ranks, there;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(ranks));
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(there)
      : "r"(shared_address(&mine)), "r"((cluster_rank() + 1) % ranks));
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(other) : "r"(there) : "memory");
#endif
  if (threadIdx.x == 0) y[block] = other;
  cluster_arrive();
  cluster_wait();  // nobody's shared memory goes while it may be read
}

// Nothing, in clusters of two whatever the launch says.
__global__ void
#if __CUDA_ARCH__ >= 900
__cluster_dims__(2, 1, 1)
#endif
    compiled_for_two(const float* x, float* y) {
}
