// Gradients of products and extrema: rows or strips of columns, shared between threads.
#include <algorithm>
#include <atomic>

#include "core/base/thresholds.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/reduce/reduce.h"
#include "core/cpu/reduce/axes.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// Factors of a piece of work.
constexpr int64_t kPiece = thresholds::kGrain;
// Columns of a piece: long rows where all threads have work all the same.
template <Gradient gradient> int64_t columns_together(int64_t outer, int64_t inner) {
  constexpr int64_t most = kExtremumColumns;
  const bool enough = outer * ((inner - 1) / most + 1) >= num_threads();
  return std::min<int64_t>(inner, gradient == Gradient::extremum && enough ? most : kStripBackward);
}

using Problem = GradientProblem;

bool splits(const Call& call, Problem& p) {
  const Meta& x = call.in[0];
  AxisGroups axes;
  const bool neighbours = axes.split(*x.shape, call.attributes.axes(0, x.rank(), call.op->name));
  p.outer = axes.outer;
  p.n = axes.n;
  p.inner = axes.inner;
  p.are_rows = axes.are_rows;
  return neighbours;
}
const char* refuses(const Call& call) {
  const DType dtype = call.in[0].dtype;
  if (dtype != DType::float32 && dtype != DType::float64) return kTooNarrow;
  Problem p;
  return splits(call, p) ? nullptr : "axes that are no neighbours are moved by copies";
}
void set_up(const Call& call, void* problem) {
  Problem& p = *static_cast<Problem*>(problem);
  p.dtype = call.in[0].dtype;
  splits(call, p);
}
template <Gradient gradient> void bind(void* problem, void* const* at) {
  constexpr bool has_y = gradient == Gradient::extremum;
  Problem& p = *static_cast<Problem*>(problem);
  p.x = at[0];
  p.y = has_y ? at[1] : nullptr;
  p.g = at[has_y + 1];
  p.dx = at[has_y + 2];
}
double cost_ns(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  constexpr double factors_per_ns = 2;
  return 100 + double(p.outer) * double(p.n) * double(p.inner) / factors_per_ns;
}

// One long row, in pieces: how many elements equal the extremum, then their gradients.
void share_row(const ReduceTable& table, int type, int64_t n, const char* x, const char* y,
               const char* g, char* dx) {
  const int64_t bytes = type ? 8 : 4;
  std::atomic<int64_t> equal = 0;
  parallel_ranges(n, kPiece, [&](int64_t begin, int64_t end) {
    equal += table.matches[type](end - begin, x + begin * bytes, y);
  });
  parallel_ranges(n, kPiece, [&](int64_t begin, int64_t end) {
    table.share[type](end - begin, x + begin * bytes, y, g, equal, dx + begin * bytes);
  });
}

template <Gradient gradient> void run(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  if (p.outer == 0 || p.n == 0 || p.inner == 0) return;
  const int type = p.dtype == DType::float64;
  const auto bytes = static_cast<int64_t>(size_of(p.dtype));
  const auto *x = static_cast<const char*>(p.x), *y = static_cast<const char*>(p.y),
             *g = static_cast<const char*>(p.g);
  char* const dx = static_cast<char*>(p.dx);
  const ReduceTable& table = *active_kernels().reduce;
  if (p.are_rows && gradient == Gradient::extremum && p.n >= 2 * kPiece) {
    for (int64_t i = 0; i < p.outer; ++i)
      share_row(table, type, p.n, x + i * p.n * bytes, y + i * bytes, g + i * bytes,
                dx + i * p.n * bytes);
    return;
  }
  const auto g_rows = table.rows_backward[static_cast<int>(gradient)][type];
  if (p.are_rows)
    return parallel_ranges(p.outer, kPiece / p.n + 1, [&](int64_t begin, int64_t end) {
      const int64_t at = begin * p.n * bytes;
      g_rows(end - begin, p.n, x + at, y + begin * bytes, g + begin * bytes, dx + at);
    });
  const auto g_columns = table.columns_backward[static_cast<int>(gradient)][type];
  const int64_t wide = columns_together<gradient>(p.outer, p.inner);
  const int64_t strips = (p.inner - 1) / wide + 1;
  parallel_ranges(p.outer * strips, kPiece / (p.n * wide) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t outer = i / strips, column = i % strips * wide;
      const int64_t count = std::min(p.inner - column, wide);
      const int64_t at = (outer * p.n * p.inner + column) * bytes;
      const int64_t one = (outer * p.inner + column) * bytes;
      g_columns(count, p.n, p.inner, x + at, y + one, g + one, dx + at);
    }
  });
}

}  // namespace

void register_reduce_backward_kernels() {
  add_kernel<Problem>("prod_backward", "the whole product divided by each factor",
                      {.refuses = refuses,
                       .set_up = set_up,
                       .bind = bind<Gradient::prod>,
                       .cost_ns = cost_ns,
                       .run = run<Gradient::prod>,
                       .contiguous = 3});
  add_kernel<Problem>("extremum_backward", "equal elements counted, then their shares written",
                      {.refuses = refuses,
                       .set_up = set_up,
                       .bind = bind<Gradient::extremum>,
                       .cost_ns = cost_ns,
                       .run = run<Gradient::extremum>,
                       .contiguous = 7});
}

}  // namespace tw
