// Random tensors from counter-based streams: the same seed gives the same numbers on any number of
// threads.
#pragma once
#include "core/problems/generator.h"

namespace tw {

Generator& default_generator();

}  // namespace tw
