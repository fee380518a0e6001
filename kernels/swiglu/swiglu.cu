// SwiGLU gate: y = gate * sigmoid(gate) * up, element by element.
//
// gate, up, y [rows, cols], contiguous, so the kernel sees one flat array of `count` items; any
// count; 16-byte aligned. dtypes fp32, fp16, bf16; computed in fp32, rounded once.
// Traffic: count x (2 reads + 1 write); about 5 fp32 flop, one exp2 and one reciprocal an element
// (a 2-byte element may cost about 47 issue slots at the H200's DRAM ceiling). Ceiling: DRAM.
// Design: ITEMS 16-byte loads from each of two streams in flight a thread.
#include "math.cuh"
#include "vec.cuh"

using namespace solkit;

template <typename T, int BLOCK, int VEC, int ITEMS>
__global__ void __launch_bounds__(BLOCK)
    swiglu(const T* __restrict__ gate, const T* __restrict__ up, T* __restrict__ y, long long rows,
           long long cols) {
  const long long count = rows * cols;
  const long long first = (static_cast<long long>(blockIdx.x) * BLOCK * ITEMS + threadIdx.x) * VEC;
  Vec<T, VEC> from_gate[ITEMS], from_up[ITEMS];
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const long long i = first + static_cast<long long>(k) * BLOCK * VEC;
    if (i + VEC <= count) {
      from_gate[k] = load_stream<T, VEC>(gate + i);
      from_up[k] = load_stream<T, VEC>(up + i);
    }
  }
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const long long i = first + static_cast<long long>(k) * BLOCK * VEC;
    if (i + VEC <= count) {
      Vec<T, VEC> result;
#pragma unroll
      for (int j = 0; j < VEC; ++j) {
        result.item[j] =
            from_float<T>(silu(to_float(from_gate[k].item[j])) * to_float(from_up[k].item[j]));
      }
      store<T, VEC>(y + i, result);
    } else {
      for (long long j = i; j < count; ++j) {  // the tail: at most one thread
        y[j] = from_float<T>(silu(to_float(gate[j])) * to_float(up[j]));
      }
    }
  }
}
