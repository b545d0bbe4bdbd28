// Several tensors into one.
#pragma once
#include <vector>

#include "core/tensor/tensor.h"

namespace tw {

// Along an existing axis; types are promoted. Raises ValueError for no tensors or extents that
// differ.
Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis);

}  // namespace tw
