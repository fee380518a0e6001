// bias + GELU: y = gelu(x + bias), form erf or tanh.
//
// x, y [rows, cols], bias [cols]; dtypes fp32, fp16, bf16; computed in fp32, rounded once (x + bias
// is not rounded). cols a multiple of VEC; the caller takes VEC = 16 bytes where that holds.
// Traffic: rows x cols x (read + write) + cols; with 2-byte items about 31 issue slots an element
// are free at the H200's DRAM ceiling, so 16-bit types take the short erf (math.cuh) and fp32,
// which has twice the slots and needs the accuracy, the full one. Ceiling: DRAM.
// Design: a thread owns VEC columns over ITEMS rows, so the bias stays in registers and all its
// loads are in flight before the first arithmetic. blockDim is (TX, TY): TX threads along the
// columns, TY rows side by side; the grid is one-dimensional, columns first.
#include "math.cuh"
#include "vec.cuh"

using namespace solkit;

struct Erf {
  template <typename T>
  static __device__ __forceinline__ float apply(float x) {
    if constexpr (sizeof(T) == 2) {
      return gelu_erf_fast(x);
    } else {
      return gelu_erf(x);
    }
  }
};

struct Tanh {
  template <typename T>
  static __device__ __forceinline__ float apply(float x) {
    return gelu_tanh(x);
  }
};

template <typename T, typename Form, int TX, int TY, int VEC, int ITEMS>
__global__ void __launch_bounds__(TX* TY)
    bias_gelu(const T* __restrict__ x, const T* __restrict__ bias, T* __restrict__ y,
              long long rows, long long cols) {
  const unsigned int col_blocks = static_cast<unsigned int>((cols / VEC + TX - 1) / TX);
  const long long col = (static_cast<long long>(blockIdx.x % col_blocks) * TX + threadIdx.x) * VEC;
  const long long row = static_cast<long long>(blockIdx.x / col_blocks) * TY * ITEMS + threadIdx.y;
  if (col >= cols) return;
  const Vec<T, VEC> shift = load_shared_by_blocks<T, VEC>(bias + col);
  Vec<T, VEC> value[ITEMS];
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    if (row + k * TY < rows) value[k] = load_stream<T, VEC>(x + (row + k * TY) * cols + col);
  }
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    if (row + k * TY >= rows) break;
    Vec<T, VEC> result;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      result.item[j] = from_float<T>(
          Form::template apply<T>(to_float(value[k].item[j]) + to_float(shift.item[j])));
    }
    store<T, VEC>(y + (row + k * TY) * cols + col, result);
  }
}
