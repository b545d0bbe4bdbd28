// Shares scans between threads: by rows, by strips of columns, and long rows of sums by pieces.
#include "core/cpu/reduce/scan.h"

#include <algorithm>

#include "core/base/thresholds.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/reduce/axes.h"
#include "core/memory/scratch.h"
#include "core/runtime/choice.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// Elements of a piece of work, which sums are cut into as well.
constexpr int64_t kPiece = thresholds::kSumPiece;

using Layout = ScanLayout;
Layout layout_of(const Meta& x, Attribute axis_attribute) {
  AxisGroups axes;
  axes.split(*x.shape, 1u << axis_attribute);
  return {axes.outer, axes.n, axes.inner, axes.are_rows};
}

// Calls body(start, columns) for strips of columns, each in one group of rows.
template <class F> void each_strip(const Layout& s, F&& body) {
  const int64_t strips = (s.inner + kScanStrip - 1) / kScanStrip;
  const int64_t wide = std::min(s.inner, kScanStrip);
  parallel_ranges(s.outer * strips, kPiece / (s.n * wide + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i % strips * kScanStrip;
      body(i / strips * s.n * s.inner + at, std::min(kScanStrip, s.inner - at));
    }
  });
}

// ---- sums, products and log-sums ----

union Accumulator {
  double real;
  int64_t whole;
};

struct Scan {
  explicit Scan(const ScanProblem& problem)
      : p(problem),
        bytes(static_cast<int64_t>(size_of(p.dtype))),
        is_real(is_floating(p.dtype)),
        loops(loops_of(p)) {}

  static const ScanLoops& loops_of(const ScanProblem& p) {
    const ScanTable& table = *active_kernels().scan;
    const int kind = static_cast<int>(p.kind);
    if (p.dtype == DType::float32) return table.float32[kind];
    return p.dtype == DType::float64 ? table.float64[kind] : table.int64[kind];
  }

  int64_t pieces() const {
    return p.kind == ScanKind::sum ? (p.layout.n + kPiece - 1) / kPiece : 1;
  }
  Accumulator nothing() const {
    Accumulator none;
    if (is_real)
      none.real = -0.0;  // so that a first -0.0 is kept
    else
      none.whole = 0;
    return none;
  }
  void add(Accumulator& sum, Accumulator term) const {
    if (is_real)
      sum.real += term.real;
    else
      sum.whole = static_cast<int64_t>(static_cast<std::uint64_t>(sum.whole) +
                                       static_cast<std::uint64_t>(term.whole));
  }

  // The k-th piece in the order of the scan; its sum comes back.
  Accumulator piece(int64_t row, int64_t k, Accumulator before, bool writes) const {
    const int64_t n = p.layout.n, length = pieces() == 1 ? n : kPiece;
    const int64_t done = k * length, count = std::min(length, n - done);
    const int64_t at = (row * n + (p.reverse ? n - done - count : done)) * bytes;
    Accumulator total = before;
    loops.row(count, p.x + at, writes ? p.y + at : nullptr, &before, &total, p.reverse);
    return total;
  }
  void whole_row(int64_t row) const {
    Accumulator sum = nothing();
    for (int64_t k = 0; k < pieces(); ++k) add(sum, piece(row, k, sum, true));
  }
  // The same bits, all threads at one row: sums of the pieces first.
  void shared_row(int64_t row) const {
    const Scratch memory(static_cast<std::size_t>(pieces()) * sizeof(Accumulator));
    auto* const before = memory.as<Accumulator>();
    parallel_chunks(pieces(), [&](int64_t k) { before[k] = piece(row, k, nothing(), false); });
    Accumulator sum = nothing();
    for (int64_t k = 0; k < pieces(); ++k) {
      const Accumulator term = before[k];
      before[k] = sum;
      add(sum, term);
    }
    parallel_chunks(pieces(), [&](int64_t k) { piece(row, k, before[k], true); });
  }

  void run() const {
    const Layout& s = p.layout;
    if (!s.are_rows)
      return each_strip(s, [&](int64_t start, int64_t columns) {
        loops.columns(s.n, columns, s.inner, p.x + start * bytes, p.y + start * bytes, p.reverse);
      });
    if (s.n <= kShortScan && loops.short_rows)
      return parallel_ranges(s.outer, kPiece / (s.n + 1) + 1, [&](int64_t begin, int64_t end) {
        const int64_t at = begin * s.n * bytes;
        loops.short_rows(end - begin, s.n, p.x + at, p.y + at, p.reverse);
      });
    if (pieces() > 1 && s.outer < num_threads()) {
      const bool shares = num_threads() > 1 && uses(Optimization::two_pass_scan);
      for (int64_t row = 0; row < s.outer; ++row) shares ? shared_row(row) : whole_row(row);
      return;
    }
    parallel_ranges(s.outer, kPiece / (s.n + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) whole_row(row);
    });
  }

  const ScanProblem& p;
  const int64_t bytes;
  const bool is_real;
  const ScanLoops& loops;
};

