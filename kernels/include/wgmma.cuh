// wgmma: matrix products of a warpgroup (four warps, the first a multiple of four), of CC 9.0a alone
// (empty for every other target). d[64 x N] += a[64 x 16] b[16 x N] in 16-bit types, accumulated in
// fp32. Both operands are read from shared memory by the tensor cores themselves, on their own: the
// warps only start a product, go on, and wait for it later.
//
// A product names its operands by descriptors: 64-bit words that say where a tile begins and how it
// lies. Two layouts are here, as the copy engine writes its boxes with a swizzle of 128 bytes
// (tensor_map.cuh):
//
//   K-major   a row of the box is 64 items along k, one row a row of a or a column of b. Eight rows are
//             an atom of 1024 bytes; the next eight follow at `stride`.
//   MN-major  a row of the box is 64 rows of a, or columns of b, at one k. Eight k are an atom; the next
//             eight follow at `stride`, the next 64 rows or columns at `leading`. A product of N
//             columns reads N: of the last 64 it may leave some.
//
// The order of things, and why:
//   begin_products()     before the first product that touches d after the threads have: registers that
//                        threads wrote are seen by the tensor cores.
//   multiply(), ...      any number of products; those on the same d run one after the other.
//   commit_products()    closes a group; groups complete in order.
//   wait_products<P>()   at most P groups are still under way. Only then may d be read, and may the
//                        tiles that the groups read be written again.
#pragma once

#include "shared.cuh"
#include "types.cuh"

