// Boxes of a tensor copied between global and shared memory by the copy engine (TMA), from CC 9.0 on
// (empty before): one thread asks for a box, no thread waits for addresses or holds data in registers.
//
// The tensor is described by a TensorMap that the host has encoded, a TensorMap("x", box=...) among the
// launch's args: the kernel takes it as `const __grid_constant__ TensorMap`, so that its address is one
// of the parameters' own. Indices are items in the order of the tensor's stored axes, as the box has
// them: (row, col) of a matrix stored row by row. What lies outside of the tensor is read as zero and
// not written; the bytes that an mbarrier counts are those of the whole box all the same.
//
// A box lies in shared memory row after row. With a swizzle of 32, 64 or 128 bytes, which is also the
// longest row that the box may then have, its chunks of 16 bytes change places so that a column of
// chunks lies in different banks; see swizzled_offset. A shorter row takes the place of a whole one; an
// mbarrier counts the box's own bytes. A box begins at a multiple of 128 bytes, with a
// swizzle at one of 8 of its rows: 256, 512 or 1024.
#pragma once

#include "mbarrier.cuh"

namespace solkit {

// CUtensorMap of the driver, which says nothing of what is inside.
struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};

// One lane of a warp whose lanes all come here, the same one each time: the compiler then knows that
// what follows has one thread, and keeps addresses in uniform registers.
__device__ __forceinline__ bool elect_lane() {
#if __CUDA_ARCH__ >= 900
  unsigned int elected;
  asm volatile(
      "{\n\t.reg .pred chosen;\n\t"
      "elect.sync _|chosen, 0xffffffff;\n\t"
      "selp.u32 %0, 1, 0, chosen;\n\t}"
      : "=r"(elected)::"memory");
  return elected != 0;
#else
  return threadIdx.x % 32 == 0;
#endif
}

// Bring the descriptor into its cache before the first copy needs it.
__device__ __forceinline__ void prefetch_map(const TensorMap& map) {
#if __CUDA_ARCH__ >= 900
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
#endif
}

// Load the box that begins at (row, col). Its bytes are counted by `barrier`; who has waited for its
// phase may read them. Slots that threads have read may be loaded over once those threads have arrived
// at a barrier that this thread has waited for: no fence is needed after reads.
__device__ __forceinline__ void load_box(void* target, const TensorMap& map, Mbarrier* barrier,
                                         int row, int col) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(target)),
      "l"(&map), "r"(shared_address(barrier)), "r"(col), "r"(row)
      : "memory");
#endif
}

// Load it once, into the same place of every block whose bit is set in `ranks`: each of them has the
// box, and its own barrier (at the place of `barrier`) counts the whole of it. L2 is read once.
__device__ __forceinline__ void load_box_to_ranks(void* target, const TensorMap& map,
                                                  Mbarrier* barrier, int row, int col,
                                                  unsigned short ranks) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(target)),
      "l"(&map), "r"(shared_address(barrier)), "r"(col), "r"(row), "h"(ranks)
      : "memory");
#endif
}

// Bring the box into L2, ahead of a load.
__device__ __forceinline__ void prefetch_box(const TensorMap& map, int row, int col) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(&map), "r"(col),
               "r"(row)
               : "memory");
#endif
}

// What this thread (or, after a barrier, its block) wrote to shared memory by plain stores is seen by
// copies and matrix products that are issued after it: those read by another path, the async proxy,
// which a barrier alone does not order. Every thread that wrote calls it, then the barrier follows.
__device__ __forceinline__ void fence_async_proxy() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Store the box that begins at (row, col).
__device__ __forceinline__ void store_box(const TensorMap& map, int row, int col,
                                          const void* source) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
      "r"(shared_address(source)), "r"(col), "r"(row)
      : "memory");
#endif
}

// Close the group of stores that this thread issued since the last call; groups complete in order.
__device__ __forceinline__ void commit_stores() {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#endif
}

// Wait until at most PENDING of this thread's groups still read shared memory: the boxes of the others
// may be written again. A block must not end before its stores have read theirs.
template <int PENDING>
__device__ __forceinline__ void wait_stores_read() {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
#endif
}

// Wait until at most PENDING of this thread's groups are under way: what the others wrote is in global
// memory and seen by this thread. The end of a kernel waits for all of them by itself.
template <int PENDING>
__device__ __forceinline__ void wait_stores() {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

// Where a box with a swizzle has the byte that lies at `offset` of the box without one, its rows
// SWIZZLE_BYTES long however short they are: the number of its 16-byte chunk within a row is XORed with that of the 128-byte line, both modulo the chunks of a
// swizzled row. Swizzled twice, it is where it was.
template <int SWIZZLE_BYTES>
__device__ __forceinline__ constexpr int swizzled_offset(int offset) {
  static_assert(
      SWIZZLE_BYTES == 0 || SWIZZLE_BYTES == 32 || SWIZZLE_BYTES == 64 || SWIZZLE_BYTES == 128,
      "the copy engine swizzles rows of 32, 64 or 128 bytes");
  return SWIZZLE_BYTES == 0 ? offset : offset ^ (offset >> 3 & (SWIZZLE_BYTES - 16));
}

}  // namespace solkit
