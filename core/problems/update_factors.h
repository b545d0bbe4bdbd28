// What the rows of updates.inc have in common for all elements: numbers made from step, learning
// rate and settings before the kernels of any device run.
#pragma once
#include <cmath>
#include <cstdint>

#include "core/base/dtype.h"
#include "core/problems/update_rows.h"
#include "core/runtime/op.h"

namespace tw {

using std::exp, std::pow, std::sqrt;
#include "core/problems/update_factors.inc"

using UpdateFactors = void (*)(double step, double lr, Attributes w, double* f);
inline constexpr UpdateFactors kUpdateFactors[] = {
#define TW_UPDATE(name, states, tensors, attributes, help, factors, update) \
  [](double step, double lr, [[maybe_unused]] Attributes w, double* f) {    \
    (void)step, (void)lr;                                                   \
    factors;                                                                \
  },
#include "core/problems/updates.inc"
#undef TW_UPDATE
};

// A number of a call, stored as its type says.
inline double number_value(DType type, const void* number) {
  switch (type) {
    case DType::float32: return *static_cast<const float*>(number);
    case DType::float64: return *static_cast<const double*>(number);
    default: return static_cast<double>(*static_cast<const std::int64_t*>(number));
  }
}

}  // namespace tw
