// ReGLU gate: y = max(gate, 0) * up, element by element.
//
// vec.cuh is a header of solkit's own: every kernel may include those. Yours may stand beside this
// file.
#include "vec.cuh"

using namespace solkit;

// The parameters: a pointer for each argument, then a long long for each axis, in the order in
// which the declaration names them.
template <typename T, int BLOCK, int VEC>
__global__ void __launch_bounds__(BLOCK) reglu(const T* __restrict__ gate, const T* __restrict__ up,
                                               T* __restrict__ y, long long rows, long long cols) {
  const long long i = (static_cast<long long>(blockIdx.x) * BLOCK + threadIdx.x) * VEC;
  if (i >= rows * cols) return;
  const Vec<T, VEC> from_gate = load_stream<T, VEC>(gate + i);
  const Vec<T, VEC> from_up = load_stream<T, VEC>(up + i);
  Vec<T, VEC> result;
#pragma unroll
  for (int j = 0; j < VEC; ++j) {
    const float x = to_float(from_gate.item[j]);
    // Not fmaxf(x, 0): that takes the 0 where x is NaN, and a NaN has to be seen in the output.
    result.item[j] = from_float<T>((x < 0.0f ? 0.0f : x) * to_float(from_up.item[j]));
  }
  store<T, VEC>(y + i, result);
}