// y[i] = a[i] * y[i - 1] + b[i], one after the other down all columns, in double; without b the
// running product.
template <class Part>
void recur_complex(const Layout& s, bool reverse, const void* a_in, const void* b_in, void* y_out) {
  const auto* a = static_cast<const Complex<Part>*>(a_in);
  const auto* b = static_cast<const Complex<Part>*>(b_in);
  auto* y = static_cast<Complex<Part>*>(y_out);
  parallel_ranges(s.outer * s.inner, kPiece / (s.n + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t column = begin; column < end; ++column) {
      const int64_t start = column / s.inner * s.n * s.inner + column % s.inner;
      double re = b ? 0 : 1, im = 0;
      for (int64_t k = 0; k < s.n; ++k) {
        const int64_t at = start + (reverse ? s.n - 1 - k : k) * s.inner;
        const double p = a[at].re, q = a[at].im, real = re * p - im * q;
        im = re * q + im * p + (b ? b[at].im : 0);
        re = real + (b ? b[at].re : 0);
        y[at] = {static_cast<Part>(re), static_cast<Part>(im)};
      }
    }
  });
}
void recur_complex(DType dtype, const Layout& s, bool reverse, const void* a, const void* b,
                   void* y) {
  dtype == DType::complex64 ? recur_complex<float>(s, reverse, a, b, y)
                            : recur_complex<double>(s, reverse, a, b, y);
}

// Running sums along the last axis, both parts side by side, in double; as columns they would be
// rows of two elements. They start from -0.0, so that a first -0.0 is kept.
template <class Part>
void sum_complex_rows(const Layout& s, bool reverse, const void* x_in, void* y_out) {
  parallel_ranges(s.outer, kPiece / (s.n + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t first = row * s.n + (reverse ? s.n - 1 : 0), step = reverse ? -1 : 1;
      const auto* x = static_cast<const Complex<Part>*>(x_in) + first;
      auto* y = static_cast<Complex<Part>*>(y_out) + first;
      double re = -0.0, im = -0.0;
      for (int64_t k = 0; k < s.n; ++k, x += step, y += step) {
        re += x->re;
        im += x->im;
        *y = {static_cast<Part>(re), static_cast<Part>(im)};
      }
    }
  });
}

const char* refuses(const Call& call) {
  const DType dtype = call.in[0].dtype;
  if (is_floating(dtype) && size_of(dtype) == 2) return kTooNarrow;
  if (is_floating(dtype) || is_complex(dtype) || size_of(dtype) == sizeof(int64_t)) return nullptr;
  return "integers are scanned in 64 bits";
}
template <ScanKind kind> void set_up(const Call& call, void* problem) {
  *static_cast<ScanProblem*>(problem) = {
      call.in[0].dtype, kind,   call.attributes.flag(1), layout_of(call.in[0], call.attributes[0]),
      nullptr,          nullptr};
}
void bind(void* problem, void* const* at) {
  auto& p = *static_cast<ScanProblem*>(problem);
  p.x = static_cast<const char*>(at[0]);
  p.y = static_cast<char*>(at[1]);
}
void run(const void* problem) {
  ScanProblem p = *static_cast<const ScanProblem*>(problem);
  if (p.layout.outer * p.layout.n * p.layout.inner == 0) return;
  if (is_complex(p.dtype)) {
    if (p.kind == ScanKind::product)
      return recur_complex(p.dtype, p.layout, p.reverse, p.x, nullptr, p.y);
    if (p.layout.are_rows)
      return p.dtype == DType::complex64 ? sum_complex_rows<float>(p.layout, p.reverse, p.x, p.y)
                                         : sum_complex_rows<double>(p.layout, p.reverse, p.x, p.y);
    p.layout.inner *= 2;  // both parts, each for itself
    p.dtype = part_dtype(p.dtype);
  }
  Scan(p).run();
}

// ---- linear recurrences ----

void set_up_recurrence(const Call& call, void* problem) {
  *static_cast<RecurrenceProblem*>(problem) = {call.in[0].dtype,
                                               call.attributes.flag(1),
                                               layout_of(call.in[0], call.attributes[0]),
                                               nullptr,
                                               nullptr,
                                               nullptr};
}
void bind_recurrence(void* problem, void* const* at) {
  auto& p = *static_cast<RecurrenceProblem*>(problem);
  p.a = static_cast<const char*>(at[0]);
  p.b = static_cast<const char*>(at[1]);
  p.y = static_cast<char*>(at[2]);
}
void run_recurrence(const void* problem) {
  const auto& p = *static_cast<const RecurrenceProblem*>(problem);
  const Layout& s = p.layout;
  if (is_complex(p.dtype)) return recur_complex(p.dtype, s, p.reverse, p.a, p.b, p.y);
  const ScanTable& table = *active_kernels().scan;
  const RecurrenceLoop loop = p.dtype == DType::float32 ? table.recurrence32 : table.recurrence64;
  const auto bytes = static_cast<int64_t>(size_of(p.dtype));
  each_strip(s, [&](int64_t start, int64_t columns) {
    const int64_t at = start * bytes;
    loop(s.n, columns, s.inner, p.a + at, p.b + at, p.y + at, p.reverse);
  });
}

