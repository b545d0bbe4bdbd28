// Resampling: the band matrices of a call's axes, and sharing rows between threads.
#include "core/cpu/convolution/windows/resample.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <vector>

#include "core/base/thresholds.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/memory/scratch.h"
#include "core/runtime/choice.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;
using Problem = ResampleProblem;

// ---- band matrices ----

using Bands = ResampleBands;

struct Axis {
  int64_t from, to;
  double scale;
};

// In the type of the elements but for the last step, as PyTorch does: the choice between two
// neighbours is one of rounding.
template <class T> Bands nearest_bands(const Axis& axis, bool exact) {
  Bands out(axis.from, axis.to, 1);
  const auto scale = axis.scale == 0 ? static_cast<T>(axis.from) / static_cast<T>(axis.to)
                                     : static_cast<T>(axis.scale);
  for (int64_t j = 0; j < axis.to; ++j) {
    double at = static_cast<T>(j) * scale;
    if (exact) at = std::max(std::fma(scale, static_cast<T>(j) + T(0.5), T(-0.5)), T(0)) + 0.5;
    const auto low = static_cast<int64_t>(std::floor(static_cast<float>(at)));
    out.start(j) = std::min(low, axis.from - 1);
    out.weight(j, 0) = 1;
  }
  return out;
}

double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// Neighbours beyond the ends count as the ends.
Bands smooth_bands(const Axis& axis, bool is_cubic, bool align_corners) {
  const int64_t reach = is_cubic ? 4 : 2, last = axis.from - 1;
  Bands out(axis.from, axis.to, std::min(reach, axis.from));
  for (int64_t j = 0; j < axis.to; ++j) {
    const auto place = static_cast<double>(j);
    double at = align_corners ? place * axis.scale : (place + 0.5) * axis.scale - 0.5;
    if (!is_cubic) at = std::max(at, 0.0);
    const double low = std::min(std::floor(at), static_cast<double>(last));
    const double rest = std::clamp(at - low, 0.0, 1.0);
    const int64_t begin = static_cast<int64_t>(low) - (is_cubic ? 1 : 0);
    out.start(j) = std::clamp(begin, int64_t{0}, axis.from - out.taps);
    for (int64_t t = 0; t < reach; ++t) {
      const double distance = rest - static_cast<double>(begin + t) + low;
      const double w = is_cubic ? cubic(distance, -0.75) : 1 - std::abs(distance);
      out.weight(j, std::clamp(begin + t, int64_t{0}, last) - out.start(j)) += w;
    }
  }
  return out;
}

// The filter is stretched over the elements that one of the result stands for.
Bands antialiased_bands(const Axis& axis, bool is_cubic) {
  const double stretch = std::max(axis.scale, 1.0);
  const double support = (is_cubic ? 2.0 : 1.0) * stretch;
  const int64_t most = std::min(axis.from, 2 * static_cast<int64_t>(std::ceil(support)) + 1);
  Bands out(axis.from, axis.to, most);
  for (int64_t j = 0; j < axis.to; ++j) {
    const double center = axis.scale * (static_cast<double>(j) + 0.5);
    const int64_t begin =
        std::clamp(static_cast<int64_t>(center - support + 0.5), int64_t{0}, axis.from - 1);
    const int64_t past = std::min(static_cast<int64_t>(center + support + 0.5), axis.from);
    out.start(j) = std::min(begin, axis.from - most);
    double total = 0;
    for (int64_t i = begin; i < std::min(past, begin + most); ++i) {
      const double x = (static_cast<double>(i) - center + 0.5) / stretch;
      const double w = is_cubic ? cubic(x, -0.5) : std::max(0.0, 1 - std::abs(x));
      out.weight(j, i - out.start(j)) = w;
      total += w;
    }
    for (int64_t t = 0; t < most; ++t)
      if (total != 0) out.weight(j, t) /= total;
  }
  return out;
}

// What an element went to lies together, as places grow with places.
Bands transposed(const Bands& bands) {
  std::vector<int64_t> low(static_cast<std::size_t>(bands.from), bands.to);
  std::vector<int64_t> past(static_cast<std::size_t>(bands.from), 0);
  const auto each = [&bands](auto f) {
    for (int64_t j = 0; j < bands.to; ++j)
      for (int64_t t = 0; t < bands.taps; ++t)
        if (bands.weight(j, t) != 0)
          f(j, static_cast<std::size_t>(bands.start(j) + t), bands.weight(j, t));
  };
  each([&](int64_t j, std::size_t i, double) {
    low[i] = std::min(low[i], j);
    past[i] = std::max(past[i], j + 1);
  });
  int64_t taps = 1;
  for (std::size_t i = 0; i < low.size(); ++i) taps = std::max(taps, past[i] - low[i]);
  Bands out(bands.to, bands.from, taps);
  for (std::size_t i = 0; i < low.size(); ++i) out.first[i] = std::min(low[i], bands.to - taps);
  each([&](int64_t j, std::size_t i, double w) {
    out.weight(static_cast<int64_t>(i), j - out.first[i]) = w;
  });
  return out;
}

}  // namespace

