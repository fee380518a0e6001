// Parts of one softmax-weighted sum, each over some of the keys, and their merge: between the warps
// of a block (shared memory), the blocks of a cluster (distributed shared memory) and any blocks (a
// workspace in device memory).
#pragma once

#include "math.cuh"
#include "mma.cuh"

namespace solkit {

constexpr unsigned int ALL_LANES = 0xffffffffu;

__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }

// The largest score (times log2 e) of a part, and the sum of its weights relative to that. A part
// without keys is {-inf, 0}.
struct alignas(8) Statistics {
  float max, sum;
};

// Weights are relative to the maximum; where that is -inf (no keys, or none that counts) to 0, so
// that they are 0 and not NaN.
__device__ __forceinline__ float base_of(float max) { return max == minus_infinity() ? 0.0f : max; }

// Four items of a row and its statistics.
struct Part {
  float4 items;
  Statistics statistics;
};

__device__ __forceinline__ void add_weighted(float4& sum, float weight, float4 items) {
  sum.x = fmaf(weight, items.x, sum.x);
  sum.y = fmaf(weight, items.y, sum.y);
  sum.z = fmaf(weight, items.z, sum.z);
  sum.w = fmaf(weight, items.w, sum.w);
}

// Parts as one: all are loaded before the first is used.
template <int PARTS, typename Load>
__device__ __forceinline__ Part merge(Load load_part) {
  Part part[PARTS];
#pragma unroll
  for (int p = 0; p < PARTS; ++p) part[p] = load_part(p);
  Part merged = {make_float4(0.0f, 0.0f, 0.0f, 0.0f), {minus_infinity(), 0.0f}};
#pragma unroll
  for (int p = 0; p < PARTS; ++p) {
    merged.statistics.max = fmaxf(merged.statistics.max, part[p].statistics.max);
  }
#pragma unroll
  for (int p = 0; p < PARTS; ++p) {
    const float weight = exp2_fast(part[p].statistics.max - base_of(merged.statistics.max));
    add_weighted(merged.items, weight, part[p].items);
    merged.statistics.sum = fmaf(weight, part[p].statistics.sum, merged.statistics.sum);
  }
  return merged;
}

// The part that block `rank` of the cluster has where this block has its own.
__device__ __forceinline__ Part load_from_rank(const float* items, const Statistics* statistics,
                                               int rank) {
  Part part = {*reinterpret_cast<const float4*>(items), *statistics};
#if __CUDA_ARCH__ >= 900
  unsigned int there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(items)), "r"(rank));
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(part.items.x), "=f"(part.items.y), "=f"(part.items.z), "=f"(part.items.w)
               : "r"(there)
               : "memory");
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(there)
      : "r"(shared_address(statistics)), "r"(rank));
  asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];"
               : "=f"(part.statistics.max), "=f"(part.statistics.sum)
               : "r"(there)
               : "memory");
#endif
  return part;
}

// Add one to what `limit` blocks count together, and return how many were there. What this block has
// written is seen by those that come later, and what earlier ones have written by this block.
__device__ __forceinline__ unsigned int arrive(unsigned int* counter, unsigned int limit) {
  unsigned int before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(counter), "r"(limit - 1)
               : "memory");
  return before;
}

// A row of D items in `parts` parts, STRIDE rows apart in a workspace that other blocks have
// written, by one warp: body(item, four items from there, scale) gets the sums and 1 / the sum of
// all weights. The first AHEAD parts are on their way while the weights are made.
// scratch: room for the statistics of all parts.
template <int D, int STRIDE, typename Body>
__device__ __forceinline__ void merge_row(const float* sums, const Statistics* statistics,
                                          int parts, Statistics* scratch, Body body) {
  constexpr int AHEAD = 16, QUADS = D / 4;
  const int lane = threadIdx.x % 32;
  float inverse = 0.0f;
  for (int quad = lane; quad < (QUADS < 32 ? 32 : QUADS); quad += 32) {
    const float* from = sums + quad % QUADS * 4;
    float4 items = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int begin = 0; begin < parts; begin += AHEAD) {
      float4 held[AHEAD];
#pragma unroll
      for (int a = 0; a < AHEAD; ++a) {
        if (begin + a >= parts) break;
        held[a] = __ldcg(reinterpret_cast<const float4*>(from + (begin + a) * STRIDE * D));
      }
      if (begin == 0 && quad == lane) {
        float max = minus_infinity(), sum = 0.0f;
#pragma unroll 2
        for (int part = lane; part < parts; part += 32) {
          const float2 both = __ldcg(reinterpret_cast<const float2*>(statistics + part * STRIDE));
          scratch[part] = {both.x, both.y};
          max = fmaxf(max, both.x);
        }
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2) {
          max = fmaxf(max, __shfl_xor_sync(ALL_LANES, max, distance));
        }
        for (int part = lane; part < parts; part += 32) {
          const float weight = exp2_fast(scratch[part].max - base_of(max));
          scratch[part].max = weight;
          sum = fmaf(weight, scratch[part].sum, sum);
        }
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2) {
          sum += __shfl_xor_sync(ALL_LANES, sum, distance);
        }
        inverse = 1.0f / sum;
        __syncwarp();  // the weights are seen by all lanes
      }
#pragma unroll
      for (int a = 0; a < AHEAD; ++a) {
        if (begin + a >= parts) break;
        add_weighted(items, scratch[begin + a].max, held[a]);
      }
    }
    if (quad < QUADS) body(quad * 4, items, inverse);
  }
  __syncwarp();  // the weights are read: those of the next row may take their place
}

}  // namespace solkit
