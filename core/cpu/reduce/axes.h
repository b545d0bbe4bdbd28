// The axes of a reduction: row-major in three extents, or kept and reduced ones ordered by how far
// their elements lie apart, neighbours merged where steps allow.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "core/base/shape.h"
#include "core/problems/axes.h"
#include "core/runtime/choice.h"

namespace tw {

// The extents before, among and behind the reduced axes of a row-major array, where those are
// neighbours.
struct AxisGroups {
  std::int64_t outer = 1, n = 1, inner = 1;
  // Nothing lies behind. A kept axis of one element does where no choice may ask how many there
  // are.
  bool are_rows = true;

  // False where they are not. Bit i of `reduced`: axis i is.
  bool split(const Shape& shape, std::uint32_t reduced) {
    const bool invariant = is_batch_invariant();
    bool begun = false, ended = false;
    for (int i = 0; i < shape.rank(); ++i) {
      const bool is_reduced = reduced >> i & 1;
      if (shape[i] == 1 && (is_reduced || !invariant)) continue;
      if (is_reduced && ended) return false;
      begun |= is_reduced;
      ended = begun && !is_reduced;
      (is_reduced ? n : begun ? inner : outer) *= shape[i];
    }
    are_rows = !ended;
    return true;
  }
};

struct OrderedAxis {
  std::int64_t count, x_bytes;
  std::int64_t y_step;  // of kept axes: elements of y
};

// How far out an axis belongs: by its stride. One that repeats does beside a longer run of elements
// without gaps, which is then read again; among others that is read first which lies in one place.
inline std::int64_t width_of(const OrderedAxis& a, std::int64_t run) {
  if (a.x_bytes == 0 && a.count <= run) return std::numeric_limits<std::int64_t>::max();
  return std::llabs(a.x_bytes);
}

struct OrderedAxes {
  OrderedAxis axis[kMaxRank + 1];
  int rank = 0;

  OrderedAxis& last() { return axis[rank - 1]; }
  const OrderedAxis& last() const { return axis[rank - 1]; }
  void append(OrderedAxis a) { axis[rank++] = a; }
  void insert_by_width(OrderedAxis a, std::int64_t run) {
    int at = rank++;
    for (; at > 0 && width_of(a, run) > width_of(axis[at - 1], run); --at) axis[at] = axis[at - 1];
    axis[at] = a;
  }
  void merge() {
    rank = merge_axes<&OrderedAxis::count, &OrderedAxis::x_bytes, &OrderedAxis::y_step>(axis, rank);
    if (rank == 0) append({1, 0, 0});
  }
  std::int64_t count(int from, int to) const {
    std::int64_t product = 1;
    for (int i = from; i < to; ++i) product *= axis[i].count;
    return product;
  }
  std::int64_t count() const { return count(0, rank); }
  // Byte offset of point `index` of axes [0, to).
  std::int64_t offset(std::int64_t index, int to) const {
    std::int64_t bytes = 0;
    for (int i = to - 1; i >= 0; --i) {
      bytes += index % axis[i].count * axis[i].x_bytes;
      index /= axis[i].count;
    }
    return bytes;
  }
};

}  // namespace tw
