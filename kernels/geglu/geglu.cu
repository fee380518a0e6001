// GeGLU gate: y = gelu(gate) * up, element by element; form tanh or erf.
//
// gate, up, y [rows, cols], contiguous, so the kernel sees one flat array; any extents; 16-byte
// aligned. dtypes fp32, fp16, bf16; computed in fp32, rounded once.
// Traffic: rows x cols x (2 reads + 1 write). With 2-byte items about 47 issue slots an element are
// free at the H200's DRAM ceiling; the erf form's polynomial is as short as the dtype allows, so
// that both forms take less than half of them (math.cuh). Ceiling: DRAM.
// Technique: one 16-byte load of each of two streams a thread, in blocks that are large where the
// arrays are, and small where they are not, so that every SM has some (gated.cuh).
// Measured on an H200, 2026-11-30, cold L2, of the roof measured at the same traffic: 8192 x 11008
// in bf16 123.4 us (1.00) in either form, in fp32 246.4 us (1.00); 1 x 4096 in bf16 1.25 us, 0.2 us
// above.
#include "gated.cuh"

using namespace solkit;

template <typename T, typename Activation, int BLOCK, int VEC>
__global__ void __launch_bounds__(BLOCK) geglu(const T* __restrict__ gate, const T* __restrict__ up,
                                               T* __restrict__ y, long long rows, long long cols) {
  gated<Activation, T, BLOCK, VEC>(gate, up, y, rows * cols);
}
