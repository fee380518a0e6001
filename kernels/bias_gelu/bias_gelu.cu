// bias + GELU: y = gelu(x + bias), form erf or tanh.
//
// x, y [rows, cols], bias [cols]; any extents; 16-byte aligned. dtypes fp32, fp16, bf16; computed
// in fp32, rounded once (x + bias is not rounded).
// Traffic: rows x cols x (read + write) + cols; with 2-byte items about 31 issue slots an element
// are free at the H200's DRAM ceiling, so the erf form's polynomial is as short as the dtype allows
// (math.cuh): both forms take about 17 slots in bf16. Ceiling: DRAM.
// Technique: a thread owns VEC columns over ROWS rows, so the bias stays in registers and all its
// loads are in flight before the first arithmetic. One row is best for the tanh form (2048 x 11008:
// 22.5 us, two rows 22.9, four 23.6), two where the arithmetic is longer (erf, 32768 x 11008:
// 338.7 us, one row 344.7). blockDim is (TX, TY): TX threads along the columns, TY rows side by
// side. No index is divided: a thread has 8 or 16 elements, and a division takes 25 slots. Where
// cols is no multiple of 16 bytes, JOINED rows are taken as one long row that is: every access has
// its full width, and only the bias is picked up singly, once for ROWS rows (8192 x 4097 in bf16:
// 33.7 us, an item an access 56.7).
// Measured on an H200, 2026-11-30, cold L2, of the roof measured at the same traffic, in bf16: tanh
// form 8192 x 10240 80.9 us (0.98), erf form 32768 x 11008 338.7 us (0.99), 8192 x 11008 86.5 us
// (0.99), 512 x 11008 7.14 us (0.92); 1 x 10240 1.38 us, 0.3 us above.
#include "math.cuh"
#include "vec.cuh"

using namespace solkit;

// The bias of VEC items from column `col` of a joined row on.
template <typename T, int VEC, int JOINED>
__device__ __forceinline__ Vec<float, VEC> bias_at(const T* bias, unsigned int col,
                                                   unsigned int cols) {
  if constexpr (JOINED == 1) {
    return floats(load_shared_by_blocks<T, VEC>(bias + col));
  } else {
    Vec<float, VEC> shift;
    unsigned int at = col % cols;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      shift.item[j] = to_float(load_shared_by_blocks<T, 1>(bias + at).item[0]);
      at = at + 1 == cols ? 0 : at + 1;
    }
    return shift;
  }
}

template <typename Activation, typename T, int VEC>
__device__ __forceinline__ Vec<T, VEC> activated(Vec<T, VEC> x, Vec<float, VEC> shift) {
  const Vec<float, VEC> wide = floats(x);
  Vec<T, VEC> y;
#pragma unroll
  for (int j = 0; j < VEC; ++j) {
    y.item[j] = from_float<T>(Activation::template apply<T>(wide.item[j] + shift.item[j]));
  }
  return y;
}

template <typename T, typename Activation, int TX, int TY, int VEC, int ROWS, int JOINED>
__global__ void __launch_bounds__(TX* TY)
    bias_gelu(const T* __restrict__ x, const T* __restrict__ bias, T* __restrict__ y,
              long long rows, long long cols) {
  const unsigned int width = static_cast<unsigned int>(cols) * JOINED;
  const unsigned int col = (blockIdx.x * TX + threadIdx.x) * VEC;
  const unsigned int row = (blockIdx.z * gridDim.y + blockIdx.y) * (TY * ROWS) + threadIdx.y;
  if (col >= width) return;
  const long long first = static_cast<long long>(row) * width + col;
  const long long step = static_cast<long long>(TY) * width;
  // Vectors of this column that are whole: all of those above the last row, if rows are not joined.
  const long long end = rows * cols - (VEC - 1);

  Vec<T, VEC> value[ROWS];
#pragma unroll
  for (int k = 0; k < ROWS; ++k) {
    if (first + k * step < end) value[k] = load_stream<T, VEC>(x + first + k * step);
  }
  const Vec<float, VEC> shift = bias_at<T, VEC, JOINED>(bias, col, static_cast<unsigned int>(cols));
#pragma unroll
  for (int k = 0; k < ROWS; ++k) {
    const long long at = first + k * step;
    if (at < end) {
      store<T, VEC>(y + at, activated<Activation, T, VEC>(value[k], shift));
    } else if constexpr (JOINED > 1) {  // the last vector of all may be a part of one
#pragma unroll
      for (int j = 0; j < VEC - 1; ++j) {
        if (at + j < rows * cols) {
          const float sum = to_float(x[at + j]) + shift.item[j];
          y[at + j] = from_float<T>(Activation::template apply<T>(sum));
        }
      }
    }
  }
}
