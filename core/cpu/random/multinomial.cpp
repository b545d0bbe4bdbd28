// Drawing classes by their probabilities, row by row, on raw pointers.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/thresholds.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/random/random.h"
#include "core/runtime/thread_pool.h"

namespace tw {

namespace {

using std::int64_t;

// ---- probabilities that can be drawn from ----

void set_up_check(const Call& call, void* problem) {
  const Meta& p = call.in[0];
  *static_cast<CheckProblem*>(problem) = {
      p.size(0), p.size(1), call.attributes[0], call.attributes.flag(1), nullptr, nullptr};
}
void bind_check(void* problem, void* const* at) {
  auto& c = *static_cast<CheckProblem*>(problem);
  c.p = static_cast<const double*>(at[0]);
  c.y = static_cast<double*>(at[1]);
}
void check_row(const CheckProblem& c, int64_t row) {
  const double* const p = c.p + row * c.classes;
  int64_t possible = 0;
  double total = 0;
  for (int64_t i = 0; i < c.classes; ++i) {
    if (!(p[i] >= 0) || std::isinf(p[i]))
      fail(ErrorKind::value, "multinomial: probability ", p[i], " of class ", i, " in row ", row,
           " is not a finite number of at least 0");
    possible += p[i] > 0;
    total += p[i];
  }
  if (possible == 0)
    fail(ErrorKind::value, "multinomial: row ", row, " has no probability above 0");
  if (std::isinf(total))
    fail(ErrorKind::value, "multinomial: the probabilities of row ", row, " add up to infinity");
  if (!c.replacement && possible < c.samples)
    fail(ErrorKind::value, "multinomial: row ", row, " has ", possible,
         possible == 1 ? " class" : " classes", " of a probability above 0, too few for ",
         c.samples, " samples; pass replacement=True to draw a class again");
}
void run_check(const void* problem) {
  const auto& c = *static_cast<const CheckProblem*>(problem);
  for (int64_t row = 0; row < c.rows; ++row) check_row(c, row);
  std::copy_n(c.p, c.rows * c.classes, c.y);
}

// ---- classes ----

void set_up_drawn(const Call& call, void* problem) {
  const Meta& p = call.in[0];
  *static_cast<DrawnProblem*>(problem) = {p.size(0), p.size(1), call.attributes[0],
                                          nullptr,   nullptr,   nullptr};
}
void bind_drawn(void* problem, void* const* at) {
  auto& d = *static_cast<DrawnProblem*>(problem);
  d.p = static_cast<const double*>(at[0]);
  d.u = static_cast<const double*>(at[1]);
  d.y = static_cast<int64_t*>(at[2]);
}
template <class F> void each_row(const DrawnProblem& d, F&& body) {
  parallel_ranges(d.rows, thresholds::kHeavyGrain / (d.classes + d.samples + 1) + 1, body);
}

// The class in whose share of the sum a uniform number falls.
void run_again(const void* problem) {
  const auto& d = *static_cast<const DrawnProblem*>(problem);
  each_row(d, [&](int64_t begin, int64_t end) {
    std::vector<double> sums(static_cast<std::size_t>(d.classes));
    for (int64_t row = begin; row < end; ++row) {
      const double* const p = d.p + row * d.classes;
      double total = 0;
      int64_t last = 0;  // of those above 0, for numbers that rounding puts behind all shares
      for (int64_t i = 0; i < d.classes; ++i) {
        sums[static_cast<std::size_t>(i)] = total += p[i];
        if (p[i] > 0) last = i;
      }
      for (int64_t j = row * d.samples; j < (row + 1) * d.samples; ++j) {
        const auto at = std::upper_bound(sums.begin(), sums.end(), d.u[j] * total);
        d.y[j] = std::min<int64_t>(at - sums.begin(), last);
      }
    }
  });
}

// Each class arrives after an exponential time of its rate, and the first to arrive are taken
// (Efraimidis, Spirakis, "Weighted random sampling with a reservoir", 2006).
void run_once(const void* problem) {
  const auto& d = *static_cast<const DrawnProblem*>(problem);
  each_row(d, [&](int64_t begin, int64_t end) {
    std::vector<std::pair<double, int64_t>> arrivals;
    for (int64_t row = begin; row < end; ++row) {
      arrivals.clear();
      for (int64_t i = 0; i < d.classes; ++i) {
        const double p = d.p[row * d.classes + i], u = d.u[row * d.classes + i];
        if (p > 0) arrivals.emplace_back(-std::log1p(-u) / p, i);
      }
      const auto first = arrivals.begin();
      std::partial_sort(first, first + d.samples, arrivals.end());
      for (int64_t j = 0; j < d.samples; ++j)
        d.y[row * d.samples + j] = arrivals[static_cast<std::size_t>(j)].second;
    }
  });
}

}  // namespace

void register_multinomial_kernels() {
  add_kernel<CheckProblem>("checked_probabilities", "one row after the other",
                           {.set_up = set_up_check,
                            .bind = bind_check,
                            .run = run_check,
                            .contiguous = 1,
                            .name = "weights"});
  add_definition("checked_probabilities", run_check);  // whose loops are the definition
  add_kernel<DrawnProblem>("multinomial_again", "a search in the sums of each row",
                           {.set_up = set_up_drawn,
                            .bind = bind_drawn,
                            .run = run_again,
                            .contiguous = 3,
                            .name = "weights"});
  add_kernel<DrawnProblem>("multinomial_once", "the first arrivals of each row",
                           {.set_up = set_up_drawn,
                            .bind = bind_drawn,
                            .run = run_once,
                            .contiguous = 3,
                            .name = "weights"});
}

}  // namespace tw
