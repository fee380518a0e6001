// Addresses in shared memory, as PTX takes them.
#pragma once

namespace solkit {

// The 32-bit address in the shared-memory window. In a cluster it is this block's own place there.
__device__ __forceinline__ unsigned int shared_address(const void* pointer) {
  return static_cast<unsigned int>(__cvta_generic_to_shared(pointer));
}

}  // namespace solkit
