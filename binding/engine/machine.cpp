// What the processor's caches give, measured by the loop that adds: a call from Python would take
// longer than what it measures.
#include <algorithm>
#include <chrono>
#include <vector>

#include "binding/module.h"
#include "core/base/float_environment.h"
#include "core/cpu/pointwise/pointwise.h"
#include "core/memory/events.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

// Bytes a second of y = a + b on one core, for arrays of so many bytes in all three.
double add_bandwidth(std::int64_t bytes, double seconds) {
  const FloatEnvironment environment;
  const std::int64_t n = std::max<std::int64_t>(bytes / 12, 64);
  std::vector<float> a(static_cast<std::size_t>(n), 1.5f), b(a), y(a);
  const void* const in[] = {a.data(), b.data()};
  constexpr int kSteps[] = {1, 1};
  const PointwiseFn add = pointwise_value(PointwiseOp::add, ComputeType::f32);
  const std::int64_t passes = std::max<std::int64_t>((256 << 10) / n, 1);
  const std::int64_t end = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  std::int64_t best = std::numeric_limits<std::int64_t>::max(), now = now_ns();
  do {
    const std::int64_t start = now;
    for (std::int64_t i = 0; i < passes; ++i) add(n, y.data(), in, kSteps, Traffic::beyond_l1);
    now = now_ns();
    best = std::min(best, now - start);
  } while (now < end);
  return 12.0 * static_cast<double>(n * passes) / (static_cast<double>(best) * 1e-9);
}

}  // namespace

void bind_machine(nb::module_& m) {
  m.def("_add_bandwidth", add_bandwidth, "bytes"_a, "seconds"_a);
}

}  // namespace tw::binding
