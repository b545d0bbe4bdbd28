// Runs of elements by their counts, on raw pointers.
#include <algorithm>

#include "core/base/error.h"
#include "core/base/thresholds.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/move/problems.h"
#include "core/memory/scratch.h"
#include "core/runtime/thread_pool.h"

namespace tw {

namespace {

using std::int64_t;

void set_up_runs(const Call& call, void* problem) {
  *static_cast<RunsProblem*>(problem) = {call.in[0].count, call.attributes[0],
                                         call.attributes.flag(1), nullptr, nullptr};
}
void bind_runs(void* problem, void* const* at) {
  RunsProblem& p = *static_cast<RunsProblem*>(problem);
  p.counts = static_cast<const int64_t*>(at[0]);
  p.y = static_cast<int64_t*>(at[1]);
}

// Where each run starts, and where the last one ends.
void find_starts(const RunsProblem& p, int64_t* starts) {
  starts[0] = 0;
  for (int64_t i = 0; i < p.count; ++i) {
    if (p.counts[i] < 0) fail(ErrorKind::value, "repeat: repeats is negative: ", p.counts[i]);
    if (p.counts[i] > p.total - starts[i])
      fail(ErrorKind::value, "repeat: the repeats add up to more than ", p.total, " elements");
    starts[i + 1] = starts[i] + p.counts[i];
  }
  if (starts[p.count] != p.total)
    fail(ErrorKind::value, "repeat: the repeats add up to ", starts[p.count], ", not ", p.total,
         " elements");
}

void write_runs(const RunsProblem& p, const int64_t* starts, int64_t begin, int64_t end) {
  // The run of the first element: the last one that starts there or before.
  int64_t run = std::upper_bound(starts, starts + p.count, begin) - starts - 1;
  for (int64_t at = begin; at < end; ++run) {
    const int64_t stop = std::min(end, starts[run + 1]);
    if (p.within)
      for (; at < stop; ++at) p.y[at] = at - starts[run];
    else
      for (; at < stop; ++at) p.y[at] = run;
  }
}

void run_runs(const void* problem) {
  const auto& p = *static_cast<const RunsProblem*>(problem);
  const Scratch scratch(static_cast<std::size_t>(p.count + 1) * sizeof(int64_t));
  int64_t* const starts = scratch.as<int64_t>();
  find_starts(p, starts);
  parallel_ranges(p.total, thresholds::kGrain,
                  [&](int64_t begin, int64_t end) { write_runs(p, starts, begin, end); });
}

}  // namespace

void register_repeat_kernels() {
  add_kernel<RunsProblem>("runs", "fills runs, shared between threads",
                          {.set_up = set_up_runs,
                           .bind = bind_runs,
                           .run = run_runs,
                           .contiguous = 1,
                           .name = "fill_runs"});
}

}  // namespace tw
