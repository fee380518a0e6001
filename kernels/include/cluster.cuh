// Thread block clusters: blocks of one group that run at the same time and write into each other's
// shared memory, from CC 9.0 on.
//
// A kernel says __cluster_dims__(RANKS, 1, 1) only `#if __CUDA_ARCH__ >= 900`, and asks HAS_CLUSTERS
// for the way it takes on older cards, on which a block stands alone. Or its Launch has cluster=RANKS,
// where its launches ask the card. Eight blocks run on every whole card with clusters; up to 16 on the
// large ones of CC 9 and 10 alone, and not where GPCs have few SMs: the compiler can't know, but
// card.most_cluster_blocks does.
#pragma once

#include "mbarrier.cuh"

namespace solkit {

#if __CUDA_ARCH__ >= 900
constexpr bool HAS_CLUSTERS = true;
#else
constexpr bool HAS_CLUSTERS = false;
#endif

// This block's number in its cluster, counted along x as the grid is.
__device__ __forceinline__ int cluster_rank() {
#if __CUDA_ARCH__ >= 900
  unsigned int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
#else
  return 0;
#endif
}

// A barrier of all threads of all blocks of the cluster, in two halves, so that other work goes on
// between them. What was written before one thread's arrival is seen after any thread's wait.
__device__ __forceinline__ void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

__device__ __forceinline__ void cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// Where block `rank` has what `mine` is in this block, in the shared memory of the cluster.
__device__ __forceinline__ unsigned int address_at_rank(const void* mine, int rank) {
  unsigned int there = 0;
#if __CUDA_ARCH__ >= 900
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(mine)), "r"(rank));
#endif
  return there;
}

// What block `rank` has where `mine` is in this block, its own rank allowed: 16 bytes of its shared
// memory, written before a cluster barrier. A second one must follow before that block may end.
__device__ __forceinline__ float4 load_from_rank(const float4* mine, int rank) {
  float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#if __CUDA_ARCH__ >= 900
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "r"(address_at_rank(mine, rank))
               : "memory");
#endif
  return value;
}

// A mailbox: letters of 8 or 16 bytes that blocks of the cluster send to each other's shared memory, and an
// mbarrier (8 bytes of shared memory) that counts the bytes which have arrived.
//
// One thread opens it before its arrival; after cluster_wait() letters may be sent. One thread says how
// many bytes are expected, before or after the first have come, and every reader waits. A mailbox is
// used once a kernel (its phase is always 0). A block that has waited for all of its letters may end:
// nobody writes into its shared memory any more, and what it has sent is on its way.
__device__ __forceinline__ void open_mailbox(Mbarrier* barrier) {
  init_mbarrier(barrier, 1);
  fence_mbarrier_init();
}

__device__ __forceinline__ void expect_mail(Mbarrier* barrier, int bytes) {
  arrive_and_expect(barrier, bytes);
}

// Send two floats, or four, to where block `rank` has what `mine` is in this block.
__device__ __forceinline__ void send_to_rank(float2* mine, Mbarrier* barrier, int rank,
                                             float2 value) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::
          "r"(address_at_rank(mine, rank)),
      "f"(value.x), "f"(value.y), "r"(address_at_rank(barrier, rank))
      : "memory");
#endif
}

__device__ __forceinline__ void send_to_rank(float4* mine, Mbarrier* barrier, int rank,
                                             float4 value) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 "
      "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(address_at_rank(mine, rank)),
      "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(address_at_rank(barrier, rank))
      : "memory");
#endif
}

__device__ __forceinline__ void wait_for_mail(Mbarrier* barrier) { wait_for_cluster(barrier, 0); }

// The arrival alone, which hands nothing over: "this block runs, its shared memory may be written". That
// a mailbox is open is handed over by the fence in open_mailbox(), which knows mbarriers alone.
__device__ __forceinline__ void cluster_arrive_started() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}

}  // namespace solkit
