// The gradient of products: rows or strips of columns, shared between threads.
#include "core/cpu/families.h"
#include "core/cpu/isa.h"
#include "core/cpu/lowering.h"
#include "core/cpu/reduce.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// Factors of a piece of work: about 20 us, a division each.
constexpr int64_t kPiece = 32 << 10;
// Columns of a piece: whole cache lines.
constexpr int64_t kStrip = 256;

// x and dx are [outer, n, inner], g is [outer, inner].
struct Problem {
  DType dtype;
  int64_t outer, n, inner;
  const void *x, *g;
  void* dx;
};

// The extents before, among and behind the reduced axes, where those are neighbours.
bool splits(const Call& call, Problem& p) {
  const Meta& x = call.in[0];
  const std::uint32_t reduced = call.words.axes(0, x.rank(), call.op->name);
  p.outer = p.n = p.inner = 1;
  bool begun = false, ended = false;
  for (int i = 0; i < x.rank(); ++i) {
    const bool is_reduced = reduced >> i & 1;
    if (x.size(i) == 1) continue;
    if (is_reduced && ended) return false;
    begun |= is_reduced;
    ended = begun && !is_reduced;
    (is_reduced ? p.n : begun ? p.inner : p.outer) *= x.size(i);
  }
  return true;
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
void bind(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  p.x = at[0];
  p.g = at[1];
  p.dx = at[2];
}
double cost_ns(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  constexpr double factors_per_ns = 2;
  return 100 + double(p.outer) * double(p.n) * double(p.inner) / factors_per_ns;
}
void run(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  if (p.outer == 0 || p.n == 0 || p.inner == 0) return;
  const int type = p.dtype == DType::float64;
  const auto bytes = static_cast<int64_t>(size_of(p.dtype));
  const auto *x = static_cast<const char*>(p.x), *g = static_cast<const char*>(p.g);
  char* const dx = static_cast<char*>(p.dx);
  const ReduceTable& table = *active_kernels().reduce;
  if (p.inner == 1)
    return parallel_ranges(p.outer, kPiece / p.n + 1, [&](int64_t begin, int64_t end) {
      const int64_t at = begin * p.n * bytes;
      table.prod_rows_backward[type](end - begin, p.n, x + at, g + begin * bytes, dx + at);
    });
  const int64_t wide = p.inner < kStrip ? p.inner : kStrip, strips = (p.inner - 1) / kStrip + 1;
  parallel_ranges(p.outer * strips, kPiece / (p.n * wide) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t outer = i / strips, column = i % strips * kStrip;
      const int64_t count = p.inner - column < kStrip ? p.inner - column : kStrip;
      const int64_t at = (outer * p.n * p.inner + column) * bytes;
      table.prod_columns_backward[type](count, p.n, p.inner, x + at,
                                        g + (outer * p.inner + column) * bytes, dx + at);
    }
  });
}

}  // namespace

void register_prod_kernels() {
  add_kernel<Problem>("prod_backward", "the whole product divided by each factor", refuses, set_up,
                      bind, cost_ns, run, 3);
}

}  // namespace tw
