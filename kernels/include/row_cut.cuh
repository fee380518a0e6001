// A row of any length and any start, cut where 16-byte accesses are: whole vectors in the middle and
// up to VEC - 1 items at each end, so that odd rows, too, move 16 bytes a lane.
//
// Vectors are counted from the last 128-byte boundary at or before the row, so that a warp's access
// covers whole lines: vector v holds the columns [v VEC - head, (v + 1) VEC - head), head being the
// items between that boundary and the row. Whole ones are full_begin ... full_end - 1.
#pragma once

namespace solkit {

// EDGES: rows may begin and end anywhere. Without it, rows are whole numbers of vectors.
template <int VEC, bool EDGES>
struct RowCut {
  long long origin;  // the item of the array at which vector 0 begins
  int cols, head, full_begin, full_end;

  __device__ __forceinline__ RowCut(long long row, long long length)
      : origin(row * length), cols(static_cast<int>(length)), head(0), full_begin(0) {
    if constexpr (EDGES) {
      head = static_cast<int>(origin & (8 * VEC - 1));
      origin -= head;
      full_begin = (head + VEC - 1) / VEC;
    }
    full_end = (head + cols) / VEC;
  }

  __device__ __forceinline__ bool full(int vector) const {
    return vector < full_end && (!EDGES || vector >= full_begin);
  }

  // The column of the single item that belongs to a lane (0 .. 31), or -1: first those before the
  // first whole vector, then those after the last.
  __device__ __forceinline__ int edge_column(int lane) const {
    static_assert(2 * VEC <= 32, "two vectors' items, a lane each");
    if (lane >= 2 * VEC || (lane >= VEC && full_end < full_begin)) return -1;
    const int column = (lane < VEC ? full_begin - 1 : full_end) * VEC + lane % VEC - head;
    return column >= 0 && column < cols ? column : -1;
  }
};

}  // namespace solkit
