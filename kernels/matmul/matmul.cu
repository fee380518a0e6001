// Products of matrices with what follows them, in one pass over out:
//
//   matmul            out = alpha (x @ weight)
//   matmul_bias       out = alpha (x @ weight) + bias
//   matmul_bias_gelu  out = gelu(alpha (x @ weight) + bias), form erf or tanh
//   matmul_add        out = alpha (x @ weight) + beta residual
//   matmul_add_bias   out = alpha (x @ weight) + beta residual + bias
//
// x [M, K], weight [K, N] stored so (kn) or as [N, K] (nk), bias [N], residual and out [M, N].
// Products accumulate in fp32, all else is done in fp32 (epilogue.cuh), the result is rounded once.
// Work: 2 M N K flop in the dtype's matrix pipe; each tensor crosses DRAM once.
// M any; N and K multiples of 16 bytes; all arrays 16-byte aligned.
//
// A way to compute the product is a header: wgmma_tiles.cuh (16-bit types, CC 9.0), few_rows.cuh
// (16-bit types, M up to 64), mma_tiles.cuh (16-bit types), ffma.cuh (fp32). A bias or residual that
// the epilogue lacks is null. Tiles are walked in groups of tile rows (tile_order.cuh), so that blocks
// which run together share rows of x and columns of weight in L2.
//
// Measured on an H200, bf16, cold L2, 2026-12-01, with a residual: 8192 x 2560 x 2560 (nk) in 140.7 us,
// 763 TFLOP/s, 77 % of the data sheet's peak and 95 % of the measured one, 0.948 of the time of cublasLt's
// best and 1.013 of quack's best in the same run; 1 x 4096 x 4096 (nk) in 9.87 us, 91 % of its own streams
// at the same traffic (benchmarks/README.md; how it came about: docs/matmul_add.md).
//
// Public sources that taught the design: the multistage pipeline of NVIDIA/cutlass
// (include/cutlass/gemm/threadblock/mma_multistage.h) and the grouped tile order of
// triton-lang/triton (python/tutorials/03-matrix-multiplication.py). No code was taken.
#include "few_rows.cuh"
#include "ffma.cuh"
#include "mma_tiles.cuh"
#include "wgmma_tiles.cuh"

using namespace solkit;
