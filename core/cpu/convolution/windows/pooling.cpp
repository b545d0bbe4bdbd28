// Shares pooling between threads, by planes.
#include "core/cpu/convolution/windows/pooling.h"

#include <algorithm>
#include <new>

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
using Problem = PoolingProblem;

int64_t volume(const int64_t (&sizes)[3]) { return sizes[0] * sizes[1] * sizes[2]; }

const char* refuses(const Call& call) {
  const DType dtype = call.in[0].dtype;
  return dtype == DType::float32 || dtype == DType::float64 ? nullptr : kTooNarrow;
}

// ---- windows ----

}  // namespace

PoolingWindow window_of(const Problem& p, int d, int64_t i) {
  const int64_t n = p.x[d];
  if (!p.stride[d]) {
    const int64_t first = i * n / p.y[d], past = ((i + 1) * n + p.y[d] - 1) / p.y[d];
    return {first, past, past - first};
  }
  const int64_t start = i * p.stride[d] - p.before[d], step = p.dilation[d];
  const int64_t end = start + step * (p.kernel[d] - 1) + 1;
  const int64_t first = start < 0 ? start + (-start + step - 1) / step * step : start;
  const int64_t past = std::min(end, n);
  const int64_t counted = std::min(start + p.kernel[d], n + p.before[d]) - start;
  return {first, past, p.include_padding ? counted : past - first};
}

namespace {

// The problem with the windows of its axes, for the length of a run.
class Prepared {
 public:
  explicit Prepared(const Problem& problem)
      : p(problem), memory_((p.y[0] + p.y[1] + p.y[2]) * sizeof(PoolingWindow)) {
    auto* at = memory_.as<PoolingWindow>();
    for (int d = 0; d < 3; ++d) {
      p.windows[d] = at;
      for (int64_t i = 0; i < p.y[d]; ++i) {
        *at = window_of(p, d, i);
        p.gaps |= at->first >= at->past;
        ++at;
      }
      p.padded[d] = p.x[d];
      if (!p.stride[d]) continue;
      const int64_t reach = p.dilation[d] * (p.kernel[d] - 1) + 1;
      p.padded[d] = std::max(p.x[d] + p.before[d], (p.y[d] - 1) * p.stride[d] + reach);
      p.pads |= p.padded[d] != p.x[d];
    }
    // Few windows that are wide would leave most lanes empty.
    p.lanes = p.stride[2] && p.kernel[2] <= 2 * p.y[2] && uses(Optimization::windows_in_lanes);
  }
  Problem p;

