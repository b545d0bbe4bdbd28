// One tensor as several, which are views of its parts along an axis.
#pragma once
#include <vector>

#include "core/tensor/tensor.h"

namespace tw {

// One number for all parts, or one for each. Every function raises IndexError for an axis out of
// range, and ValueError as said; `op` names the caller in it.
struct Parts {
  bool one = true;
  std::vector<std::int64_t> numbers;
};

// Parts of an extent, of which the last may be smaller, or of an extent each. Raises for extents
// that are negative or do not add up to the axis, and for one of 0 where there are elements.
std::vector<Tensor> split(const Tensor& x, const Parts& extents, std::int64_t axis);
// At most so many parts of one extent, of which the last may be smaller. Raises for none.
std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t axis);
// So many parts, the first of them an element longer where they cannot be alike, or the parts
// between places as slices have them. Raises for none.
std::vector<Tensor> tensor_split(const Tensor& x, const Parts& parts, std::int64_t axis);
// The same along the axis that NumPy's hsplit, vsplit and dsplit have, in parts of one extent.
// Raises for tensors without that axis, and for a number of parts that does not divide it.
std::vector<Tensor> hsplit(const Tensor& x, const Parts& parts);
std::vector<Tensor> vsplit(const Tensor& x, const Parts& parts);
std::vector<Tensor> dsplit(const Tensor& x, const Parts& parts);

}  // namespace tw
