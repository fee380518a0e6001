// Thread block clusters: blocks of one group that run at the same time and write into each other's
// shared memory, from CC 9.0 on.
//
// A kernel says __cluster_dims__(RANKS, 1, 1) only `#if __CUDA_ARCH__ >= 900`, and asks HAS_CLUSTERS
// for the way it takes on older cards, on which a block stands alone.
#pragma once

namespace solkit {

#if __CUDA_ARCH__ >= 900
constexpr bool HAS_CLUSTERS = true;
#else
constexpr bool HAS_CLUSTERS = false;
#endif

// Eight blocks run on every card with clusters; up to 16 on the large ones of CC 9 and 10 alone, where
// the launch has to allow it for the function. One of those with few SMs in a GPC, or a part of one
// (MIG), may refuse the launch: the compiler can't know.
template <int RANKS>
constexpr bool HAS_CLUSTERS_OF =
#if __CUDA_ARCH__ >= 1100
    RANKS <= 8;
#else
    HAS_CLUSTERS;
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

// A mailbox: 64-bit letters that blocks of the cluster send to each other's shared memory, and an
// mbarrier (8 bytes of shared memory) that counts the bytes which have arrived.
//
// One thread opens it before its arrival; after cluster_wait() letters may be sent. One thread says how
// many bytes are expected, before or after the first have come, and every reader waits. A mailbox is
// used once a kernel (its phase is always 0). A block that has waited for all of its letters may end:
// nobody writes into its shared memory any more, and what it has sent is on its way.
__device__ __forceinline__ void open_mailbox(unsigned long long* barrier) {
#if __CUDA_ARCH__ >= 900
  const unsigned int here = static_cast<unsigned int>(__cvta_generic_to_shared(barrier));
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(here) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

__device__ __forceinline__ void expect_mail(unsigned long long* barrier, int bytes) {
#if __CUDA_ARCH__ >= 900
  const unsigned int here = static_cast<unsigned int>(__cvta_generic_to_shared(barrier));
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(here), "r"(bytes)
               : "memory");
#endif
}

// Send two floats to where block `rank` has what `mine` is in this block.
__device__ __forceinline__ void send_to_rank(float2* mine, unsigned long long* barrier, int rank,
                                             float2 value) {
#if __CUDA_ARCH__ >= 900
  const unsigned int here = static_cast<unsigned int>(__cvta_generic_to_shared(mine));
  const unsigned int bell = static_cast<unsigned int>(__cvta_generic_to_shared(barrier));
  unsigned int there, there_bell;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there_bell) : "r"(bell), "r"(rank));
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::
          "r"(there),
      "f"(value.x), "f"(value.y), "r"(there_bell)
      : "memory");
#endif
}

__device__ __forceinline__ void wait_for_mail(unsigned long long* barrier) {
#if __CUDA_ARCH__ >= 900
  const unsigned int here = static_cast<unsigned int>(__cvta_generic_to_shared(barrier));
  unsigned int done = 0;
  while (!done) {
    asm volatile(
        "{\n\t.reg .pred complete;\n\t"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 complete, [%1], 0;\n\t"
        "selp.u32 %0, 1, 0, complete;\n\t}"
        : "=r"(done)
        : "r"(here)
        : "memory");
  }
#endif
}

// The arrival alone, which hands nothing over: "this block runs, its shared memory may be written". That
// a mailbox is open is handed over by the fence in open_mailbox(), which knows mbarriers alone.
__device__ __forceinline__ void cluster_arrive_started() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}

}  // namespace solkit