 private:
  Scratch memory_;
};

const PoolingLoops& loops_of(DType dtype) {
  const PoolingTable& table = *active_kernels().pooling;
  return dtype == DType::float64 ? table.float64 : table.float32;
}
void each_piece(const Problem& p, PoolingLoops::Loop loop, int64_t scratch) {
  const int64_t of_plane = std::max(volume(p.x), volume(p.y));
  parallel_ranges(p.planes, thresholds::kGrain / of_plane + 1, [&](int64_t first, int64_t past) {
    const Scratch memory(static_cast<std::size_t>(scratch) * size_of(p.dtype));
    loop(p, first, past, memory.as<void>());
  });
}

void run_max(const void* problem) {
  Prepared prepared(*static_cast<const Problem*>(problem));
  Problem& p = prepared.p;
  if (p.planes * volume(p.y) == 0) return;
  // Images that are padding for the most part are not worth a padded copy.
  constexpr double most = 4, small = 4096;
  const double padded = double(p.padded[0]) * double(p.padded[1]) * double(p.padded[2]);
  p.lanes &= p.stride[0] && p.stride[1] && !p.gaps && padded <= most * double(volume(p.x)) + small;
  each_piece(p, loops_of(p.dtype).max, p.lanes && p.pads ? volume(p.padded) : 0);
}
void run_mean(const void* problem) {
  const Prepared prepared(*static_cast<const Problem*>(problem));
  const Problem& p = prepared.p;
  if (p.planes * volume(p.y) == 0) return;
  each_piece(p, loops_of(p.dtype).mean, p.y[2] + (p.lanes ? p.padded[2] : p.x[2]));
}
void run_spread(const void* problem) {
  const Prepared prepared(*static_cast<const Problem*>(problem));
  const Problem& p = prepared.p;
  if (p.planes == 0) return;
  constexpr int64_t lanes = 16;  // of the widest vectors
  const int64_t room = p.lanes ? p.kernel[2] + 1 + p.padded[2] + 2 * lanes : p.y[2];
  each_piece(p, loops_of(p.dtype).spread, p.y[2] + p.x[2] + room);
}

Problem& set_up(const Call& call, void* problem) {
  Problem& p = *new (problem) Problem{};
  p.dtype = call.in[0].dtype;
  int64_t* const lists[] = {p.kernel, p.stride, p.dilation, p.before, p.x, p.y};
  const int axes = call.attributes.list(0).count;
  for (int i = 0; i < 6; ++i)
    for (int d = 0; d < 3; ++d)
      lists[i][d] = d < 3 - axes ? i != 3 : call.attributes.list(i)[d - (3 - axes)];
  p.planes = 1;
  for (int i = 0; i < call.in[0].rank() - axes; ++i) p.planes *= call.in[0].size(i);
  return p;
}
// Rows that one window covers whole are one row, as far as they lie behind each other.
void join_rows(Problem& p) {
  const auto covered = [&p](int d) {
    return p.y[d] == 1 && p.before[d] == 0 && p.kernel[d] == p.x[d];
  };
  if (!covered(2)) return;
  for (int d = 1; d >= 0 && covered(d); --d) {
    p.x[2] *= p.x[d], p.kernel[2] = p.stride[2] = p.x[2];
    p.x[d] = p.kernel[d] = p.stride[d] = 1;
    p.dilation[2] = p.dilation[d] = 1;  // which may be another where the window was of one element
  }
}
void set_up_max(const Call& call, void* problem) {
  Problem& p = set_up(call, problem);
  p.indexed = call.attributes.flag(6);
  join_rows(p);
}
void set_up_mean(const Call& call, void* problem) {
  Problem& p = set_up(call, problem);
  p.include_padding = call.attributes.flag(6);
  p.divisor = call.attributes[7];
  join_rows(p);
}
void bind_max(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  p.from = at[0];
  p.to = at[1];
  p.indices = static_cast<std::int32_t*>(at[2]);
}
void bind_mean(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  p.from = at[0];
  p.to = at[1];
}
double cost_ns(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  return 300 + 0.1 * double(p.planes) * double(std::max(volume(p.x), volume(p.y)));
}

// ---- elements of planes by their places ----

void set_up_places(const Call& call, const Meta& wide, void* problem) {
  const Meta& places = call.in[1];
  const int space = call.attributes.list(0).count;
  PlaceProblem& p = *new (problem) PlaceProblem{};
  p.dtype = call.in[0].dtype;
  p.planes = p.size = p.places = 1;
  for (int i = 0; i < wide.rank(); ++i) {
    const bool leads = i < wide.rank() - space;
    if (leads) p.planes *= wide.size(i);
    if (!leads) p.size *= wide.size(i), p.places *= places.size(i);
  }
}
void bind_places(void* problem, void* const* at) {
  PlaceProblem& p = *static_cast<PlaceProblem*>(problem);
  p.from = at[0];
  p.at = static_cast<const std::int32_t*>(at[1]);
  p.to = at[2];
}
double cost_of_places(const void* problem) {
  const PlaceProblem& p = *static_cast<const PlaceProblem*>(problem);
  return 300 + double(p.planes) * (double(p.places) + 0.1 * double(p.size));
}

template <class T> void scatter_all(const PlaceProblem& p) {
  parallel_ranges(p.planes, thresholds::kGrain / (p.size + 1) + 1,
                  [&](int64_t first, int64_t past) {
                    for (int64_t plane = first; plane < past; ++plane) {
                      const T* from = static_cast<const T*>(p.from) + plane * p.places;
                      const std::int32_t* at = p.at + plane * p.places;
                      T* to = static_cast<T*>(p.to) + plane * p.size;
                      std::fill_n(to, p.size, T{0});
                      for (int64_t i = 0; i < p.places; ++i)
                        if (at[i] >= 0) to[at[i]] += from[i];
                    }
                  });
}
template <class T> void gather_all(const PlaceProblem& p) {
  parallel_ranges(p.planes, thresholds::kGrain / (p.places + 1) + 1,
                  [&](int64_t first, int64_t past) {
                    for (int64_t plane = first; plane < past; ++plane) {
                      const T* from = static_cast<const T*>(p.from) + plane * p.size;
                      const std::int32_t* at = p.at + plane * p.places;
                      T* to = static_cast<T*>(p.to) + plane * p.places;
                      for (int64_t i = 0; i < p.places; ++i)
                        to[i] = at[i] >= 0 ? from[at[i]] : T{0};
                    }
                  });
}
template <void (*single)(const PlaceProblem&), void (*wide)(const PlaceProblem&)>
void run_places(const void* problem) {
  const PlaceProblem& p = *static_cast<const PlaceProblem*>(problem);
  p.dtype == DType::float64 ? wide(p) : single(p);
}

}  // namespace

void register_pooling_kernels() {
  add_kernel<Problem>("max_windows", "a window a lane",
                      {.refuses = refuses,
                       .set_up = set_up_max,
                       .bind = bind_max,
                       .cost_ns = cost_ns,
                       .run = run_max,
                       .contiguous = 1});
  add_kernel<Problem>("mean_windows", "sums of rows, then a window a lane",
                      {.refuses = refuses,
                       .set_up = set_up_mean,
                       .bind = bind_mean,
                       .cost_ns = cost_ns,
                       .run = run_mean,
                       .contiguous = 1});
  add_kernel<Problem>("spread_windows", "shares along a row, added to the rows of its windows",
                      {.refuses = refuses,
                       .set_up = set_up_mean,
                       .bind = bind_mean,
                       .cost_ns = cost_ns,
                       .run = run_spread,
                       .contiguous = 1});
  add_kernel<PlaceProblem>(
      "scatter_in_planes", "a plane at a time, which stays in cache",
      {.refuses = refuses,
       .set_up = [](const Call& call, void* problem) { set_up_places(call, call.out[0], problem); },
       .bind = bind_places,
       .cost_ns = cost_of_places,
       .run = run_places<scatter_all<float>, scatter_all<double>>,
       .contiguous = 3,
       .name = "places"});
  add_kernel<PlaceProblem>(
      "gather_in_planes", "one element at a time",
      {.refuses = refuses,
       .set_up = [](const Call& call, void* problem) { set_up_places(call, call.in[0], problem); },
       .bind = bind_places,
       .cost_ns = cost_of_places,
       .run = run_places<gather_all<float>, gather_all<double>>,
       .contiguous = 3,
       .name = "places"});
}

}  // namespace tw
