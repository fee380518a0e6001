// Tensor-core and shared-memory building blocks that exist on every card from CC 7.5 on: 16-byte
// asynchronous copies, ldmatrix, movmatrix, and the 16x8x16 matrix product with fp32 accumulation.
// Below CC 8.0 a copy is a load and a store, and a product is two 16x8x8 ones (fp16 only).
#pragma once

#include "shared.cuh"
#include "types.cuh"

namespace solkit {

// Whether the card has neither asynchronous copies nor products of 16 k. A function that takes OLD
// can be told to do without them on a newer card, where what old ones run can then be tried.
constexpr bool OLD_CARD = __CUDA_ARCH__ < 800;

// Copy 16 bytes from global to shared memory, or write zeros there where `valid` is false
// (nothing is read then). Not cached in L1: a tile is used once per block.
template <bool OLD = OLD_CARD>
__device__ __forceinline__ void copy16_async(unsigned int target, const void* source, bool valid) {
  if constexpr (OLD) {
    uint4 word = make_uint4(0, 0, 0, 0);
    if (valid) word = *static_cast<const uint4*>(source);
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(target), "r"(word.x), "r"(word.y),
                 "r"(word.z), "r"(word.w)
                 : "memory");
  } else {
    const int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source),
                 "r"(bytes)
                 : "memory");
  }
}

// Close the group of copies issued since the last call; groups complete in order.
template <bool OLD = OLD_CARD>
__device__ __forceinline__ void commit_copies() {
  if constexpr (!OLD) asm volatile("cp.async.commit_group;" ::: "memory");
}

// Wait until at most PENDING groups of this thread are under way.
template <int PENDING, bool OLD = OLD_CARD>
__device__ __forceinline__ void wait_copies() {
  if constexpr (!OLD) asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// Four 8x8 matrices of 16-bit items. Lane 8 i + r gives the address of row r of matrix i; lane t
// gets items 2 (t % 4) and 2 (t % 4) + 1 of row t / 4 of each matrix (with TRANSPOSED: of column).
template <bool TRANSPOSED>
__device__ __forceinline__ void load_matrices(unsigned int (&fragment)[4], unsigned int address) {
  if constexpr (TRANSPOSED) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
                 : "r"(address)
                 : "memory");
  }
}

// Two of them, addressed by lanes 0 to 15.
template <bool TRANSPOSED>
__device__ __forceinline__ void load_matrices(unsigned int (&fragment)[2], unsigned int address) {
  if constexpr (TRANSPOSED) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(fragment[0]), "=r"(fragment[1])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(fragment[0]), "=r"(fragment[1])
                 : "r"(address)
                 : "memory");
  }
}

// The way back, from CC 9.0 on (empty before): what a lane would get goes where it would come from.
template <bool TRANSPOSED>
__device__ __forceinline__ void store_matrices(unsigned int address,
                                               const unsigned int (&fragment)[4]) {
#if __CUDA_ARCH__ >= 900
  if constexpr (TRANSPOSED) {
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
        "r"(fragment[0]), "r"(fragment[1]), "r"(fragment[2]), "r"(fragment[3])
        : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(fragment[0]), "r"(fragment[1]), "r"(fragment[2]), "r"(fragment[3])
                 : "memory");
  }
#endif
}

template <bool TRANSPOSED>
__device__ __forceinline__ void store_matrices(unsigned int address,
                                               const unsigned int (&fragment)[2]) {
#if __CUDA_ARCH__ >= 900
  if constexpr (TRANSPOSED) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(address),
                 "r"(fragment[0]), "r"(fragment[1])
                 : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(address),
                 "r"(fragment[0]), "r"(fragment[1])
                 : "memory");
  }
#endif
}

// d += a (16x16, rows) x b (16x8, columns), fp32 accumulation.
// Lane t, r = t / 4, q = 2 (t % 4): a holds (row r, k q..), (r + 8, q..), (r, q + 8..),
// (r + 8, q + 8..); b holds (k q.., column r), (q + 8.., r); d holds (r, q), (r, q + 1),
// (r + 8, q), (r + 8, q + 1).
template <typename T, bool OLD = OLD_CARD>
__device__ __forceinline__ void multiply_add(float (&d)[4], const unsigned int (&a)[4],
                                             unsigned int b0, unsigned int b1) {
  if constexpr (OLD) {
    static_assert(!IS_BF16<T>, "old tensor cores multiply fp16 alone");
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0));
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[2]), "r"(a[3]), "r"(b1));
  } else if constexpr (IS_BF16<T>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

// Transpose an 8x8 matrix of 16-bit items whose row t / 4 lies in lanes t, two items each: it makes
// an operand (items along k in a register) of a result (items along n in a register).
__device__ __forceinline__ unsigned int transpose_matrix(unsigned int rows) {
  unsigned int columns;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(columns) : "r"(rows));
  return columns;
}

// Where 16-byte chunk `chunk` of row `row` lies in a tile of rows of ROW_CHUNKS chunks: an XOR
// within each 128-byte line, so that 8 rows of one chunk column fall on 8 different bank groups,
// for ldmatrix as for the copies that fill the tile.
template <int ROW_CHUNKS>
__device__ __forceinline__ int swizzled(int row, int chunk) {
  static_assert((ROW_CHUNKS & (ROW_CHUNKS - 1)) == 0 && ROW_CHUNKS >= 4, "4, 8, 16 ... chunks");
  constexpr int SPREAD = ROW_CHUNKS < 8 ? ROW_CHUNKS : 8;
  constexpr int ROWS_PER_LINE = 8 / SPREAD;
  return row * ROW_CHUNKS + (chunk ^ (row / ROWS_PER_LINE % SPREAD));
}

}  // namespace solkit
