// What the rows of updates.inc have in common for all elements: numbers made from step, learning
// rate and settings before the kernels of any device run.
#pragma once
#include <cmath>
#include <cstdint>

#include "core/base/dtype.h"
#include "core/ops/update_rows.h"
#include "core/runtime/op.h"

namespace tw {

inline double sign_of(bool maximize) { return maximize ? -1 : 1; }

// The factors of two running means, and what corrects their start at zero.
struct Betas {
  double first, second, first_correction, second_correction;
  Betas(double step, double first, double second)
      : first(first),
        second(second),
        first_correction(1 - std::pow(first, step)),
        second_correction(1 - std::pow(second, step)) {}
};

// Of weights: what they are multiplied by where it is decoupled, else what is added to gradients.
struct Decay {
  double shrinks, adds;
  Decay(double lr, double rate, bool decoupled)
      : shrinks(decoupled ? 1 - lr * rate : 1), adds(decoupled ? 0 : rate) {}
};

// The product over t = 1 .. steps of beta * (1 - q^t / 2): the logarithm of each factor as its
// power series, whose terms are geometric in t. 60 of them are exact to the last place.
inline double momentum_product(double steps, double beta, double q) {
  double sum = 0, half = 1, power = 1;
  for (int k = 1; k <= 60; ++k) {
    half /= 2;
    power *= q;
    const double terms = power == 1 ? steps : power * (1 - std::pow(power, steps)) / (1 - power);
    sum += half / k * terms;
  }
  return std::pow(beta, steps) * std::exp(-sum);
}

using UpdateFactors = void (*)(double step, double lr, Words w, double* f);
inline constexpr UpdateFactors kUpdateFactors[] = {
#define TW_UPDATE(name, states, tensors, words, help, factors, update) \
  [](double step, double lr, [[maybe_unused]] Words w, double* f) {    \
    using std::pow, std::sqrt;                                         \
    (void)step;                                                        \
    factors;                                                           \
  },
#include "core/ops/updates.inc"
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