namespace solkit {

#if __CUDA_ARCH_FEAT_SM90_ALL
constexpr bool HAS_WGMMA = true;
#else
constexpr bool HAS_WGMMA = false;
#endif

// A tile in shared memory as a product sees it. `address` is that of an atom (or, K-major, of the
// first of its k: 32 bytes for 16 items). Bits 0-13 address, 16-29 leading, 32-45 stride, all three in
// units of 16 bytes; 62-63 the swizzle: 1 is 128 bytes.
__device__ __forceinline__ unsigned long long tile_descriptor(unsigned int address, int leading,
                                                              int stride) {
  return static_cast<unsigned long long>((address & 0x3ffff) >> 4) |
         static_cast<unsigned long long>(leading >> 4) << 16 |
         static_cast<unsigned long long>(stride >> 4) << 32 | 1ull << 62;
}

// The same tile, `bytes` further on (a multiple of 16, within the 256 KB that an address has).
__device__ __forceinline__ unsigned long long moved(unsigned long long descriptor, int bytes) {
  return descriptor + static_cast<unsigned long long>(bytes >> 4);
}

__device__ __forceinline__ void begin_products() {
#if __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

__device__ __forceinline__ void commit_products() {
#if __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

template <int PENDING>
__device__ __forceinline__ void wait_products() {
#if __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
#endif
}

// Registers change hands: a warpgroup that only starts copies gives some up, one that accumulates takes
// them. All warps of the warpgroup call it. The sum over the block's warpgroups must not exceed what
// the kernel was launched with, which __launch_bounds__(threads, blocks) fixes: without the second
// number the compiler ignores these with a warning.
template <int REGISTERS>
__device__ __forceinline__ void shrink_registers() {
#if __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
#endif
}

template <int REGISTERS>
__device__ __forceinline__ void grow_registers() {
#if __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
#endif
}

// d (+)= a b, for one width N, a multiple of 8: d is overwritten where `accumulate` is false. A_BY_ROWS,
// B_BY_COLUMNS: the operand is MN-major, else K-major. Lane t of warp w has, for every 8 columns j: rows
// 16 w + t / 4 in d[4 j], d[4 j + 1] (columns 8 j + 2 (t % 4) and the next), the rows 8 below in the
// other two.
template <typename T, int N, bool A_BY_ROWS, bool B_BY_COLUMNS>
struct Product;

// Inline PTX takes no list of operands, so each width is spelled out. These macros live to the end of
// this file: accumulators by sixteen, eight and four, and an instruction of one width in both types.
#define SOLKIT_D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SOLKIT_D8(i) SOLKIT_D4(i), SOLKIT_D4(i + 4)
#define SOLKIT_D16(i) SOLKIT_D8(i), SOLKIT_D8(i + 8)
#if __CUDA_ARCH_FEAT_SM90_ALL
#define SOLKIT_PRODUCT(WIDTH, TYPE, PTX_TYPE, REGISTERS, A, B, ACCUMULATE, ROWS, COLUMNS, ...)   \
  template <bool A_BY_ROWS, bool B_BY_COLUMNS>                                                   \
  struct Product<TYPE, WIDTH, A_BY_ROWS, B_BY_COLUMNS> {                                         \
    static __device__ __forceinline__ void multiply(float (&d)[WIDTH / 2], unsigned long long a, \
                                                    unsigned long long b, int accumulate) {      \
      asm volatile(                                                                              \
          "{\n\t.reg .pred accumulated;\n\tsetp.ne.b32 accumulated, " ACCUMULATE                 \
          ", 0;\n\t"                                                                             \
          "wgmma.mma_async.sync.aligned.m64n" #WIDTH "k16.f32." PTX_TYPE "." PTX_TYPE            \
          " {" REGISTERS "}, " A ", " B ", accumulated, 1, 1, " ROWS ", " COLUMNS ";\n\t}"       \
          : __VA_ARGS__                                                                          \
          : "l"(a), "l"(b), "r"(accumulate), "n"(A_BY_ROWS ? 1 : 0), "n"(B_BY_COLUMNS ? 1 : 0)); \
    }                                                                                            \
  };
#define SOLKIT_PRODUCTS(WIDTH, REGISTERS, A, B, ACCUMULATE, ROWS, COLUMNS, ...)                 \
  SOLKIT_PRODUCT(WIDTH, __half, "f16", REGISTERS, A, B, ACCUMULATE, ROWS, COLUMNS, __VA_ARGS__) \
  SOLKIT_PRODUCT(WIDTH, __nv_bfloat16, "bf16", REGISTERS, A, B, ACCUMULATE, ROWS, COLUMNS,      \
                 __VA_ARGS__)

SOLKIT_PRODUCTS(
    256,
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "
    "%127",
    "%128", "%129", "%130", "%131", "%132", SOLKIT_D16(0), SOLKIT_D16(16), SOLKIT_D16(32),
    SOLKIT_D16(48), SOLKIT_D16(64), SOLKIT_D16(80), SOLKIT_D16(96), SOLKIT_D16(112))

SOLKIT_PRODUCTS(
    240,
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
    "%112, %113, %114, %115, %116, %117, %118, %119",
    "%120", "%121", "%122", "%123", "%124", SOLKIT_D16(0), SOLKIT_D16(16), SOLKIT_D16(32),
    SOLKIT_D16(48), SOLKIT_D16(64), SOLKIT_D16(80), SOLKIT_D16(96), SOLKIT_D8(112))

SOLKIT_PRODUCTS(
    224,
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111",
    "%112", "%113", "%114", "%115", "%116", SOLKIT_D16(0), SOLKIT_D16(16), SOLKIT_D16(32),
    SOLKIT_D16(48), SOLKIT_D16(64), SOLKIT_D16(80), SOLKIT_D16(96))

SOLKIT_PRODUCTS(200,
                "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
                "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                "%96, %97, %98, %99",
                "%100", "%101", "%102", "%103", "%104", SOLKIT_D16(0), SOLKIT_D16(16),
                SOLKIT_D16(32), SOLKIT_D16(48), SOLKIT_D16(64), SOLKIT_D16(80), SOLKIT_D4(96))

SOLKIT_PRODUCTS(192,
                "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
                "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95",
                "%96", "%97", "%98", "%99", "%100", SOLKIT_D16(0), SOLKIT_D16(16), SOLKIT_D16(32),
                SOLKIT_D16(48), SOLKIT_D16(64), SOLKIT_D16(80))

SOLKIT_PRODUCTS(176,
                "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
                "%80, %81, %82, %83, %84, %85, %86, %87",
                "%88", "%89", "%90", "%91", "%92", SOLKIT_D16(0), SOLKIT_D16(16), SOLKIT_D16(32),
                SOLKIT_D16(48), SOLKIT_D16(64), SOLKIT_D8(80))

SOLKIT_PRODUCTS(160,
                "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79",
                "%80", "%81", "%82", "%83", "%84", SOLKIT_D16(0), SOLKIT_D16(16), SOLKIT_D16(32),
                SOLKIT_D16(48), SOLKIT_D16(64))

SOLKIT_PRODUCTS(152,
                "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75",
                "%76", "%77", "%78", "%79", "%80", SOLKIT_D16(0), SOLKIT_D16(16), SOLKIT_D16(32),
                SOLKIT_D8(48), SOLKIT_D16(56), SOLKIT_D4(72))

SOLKIT_PRODUCTS(144,
                "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                "%64, %65, %66, %67, %68, %69, %70, %71",
                "%72", "%73", "%74", "%75", "%76", SOLKIT_D16(0), SOLKIT_D16(16), SOLKIT_D16(32),
                SOLKIT_D16(48), SOLKIT_D8(64))

SOLKIT_PRODUCTS(128,
                "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63",
                "%64", "%65", "%66", "%67", "%68", SOLKIT_D16(0), SOLKIT_D16(16), SOLKIT_D16(32),
                SOLKIT_D16(48))

SOLKIT_PRODUCTS(112,
                "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                "%48, %49, %50, %51, %52, %53, %54, %55",
                "%56", "%57", "%58", "%59", "%60", SOLKIT_D16(0), SOLKIT_D16(16), SOLKIT_D16(32),
                SOLKIT_D8(48))

SOLKIT_PRODUCTS(96,
                "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47",
                "%48", "%49", "%50", "%51", "%52", SOLKIT_D16(0), SOLKIT_D16(16), SOLKIT_D16(32))

SOLKIT_PRODUCTS(80,
                "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                "%32, %33, %34, %35, %36, %37, %38, %39",
                "%40", "%41", "%42", "%43", "%44", SOLKIT_D16(0), SOLKIT_D16(16), SOLKIT_D8(32))

SOLKIT_PRODUCTS(64,
                "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31",
                "%32", "%33", "%34", "%35", "%36", SOLKIT_D16(0), SOLKIT_D16(16))

SOLKIT_PRODUCTS(48,
                "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                "%16, %17, %18, %19, %20, %21, %22, %23",
                "%24", "%25", "%26", "%27", "%28", SOLKIT_D16(0), SOLKIT_D8(16))

SOLKIT_PRODUCTS(40,
                "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                "%16, %17, %18, %19",
                "%20", "%21", "%22", "%23", "%24", SOLKIT_D16(0), SOLKIT_D4(16))

SOLKIT_PRODUCTS(32, "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15", "%16",
                "%17", "%18", "%19", "%20", SOLKIT_D16(0))

SOLKIT_PRODUCTS(24, "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11", "%12", "%13", "%14", "%15",
                "%16", SOLKIT_D8(0), SOLKIT_D4(8))

SOLKIT_PRODUCTS(16, "%0, %1, %2, %3, %4, %5, %6, %7", "%8", "%9", "%10", "%11", "%12", SOLKIT_D8(0))

SOLKIT_PRODUCTS(8, "%0, %1, %2, %3", "%4", "%5", "%6", "%7", "%8", SOLKIT_D4(0))

#undef SOLKIT_PRODUCTS
#undef SOLKIT_PRODUCT
#endif
#undef SOLKIT_D16
#undef SOLKIT_D8
#undef SOLKIT_D4

}  // namespace solkit