// ---- running extremes and their places ----

template <bool largest> void set_up_extremes(const Call& call, void* problem) {
  const Meta& x = call.in[0];
  const int axis = x.rank() ? normalize_axis(call.attributes[0], x.rank(), call.op->name) : 0;
  *static_cast<ExtremesProblem*>(problem) = {x.dtype, largest, layout_of(x, axis),
                                             nullptr, nullptr, nullptr};
}
void bind_extremes(void* problem, void* const* at) {
  auto& p = *static_cast<ExtremesProblem*>(problem);
  p.x = at[0];
  p.y = at[1];
  p.places = static_cast<int64_t*>(at[2]);
}

// Of equal ones the last; a NaN stays, and a later one takes its place.
template <bool largest, class T> bool replaces(T x, T best) {
  return x != x || (best == best && (largest ? x >= best : x <= best));
}
template <bool largest, class T>
void extremes(const Layout& s, int64_t start, int64_t columns, const T* x, T* y, int64_t* places) {
  for (int64_t j = start; j < start + columns; ++j) {
    y[j] = x[j];
    places[j] = 0;
  }
  for (int64_t i = 1; i < s.n; ++i)
    for (int64_t j = start + i * s.inner; j < start + i * s.inner + columns; ++j) {
      const bool better = replaces<largest>(x[j], y[j - s.inner]);
      y[j] = better ? x[j] : y[j - s.inner];
      places[j] = better ? i : places[j - s.inner];
    }
}
// The same with what is best so far in registers.
template <bool largest, class T>
void extremes_of_row(int64_t n, const T* x, T* y, int64_t* places) {
  T best = x[0];
  int64_t place = 0;
  for (int64_t i = 0; i < n; ++i) {
    const bool better = replaces<largest>(x[i], best);
    best = better ? x[i] : best;
    place = better ? i : place;
    y[i] = best;
    places[i] = place;
  }
}
template <bool largest, class T> void run_extremes(const ExtremesProblem& p) {
  const auto* x = static_cast<const T*>(p.x);
  auto* y = static_cast<T*>(p.y);
  each_strip(p.layout, [&](int64_t start, int64_t columns) {
    if (p.layout.are_rows)
      extremes_of_row<largest>(p.layout.n, x + start, y + start, p.places + start);
    else
      extremes<largest>(p.layout, start, columns, x, y, p.places);
  });
}
void run_extremes(const void* problem) {
  const auto& p = *static_cast<const ExtremesProblem*>(problem);
  if (p.layout.n == 0) return;
  visit(p.dtype, [&](auto sample) {
    using T = decltype(sample);
    if constexpr (std::is_arithmetic_v<T>)
      p.largest ? run_extremes<true, T>(p) : run_extremes<false, T>(p);
  });
}
const char* refuses_narrow(const Call& call) {
  const DType dtype = call.in[0].dtype;
  return is_floating(dtype) && size_of(dtype) == 2 ? kTooNarrow : nullptr;
}

}  // namespace

void register_scan_kernels() {
  static constexpr char kHelp[] = "in vectors, float32 in double; rows of sums also by pieces";
  add_kernel<ScanProblem>("running_sum", kHelp,
                          {.refuses = refuses,
                           .set_up = set_up<ScanKind::sum>,
                           .bind = bind,
                           .run = run,
                           .contiguous = 1});
  add_kernel<ScanProblem>("running_product", kHelp,
                          {.refuses = refuses,
                           .set_up = set_up<ScanKind::product>,
                           .bind = bind,
                           .run = run,
                           .contiguous = 1});
  add_kernel<ScanProblem>("running_log_sum", kHelp,
                          {.refuses = refuses,
                           .set_up = set_up<ScanKind::log_sum>,
                           .bind = bind,
                           .run = run,
                           .contiguous = 1});
  add_kernel<RecurrenceProblem>("linear_recurrence", "one after the other, columns in vectors",
                                {.refuses = refuses_narrow,
                                 .set_up = set_up_recurrence,
                                 .bind = bind_recurrence,
                                 .run = run_recurrence,
                                 .contiguous = 3});
  static constexpr char kExtremes[] =
      "one after the other, shared between threads by rows or columns";
  add_kernel<ExtremesProblem>("cummax", kExtremes,
                              {.refuses = refuses_narrow,
                               .set_up = set_up_extremes<true>,
                               .bind = bind_extremes,
                               .run = run_extremes,
                               .contiguous = 1,
                               .name = "sequential"});
  add_kernel<ExtremesProblem>("cummin", kExtremes,
                              {.refuses = refuses_narrow,
                               .set_up = set_up_extremes<false>,
                               .bind = bind_extremes,
                               .run = run_extremes,
                               .contiguous = 1,
                               .name = "sequential"});
}

}  // namespace tw
