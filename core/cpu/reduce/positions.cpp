// The position of an extremum among all elements where memory lies across the axes: that of an
// array that is transposed, say.
#include "core/cpu/reduce/positions.h"

#include <cstdlib>
#include <cstring>

#include "core/base/thresholds.h"
#include "core/cpu/copy/convert.h"
#include "core/cpu/reduce/axes.h"
#include "core/memory/scratch.h"
#include "core/runtime/choice.h"

namespace tw {
namespace {

using std::int64_t;

// The axis whose elements lie closest together.
int densest_axis(DimsView shape, DimsView strides) {
  int best = -1;
  for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
    const auto axis = static_cast<std::size_t>(i);
    if (shape[axis] == 1 || strides[axis] == 0) continue;
    if (best < 0 || std::llabs(strides[axis]) < std::llabs(strides[static_cast<std::size_t>(best)]))
      best = i;
  }
  return best;
}

// First along the densest axis, whose first place in each row is that of the least position; then
// among the rows.
class PositionAcross {
 public:
  PositionAcross(const ReduceProblem& p, int dense) : p_(p), dense_(dense) {
    std::int64_t step = 1;
    for (int i = p.reduced.rank() - 1; i >= 0; --i) {
      if (i == dense)
        dense_step_ = step;
      else
        others_.append({p.reduced[i], p.reduced_strides[i] * int64_t(size_of(p.in)), step});
      step *= p.reduced[i];
    }
  }
  void run() const {
    const int64_t rows = others_.count();
    const Scratch places(rows * sizeof(int64_t)), found(rows * size_of(p_.in));
    find_in_rows(places.as<int64_t>());
    int64_t* const positions = places.as<int64_t>();
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t dense_bytes = p_.reduced_strides[dense_] * int64_t(size_of(p_.in));
      std::memcpy(found.as<char>() + row * size_of(p_.in),
                  static_cast<const char*>(p_.x) + others_.offset(row, others_.rank) +
                      positions[row] * dense_bytes,
                  size_of(p_.in));
      positions[row] = positions[row] * dense_step_ + position_of(row);
    }
    const int64_t position = is_floating(p_.in)     ? best<double>(found, positions)
                             : is_signed_int(p_.in) ? best<int64_t>(found, positions)
                                                    : best<std::uint64_t>(found, positions);
    convert_elements(DType::int64, p_.out, 1, &position, 0, p_.y, 0);
  }

 private:
  // In the order of others_, whose first axis is the last of the array.
  void find_in_rows(int64_t* places) const {
    ReduceProblem rows = p_;
    rows.kept = rows.kept_strides = {};
    for (int i = 0; i < others_.rank; ++i) {
      rows.kept.push_back(others_.axis[i].count);
      rows.kept_strides.push_back(others_.axis[i].x_bytes / int64_t(size_of(p_.in)));
    }
    rows.reduced = rows.reduced_strides = {};
    rows.reduced.push_back(p_.reduced[dense_]);
    rows.reduced_strides.push_back(p_.reduced_strides[dense_]);
    rows.out = DType::int64;
    rows.y = places;
    reduce(rows);
  }
  int64_t position_of(int64_t row) const {
    int64_t position = 0;
    for (int i = others_.rank - 1; i >= 0; --i) {
      position += row % others_.axis[i].count * others_.axis[i].y_step;
      row /= others_.axis[i].count;
    }
    return position;
  }
  // Of values that T holds exactly; the least position of equals, NaN among them.
  template <class T> int64_t best(const Scratch& found, const int64_t* positions) const {
    const int64_t rows = others_.count();
    const Scratch wide(rows * sizeof(T));
    T* const values = wide.as<T>();
    convert_elements(p_.in, DTypeOf<T>::value, rows, found.as<void>(), size_of(p_.in), values,
                     sizeof(T));
    int64_t at = 0;
    for (int64_t row = 1; row < rows; ++row) {
      const T x = values[row], y = values[at];
      const bool equal = x == y || (x != x && y != y);
      if (equal ? positions[row] < positions[at] : replaces(p_.op, x, y)) at = row;
    }
    return positions[at];
  }

  const ReduceProblem& p_;
  const int dense_;
  int64_t dense_step_ = 1;  // in positions
  OrderedAxes others_;
};

// Shorter rows are not worth results of their own.
constexpr int64_t kLeastRow = thresholds::kNarrow;

}  // namespace

bool find_position_across(const ReduceProblem& p) {
  if (p.kept.product() != 1 || is_complex(p.in)) return false;
  const int rank = p.reduced.rank(), dense = densest_axis(p.reduced, p.reduced_strides);
  if (rank < 2 || dense < 0 || dense == rank - 1 || p.reduced[dense] < kLeastRow) return false;
  if (p.reduced.product() == 0 || !uses(Optimization::positions_across)) return false;
  PositionAcross(p, dense).run();
  return true;
}

}  // namespace tw
