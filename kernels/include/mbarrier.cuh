// mbarriers: counters in shared memory by which threads wait for data, from CC 9.0 on (empty before).
//
// A phase of an mbarrier is complete when it has had as many arrivals as it was opened for, and all
// the bytes that were announced to it have come: those of bulk copies are counted by the hardware. It
// then begins the next phase by itself. The phases' parities are 0, 1, 0, 1 ...: who waits names the
// parity of the phase whose end it waits for. On a new barrier a wait for parity 1 returns at once, as
// if a phase before the first had ended; so a producer finds each slot of a new ring empty.
#pragma once

#include "shared.cuh"

namespace solkit {

using Mbarrier = unsigned long long;  // in shared memory, 8-byte aligned

// One thread opens a barrier: a phase takes so many arrivals.
__device__ __forceinline__ void init_mbarrier(Mbarrier* barrier, int arrivals) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
#endif
}

// After the last init_mbarrier, by the same thread: the copy engine and the other blocks of the cluster
// see the barriers open. The threads of this block need __syncthreads() after it, those of other blocks
// cluster_arrive() and cluster_wait(): a barrier that is used before it is open is lost.
__device__ __forceinline__ void fence_mbarrier_init() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

// Arrive. What this thread did before is seen by those that wait for the phase.
__device__ __forceinline__ void arrive(Mbarrier* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
#endif
}

// Arrive, and announce bytes that copies will bring: the phase then waits for them, too. Before the
// copies are issued, or the phase might end between two of them.
__device__ __forceinline__ void arrive_and_expect(Mbarrier* barrier, int bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(barrier)),
               "r"(bytes)
               : "memory");
#endif
}

// Arrive at the barrier that block `rank` of the cluster has where `barrier` is in this block; its own
// rank is allowed. It says that this thread has read what it waited for, so that a slot of a ring may be
// filled again; written data is not handed over (a release to the whole cluster is a fence over the
// whole GPU: send data with st.async, as cluster.cuh does). That block must still run: it waits for the
// phase, or the cluster ends together.
__device__ __forceinline__ void arrive_at_rank(Mbarrier* barrier, int rank) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n\t.reg .b32 there;\n\t"
      "mapa.shared::cluster.u32 there, %0, %1;\n\t"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n\t}" ::"r"(shared_address(barrier)),
      "r"(rank)
      : "memory");
#endif
}

// Whether the phase of this parity has ended. The hardware may let the thread sleep for a while before
// it says no, so a loop around it is no busy loop.
__device__ __forceinline__ bool try_wait(Mbarrier* barrier, int parity) {
#if __CUDA_ARCH__ >= 900
  unsigned int done;
  asm volatile(
      "{\n\t.reg .pred complete;\n\t"
      "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 complete, [%1], %2;\n\t"
      "selp.u32 %0, 1, 0, complete;\n\t}"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return done != 0;
#else
  return true;
#endif
}

// Wait for the end of the phase of this parity: what came by bulk copies, and what threads of this
// block did before they arrived, is then seen.
__device__ __forceinline__ void wait(Mbarrier* barrier, int parity) {
  while (!try_wait(barrier, parity)) {
  }
}

// The same for data that other blocks have sent (st.async): the acquire reaches over the cluster, and
// empties L1 of what it holds of global memory.
__device__ __forceinline__ void wait_for_cluster(Mbarrier* barrier, int parity) {
#if __CUDA_ARCH__ >= 900
  unsigned int done = 0;
  while (!done) {
    asm volatile(
        "{\n\t.reg .pred complete;\n\t"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 complete, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, complete;\n\t}"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  }
#endif
}

}  // namespace solkit