ResampleBands bands_of(const ResampleProblem& p, int d) {
  Axis axis = {p.image[d], p.size[d], p.scale[d]};
  if (p.method < ResampleMethod::linear) {
    const bool exact = p.method == ResampleMethod::nearest_exact;
    return p.dtype == DType::float64 ? nearest_bands<double>(axis, exact)
                                     : nearest_bands<float>(axis, exact);
  }
  const auto from = static_cast<double>(axis.from), to = static_cast<double>(axis.to);
  if (p.align_corners)
    axis.scale = axis.to > 1 ? (from - 1) / (to - 1) : 0;
  else if (axis.scale == 0)
    axis.scale = from / to;
  if (p.antialias) return antialiased_bands(axis, p.method == ResampleMethod::cubic);
  return smooth_bands(axis, p.method == ResampleMethod::cubic, p.align_corners);
}

namespace {

bool is_same(const Bands& bands) {
  if (bands.from != bands.to || bands.taps != 1) return false;
  for (int64_t j = 0; j < bands.to; ++j)
    if (bands.start(j) != j || bands.weight(j, 0) != 1) return false;
  return true;
}

// Taps that no row has any weight for would be read for nothing.
Bands trimmed(Bands bands) {
  int64_t taps = 1;
  std::vector<int64_t> low(static_cast<std::size_t>(bands.to), 0);
  for (int64_t j = 0; j < bands.to; ++j) {
    int64_t begin = 0, past = bands.taps;
    while (begin + 1 < past && bands.weight(j, begin) == 0) ++begin;
    while (past > begin + 1 && bands.weight(j, past - 1) == 0) --past;
    low[static_cast<std::size_t>(j)] = begin;
    taps = std::max(taps, past - begin);
  }
  if (taps == bands.taps) return bands;
  Bands out(bands.from, bands.to, taps);
  for (int64_t j = 0; j < bands.to; ++j) {
    const int64_t begin = bands.start(j) + low[static_cast<std::size_t>(j)];
    out.start(j) = std::min(begin, bands.from - taps);
    for (int64_t t = 0; t < bands.taps; ++t)
      if (bands.weight(j, t) != 0)
        out.weight(j, bands.start(j) + t - out.start(j)) = bands.weight(j, t);
  }
  return out;
}

// An axis as the loops read it.
struct Packed {
  std::vector<std::int32_t> first;
  std::vector<float> single;
  std::vector<double> wide;

