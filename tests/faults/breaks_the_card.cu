// Kernels that break, each in its own way, beside one that is right.
//
//   y[i] = 2 x[i]    for 0 <= i < rows * cols; blocks of 256, one element a thread
//
// Every one takes (x, y, rows, cols), as a launch passes them by default.

using Index = long long;

extern "C" __device__ void __assertfail(const char* message, const char* file, unsigned line,
                                        const char* function, size_t char_bytes);

__device__ Index place() { return blockIdx.x * 256ll + threadIdx.x; }

extern "C" __global__ void twice(const float* x, float* y, Index rows, Index cols) {
  if (place() < rows * cols) y[place()] = 2 * x[place()];
}

extern "C" __global__ void writes_nothing(const float* x, float* y, Index rows, Index cols) {
  if (rows < 0) y[0] = x[cols];
}

// 64 TiB behind the array: no card maps that.
extern "C" __global__ void illegal(const float* x, float* y, Index rows, Index cols) {
  y[(1ll << 44) + threadIdx.x] = x[0];
}

// A 16-byte store, 4 bytes behind an aligned address.
extern "C" __global__ void misaligned(const float* x, float* y, Index rows, Index cols) {
  *reinterpret_cast<float4*>(y + 1) = make_float4(x[0], x[1], x[2], x[3]);
}

extern "C" __global__ void asserts(const float* x, float* y, Index rows, Index cols) {
  if (rows > 0) __assertfail("rows <= 0", "breaks_the_card.cu", 33, "asserts", sizeof(char));
  y[0] = x[0];
}

extern "C" __global__ void traps(const float* x, float* y, Index rows, Index cols) {
  if (rows > 0) __trap();
  y[0] = x[0];
}

__device__ void loop(volatile float* y) {
  while (y[0] != 12345.f) y[1] = 0;
}

extern "C" __global__ void loops(const float* x, float* y, Index rows, Index cols) { loop(y); }

// Right at first, and for ever in its ninth call, when calls are queued and timed.
__device__ unsigned call_count;
extern "C" __global__ void loops_later(const float* x, float* y, Index rows, Index cols) {
  if (place() < rows * cols) y[place()] = 2 * x[place()];
  if (place() == 0 && atomicAdd(&call_count, 1u) >= 8) loop(y);
}
