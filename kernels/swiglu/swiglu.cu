// SwiGLU gate: y = gate * sigmoid(gate) * up, element by element.
//
// gate, up, y [rows, cols], contiguous, so the kernel sees one flat array; any extents; 16-byte
// aligned. dtypes fp32, fp16, bf16; computed in fp32, rounded once.
// Traffic: rows x cols x (2 reads + 1 write); about 5 fp32 flop, one exp2 and one reciprocal an
// element (a 2-byte element may cost about 47 issue slots at the H200's DRAM ceiling).
// Ceiling: DRAM.
// Technique: one 16-byte load of each of two streams a thread, in blocks that are large where the
// arrays are, and small where they are not, so that every SM has some (gated.cuh).
// Measured on an H200, 2026-11-30, cold L2, of the roof measured at the same traffic: 8192 x 14336
// in bf16 161.5 us (1.00), 8192 x 11008 in fp32 246.1 us (1.00); 16 x 14336 in bf16 1.79 us, 0.1 us
// above.
#include "gated.cuh"

using namespace solkit;

template <typename T, int BLOCK, int VEC>
__global__ void __launch_bounds__(BLOCK)
    swiglu(const T* __restrict__ gate, const T* __restrict__ up, T* __restrict__ y, long long rows,
           long long cols) {
  gated<Silu, T, BLOCK, VEC>(gate, up, y, rows * cols);
}
