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
// A way to compute the product is a header: few_rows.cuh (16-bit types, M up to 64), mma_tiles.cuh
// (16-bit types), ffma.cuh (fp32). All take the same arguments; a bias or residual that the epilogue
// lacks is null. Blocks of tiles walk the output in groups of tile rows (tile_order.cuh), so that
// those resident together share rows of x and columns of weight in L2.
//
// Public sources that taught the design: the multistage pipeline of NVIDIA/cutlass
// (include/cutlass/gemm/threadblock/mma_multistage.h) and the grouped tile order of
// triton-lang/triton (python/tutorials/03-matrix-multiplication.py). No code was taken.
#include "few_rows.cuh"
#include "ffma.cuh"
#include "mma_tiles.cuh"
#include "wgmma_tiles.cuh"

using namespace solkit;
