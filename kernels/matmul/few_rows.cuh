// Products of few rows: out[M, N] = epilogue(x[M, K] @ weight), M up to 64, fp16 and bf16.
//
// weight [K, N] (kn) or [N, K] (nk) is the traffic and is read once; x is small and comes from L2. K
// and N are multiples of 8, all arrays 16-byte aligned. Sums are fp32, rounded once. A row of x is
// called a token below, and a column is one of the N outputs of a token.
//
// matmul_gemv_nk, matmul_gemv_kn (gemv.cuh): fp32 multiply-adds, for the fewest tokens.
// matmul_swapped (swapped.cuh): tensor cores, columns in the place of rows.
// At the read ceiling of an H200 there are about 13 instructions of a lane for a weight. Multiply-adds
// take one for each token and one to unpack it, beside the loads: with 8 tokens they would end later
// than memory does. Tensor cores don't, but all that they multiply passes through shared memory.
// TOKENS is M or more. Where RANKS is more than 1 the launch is in clusters of so many blocks (CC 9.0).
#pragma once

#include "gemv.cuh"
#include "swapped.cuh"
