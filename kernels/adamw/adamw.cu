// AdamW, one step of it, in place (g: the gradient, m and v: the first and second moment, p: the
// parameter; b1, b2 the decays of the moments, n the number of the step):
//   m = b1 m + (1 - b1) g
//   v = b2 v + (1 - b2) g^2
//   p = p (1 - lr decay) - lr / (1 - b1^n) * m / (sqrt(v / (1 - b2^n)) + epsilon)
//
// param, grad [elements] in fp32 or bf16, exp_avg (m), exp_avg_sq (v) [elements] in fp32; any
// number of elements, 16-byte aligned. Computed in fp32; p is rounded once.
// Traffic: param, exp_avg, exp_avg_sq are read and written, grad is read: 28 bytes an element in
// fp32, 22 with bf16 parameters; about 15 fp32 flop, a square root and a reciprocal. Ceiling: DRAM.
// Technique: one vector of VEC elements of all four streams a thread, all loaded before the first
// arithmetic; two or four a thread, and a fixed grid that walks the arrays, were no faster (2^26
// elements in fp32 on an H200: 442 us against 443, 450 and 470). The corrections 1 - b^n are the
// same for every element, so the host computes what follows from them.
// Measured on an H200, 2026-11-30, cold L2, of the roof measured at the same traffic: 2^26 elements
// in fp32 442.6 us (0.98), in bf16 349.8 us (0.98); 65539 in fp32 1.82 us, 0.1 us above.
#include "math.cuh"
#include "vec.cuh"

using namespace solkit;

struct Constants {
  float keep;       // 1 - lr decay
  float beta1;      // b1
  float beta2;      // b2
  float step_size;  // lr / (1 - b1^n)
  float unbias;     // 1 / sqrt(1 - b2^n)
  float epsilon;
};

// N elements from the i-th on.
template <typename T, int N>
__device__ __forceinline__ void step(T* param, const T* grad, float* exp_avg, float* exp_avg_sq,
                                     long long i, const Constants& c) {
  Vec<T, N> new_param = load<T, N>(param + i);
  const Vec<T, N> from_grad = load_stream<T, N>(grad + i);
  Vec<float, N> mean = load<float, N>(exp_avg + i);
  Vec<float, N> square = load<float, N>(exp_avg_sq + i);
  const Vec<float, N> p = floats(new_param), gradient = floats(from_grad);
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const float g = gradient.item[j];
    const float m = fmaf(c.beta1, mean.item[j] - g, g);
    const float v = fmaf(c.beta2, square.item[j] - g * g, g * g);
    const float root = fmaf(sqrt_fast(v), c.unbias, c.epsilon);
    mean.item[j] = m;
    square.item[j] = v;
    new_param.item[j] =
        from_float<T>(fmaf(p.item[j], c.keep, -c.step_size * m * reciprocal_fast(root)));
  }
  store<T, N>(param + i, new_param);
  store<float, N>(exp_avg + i, mean);
  store<float, N>(exp_avg_sq + i, square);
}

template <typename T, int BLOCK, int VEC>
__global__ void __launch_bounds__(BLOCK)
    adamw(T* __restrict__ param, const T* __restrict__ grad, float* __restrict__ exp_avg,
          float* __restrict__ exp_avg_sq, long long elements, float keep, float beta1, float beta2,
          float step_size, float unbias, float epsilon) {
  const Constants constants{keep, beta1, beta2, step_size, unbias, epsilon};
  const long long vectors = elements / VEC;
  const long long i = static_cast<long long>(blockIdx.x) * BLOCK + threadIdx.x;
  const long long rest = vectors * VEC + (i - vectors);  // an element a thread behind the vectors
  if (i < vectors) {
    step<T, VEC>(param, grad, exp_avg, exp_avg_sq, i * VEC, constants);
  } else if (rest < elements) {
    step<T, 1>(param, grad, exp_avg, exp_avg_sq, rest, constants);
  }
}
