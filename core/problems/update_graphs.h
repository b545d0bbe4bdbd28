// The steps of optimizers as graphs: what becomes of a parameter and its states.
#pragma once
#include "core/problems/formula.h"
#include "core/problems/update_rows.h"

namespace tw::formula {

// Inputs of an update by their numbers: parameter, three states, gradient, and then the factors.
inline constexpr int kUpdated = 4;  // parameter and states
inline constexpr int kUpdateInputs = kUpdated + 1 + kMaxFactors;

// `results`: the steps that the parameter and the states become.
struct UpdateGraph {
  Graph graph;
  std::uint8_t results[kUpdated];
};

template <class F> constexpr UpdateGraph trace_update(F f) {
  UpdateGraph update;
  const auto input = [&](int which) {
    return Traced(update.graph, static_cast<std::uint8_t>(which));
  };
  Traced values[kUpdated + 1] = {input(0), input(1), input(2), input(3), input(4)};
  const auto factors = [&]<int... k>(std::integer_sequence<int, k...>) {
    const Traced all[] = {input(kUpdated + 1 + k)...};
    f(values[0], values[1], values[2], values[3], values[4], all);
  };
  factors(std::make_integer_sequence<int, kMaxFactors>());
  for (int i = 0; i < kUpdated; ++i)
    update.results[i] = static_cast<std::uint8_t>(values[i].in(update.graph));
  return update;
}

inline constexpr UpdateGraph kUpdateGraphs[] = {
#define TW_UPDATE(name, states, tensors, attributes, help, factors, ...)                  \
  trace_update([](Traced & p, [[maybe_unused]] Traced & s1, [[maybe_unused]] Traced & s2, \
                  [[maybe_unused]] Traced & s3, [[maybe_unused]] Traced & g,              \
                  const Traced(&f)[kMaxFactors]) __VA_ARGS__),
#include "core/problems/updates.inc"
#undef TW_UPDATE
};

}  // namespace tw::formula
