// The definition of resampling: each result is a sum of the image's elements near its place, each
// times the weights that the band matrices of the axes have for it; transposed, each element gives
// that much to the places it was read for. And of sums at given places: y[n, c, i] is the sum over
// k of weights[n, k, i] * x[n, c, places[n, k, i]], with its two gradients.
#include <vector>

#include "core/cpu/convolution/windows/resample.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/pointwise/plain.h"

namespace tw {
namespace {

using std::int64_t;

// Calls f(i in the image, j in the resized one, weight) for what the weight is not 0.
template <class F> void each_pair(const ResampleBands (&bands)[3], F f) {
  const auto each_tap = [&bands](int d, int64_t j, auto next) {
    for (int64_t t = 0; t < bands[d].taps; ++t)
      if (bands[d].weight(j, t) != 0) next(bands[d].start(j) + t, bands[d].weight(j, t));
  };
  for (int64_t j0 = 0; j0 < bands[0].to; ++j0)
    for (int64_t j1 = 0; j1 < bands[1].to; ++j1)
      for (int64_t j2 = 0; j2 < bands[2].to; ++j2)
        each_tap(0, j0, [&](int64_t i0, double w0) {
          each_tap(1, j1, [&](int64_t i1, double w1) {
            each_tap(2, j2, [&](int64_t i2, double w2) {
              f((i0 * bands[1].from + i1) * bands[2].from + i2,
                (j0 * bands[1].to + j1) * bands[2].to + j2, w0 * w1 * w2);
            });
          });
        });
}
template <class T> void resample(const ResampleProblem& p) {
  const ResampleBands bands[] = {bands_of(p, 0), bands_of(p, 1), bands_of(p, 2)};
  const int64_t image = bands[0].from * bands[1].from * bands[2].from;
  const int64_t resized = bands[0].to * bands[1].to * bands[2].to;
  const int64_t read = p.transposed ? resized : image, made = p.transposed ? image : resized;
  for (int64_t plane = 0; plane < p.planes; ++plane) {
    const T* const from = static_cast<const T*>(p.from) + plane * read;
    std::vector<Wider<T>> sums(made);
    each_pair(bands, [&](int64_t i, int64_t j, double weight) {
      sums[p.transposed ? i : j] += Wider<T>(weight) * from[p.transposed ? j : i];
    });
    for (int64_t i = 0; i < made; ++i)
      static_cast<T*>(p.to)[plane * made + i] = static_cast<T>(sums[i]);
  }
}

// Calls f(y, x, weight) with the elements' numbers for all that go together.
template <class F> void each_tap(const TapsProblem& p, F f) {
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t c = 0; c < p.channels; ++c)
      for (int64_t k = 0; k < p.taps; ++k)
        for (int64_t i = 0; i < p.points; ++i) {
          const int64_t weight = (n * p.taps + k) * p.points + i, plane = n * p.channels + c;
          if (p.places[weight] >= 0)
            f(plane * p.points + i, plane * p.size + p.places[weight], weight);
        }
}
enum class Made { y, x, weights };
template <class T, Made made> void sum_taps(const TapsProblem& p) {
  const int64_t count = made == Made::y   ? p.batch * p.channels * p.points
                        : made == Made::x ? p.batch * p.channels * p.size
                                          : p.batch * p.taps * p.points;
  const auto *const first = static_cast<const T*>(p.first), *const second =
                                                                static_cast<const T*>(p.second);
  std::vector<Wider<T>> sums(count);
  each_tap(p, [&](int64_t y, int64_t x, int64_t weight) {
    if (made == Made::y) sums[y] += Wider<T>(first[x]) * second[weight];
    if (made == Made::x) sums[x] += Wider<T>(first[y]) * second[weight];
    if (made == Made::weights) sums[weight] += Wider<T>(first[y]) * second[x];
  });
  for (int64_t i = 0; i < count; ++i) static_cast<T*>(p.made)[i] = static_cast<T>(sums[i]);
}

void run(const void* problem) {
  const auto& p = *static_cast<const ResampleProblem*>(problem);
  p.dtype == DType::float64 ? resample<double>(p) : resample<float>(p);
}
template <Made made> void run_taps(const void* problem) {
  const auto& p = *static_cast<const TapsProblem*>(problem);
  p.dtype == DType::float64 ? sum_taps<double, made>(p) : sum_taps<float, made>(p);
}

}  // namespace

void register_naive_resample_kernels() {
  add_definition("resample_axes", run);
  add_definition("sum_taps", run_taps<Made::y>);
  add_definition("spread_taps", run_taps<Made::x>);
  add_definition("multiply_taps", run_taps<Made::weights>);
}

}  // namespace tw