  ResampleAxis operator()(const Bands& bands, DType dtype) {
    first.assign(bands.first.begin(), bands.first.end());
    const auto fill = [&bands](auto& weights) {
      weights.resize(bands.weights.size());
      for (int64_t j = 0; j < bands.to; ++j)
        for (int64_t t = 0; t < bands.taps; ++t)
          weights[static_cast<std::size_t>(t * bands.to + j)] =
              static_cast<std::remove_reference_t<decltype(weights[0])>>(bands.weight(j, t));
    };
    dtype == DType::float64 ? fill(wide) : fill(single);
    const void* const weights = dtype == DType::float64 ? static_cast<const void*>(wide.data())
                                                        : static_cast<const void*>(single.data());
    return {bands.from,     bands.to,     static_cast<int>(bands.taps),
            is_same(bands), first.data(), weights};
  }
};

// ---- the kernel ----

const ResampleLoops& loops_of(DType dtype) {
  const ResampleTable& table = *active_kernels().resample;
  return dtype == DType::float64 ? table.float64 : table.float32;
}

void run_resample(const void* problem) {
  Problem p = *static_cast<const Problem*>(problem);
  Packed packed[3];
  for (int d = 0; d < 3; ++d) {
    const Bands bands = bands_of(p, d);
    const Bands whole = p.transposed ? transposed(bands) : bands;
    p.axes[d] = packed[d](uses(Optimization::tap_trimming) ? trimmed(whole) : whole, p.dtype);
  }
  const ResampleLoops& loops = loops_of(p.dtype);
  const int64_t rows = p.planes * p.axes[0].to * p.axes[1].to;
  const int64_t pairs = p.axes[0].taps * p.axes[1].taps, width = p.axes[2].from;
  const int64_t of_row = pairs * width + p.axes[2].taps * p.axes[2].to;
  const auto bytes = static_cast<std::size_t>(pairs * 16 + width * 8);
  parallel_ranges(rows, thresholds::kHeavyGrain / of_row + 1, [&](int64_t first, int64_t past) {
    const Scratch memory(bytes);
    loops.rows(p, first, past, memory.as<void>());
  });
}

const char* refuses(const Call& call) {
  const DType dtype = call.in[0].dtype;
  return dtype == DType::float32 || dtype == DType::float64 ? nullptr : kTooNarrow;
}

// Attributes: image, size, method, align_corners, antialias, the scales of three axes, transposed.
void set_up(const Call& call, void* problem) {
  Problem& p = *new (problem) Problem{};
  p.dtype = call.in[0].dtype;
  const List image = call.attributes.list(0), size = call.attributes.list(1);
  const int missing = 3 - image.count;
  for (int d = 0; d < 3; ++d) {
    p.image[d] = d < missing ? 1 : image[d - missing];
    p.size[d] = d < missing ? 1 : size[d - missing];
    p.scale[d] = d < missing ? 0 : call.attributes.real(5 + d - missing);
  }
  p.method = static_cast<ResampleMethod>(call.attributes[2]);
  p.align_corners = call.attributes.flag(3);
  p.antialias = call.attributes.flag(4);
  p.transposed = call.attributes.flag(8);
  p.planes = 1;
  for (int i = 0; i < call.in[0].rank() - image.count; ++i) p.planes *= call.in[0].size(i);
}
void bind(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  p.from = at[0];
  p.to = at[1];
}
double cost_ns(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  double x = 1, y = 1;
  for (int d = 0; d < 3; ++d) x *= double(p.image[d]), y *= double(p.size[d]);
  return 1000 + double(p.planes) * std::max(x, y);
}

// ---- sums at places ----

void run_points(const TapsProblem& p, ResampleLoops::TapsLoop loop) {
  const int64_t pieces = (p.points + thresholds::kPoints - 1) / thresholds::kPoints;
  const int64_t of_piece = std::min(p.points, thresholds::kPoints) * p.taps * p.channels;
  parallel_ranges(p.batch * pieces, thresholds::kHeavyGrain / (of_piece + 1) + 1,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const int64_t first = i % pieces * thresholds::kPoints;
                      loop(p, i / pieces, first, std::min(first + thresholds::kPoints, p.points));
                    }
                  });
}
void run_sums(const void* problem) {
  const auto& p = *static_cast<const TapsProblem*>(problem);
  run_points(p, loops_of(p.dtype).sums);
}
void run_products(const void* problem) {
  const auto& p = *static_cast<const TapsProblem*>(problem);
  run_points(p, loops_of(p.dtype).products);
}
void run_spread(const void* problem) {
  const auto& p = *static_cast<const TapsProblem*>(problem);
  const int64_t of_plane = p.size + p.points * p.taps;
  parallel_ranges(p.batch * p.channels, thresholds::kHeavyGrain / (of_plane + 1) + 1,
                  [&](int64_t first, int64_t past) { loops_of(p.dtype).spread(p, first, past); });
}

// `y`, `x` and `weights` of a call, whatever of them is made, and the places.
void set_up_taps(const Meta& y, const Meta& x, const Meta& places, void* problem) {
  TapsProblem& p = *new (problem) TapsProblem{};
  p.dtype = x.dtype;
  p.batch = x.size(0);
  p.channels = x.size(1);
  p.size = x.size(2);
  p.taps = places.size(1);
  p.points = y.size(2);
}
void bind_taps(void* problem, void* const* at) {
  TapsProblem& p = *static_cast<TapsProblem*>(problem);
  p.first = at[0];
  p.second = at[1];
  p.places = static_cast<const std::int32_t*>(at[2]);
  p.made = at[3];
}
double cost_of_taps(const void* problem) {
  const auto& p = *static_cast<const TapsProblem*>(problem);
  return 300 + double(p.batch) * double(p.channels) * double(p.points) * double(p.taps);
}

}  // namespace

void register_resample_kernels() {
  add_kernel<TapsProblem>(
      "sum_taps", "a point a lane",
      {.refuses = refuses,
       .set_up = [](const Call& call,
                    void* problem) { set_up_taps(call.out[0], call.in[0], call.in[2], problem); },
       .bind = bind_taps,
       .cost_ns = cost_of_taps,
       .run = run_sums,
       .contiguous = 7,
       .name = "taps"});
  add_kernel<TapsProblem>(
      "spread_taps", "a plane at a time, which stays in cache",
      {.refuses = refuses,
       .set_up = [](const Call& call,
                    void* problem) { set_up_taps(call.in[0], call.out[0], call.in[2], problem); },
       .bind = bind_taps,
       .cost_ns = cost_of_taps,
       .run = run_spread,
       .contiguous = 7,
       .name = "taps"});
  add_kernel<TapsProblem>(
      "multiply_taps", "a point a lane",
      {.refuses = refuses,
       .set_up = [](const Call& call,
                    void* problem) { set_up_taps(call.in[0], call.in[1], call.in[2], problem); },
       .bind = bind_taps,
       .cost_ns = cost_of_taps,
       .run = run_products,
       .contiguous = 7,
       .name = "taps"});
  add_kernel<Problem>("resample_axes", "sums of rows, then of elements along them",
                      {.refuses = refuses,
                       .set_up = set_up,
                       .bind = bind,
                       .cost_ns = cost_ns,
                       .run = run_resample,
                       .contiguous = 1});
}

}  // namespace tw
