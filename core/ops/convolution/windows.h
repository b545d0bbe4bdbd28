// What ops over windows share.
#pragma once
#include "core/runtime/op.h"

namespace tw {

// One number for each axis, from an attribute that lists one for all of them or one each;
// `otherwise` where none is given. Raises ValueError for another count, and for numbers below
// `least` or beyond 31 bits.
Dims per_axis(const Use& use, int attribute, const char* name, int axes, std::int64_t otherwise,
              std::int64_t least);
// The same of numbers that are given.
Dims per_axis(const Use& use, const Dims& given, const char* name, int axes, std::int64_t least);

}  // namespace tw
