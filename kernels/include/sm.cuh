// What a multiprocessor (SM) has room for, by the architecture that is compiled for.
#pragma once

namespace solkit {

// Threads that an SM has room for.
#if __CUDA_ARCH__ == 750
constexpr int SM_THREADS = 1024;
#elif __CUDA_ARCH__ == 800 || (__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1100)
constexpr int SM_THREADS = 2048;
#else
constexpr int SM_THREADS = 1536;
#endif

// Blocks that it takes at once.
#if __CUDA_ARCH__ == 750 || (__CUDA_ARCH__ >= 860 && __CUDA_ARCH__ < 890)
constexpr int SM_BLOCKS = 16;
#elif __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1100
constexpr int SM_BLOCKS = 24;
#else
constexpr int SM_BLOCKS = 32;
#endif

}  // namespace solkit
