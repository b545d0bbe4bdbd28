// Shares softmax and its relatives between threads, by rows or by strips of columns.
#include "core/cpu/normalization/softmax.h"

#include <algorithm>
#include <new>

#include "core/base/error.h"

#include "core/base/thresholds.h"
#include "core/cpu/copy/convert.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/reduce/axes.h"
#include "core/memory/scratch.h"
#include "core/runtime/choice.h"
#include "core/runtime/registry.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

const SoftmaxLoops& loops_of(DType dtype) {
  const SoftmaxTable& table = *active_kernels().softmax;
  return dtype == DType::float64 ? table.float64 : table.float32;
}

int64_t pieces_of(int64_t n) {
  return n < thresholds::kGrain ? thresholds::kGrain / (n + 1) + 1 : 1;
}

struct Span {
  int64_t start, group;  // first element of [outer, n, inner], and of [outer, inner]
  int64_t count;         // rows, or columns of the strip
};
// Calls body for strips of columns, `wide` of them at most.
template <class F> void each_strip(const SoftmaxShape& s, int64_t wide, F&& body) {
  const int64_t strips = (s.inner + wide - 1) / wide;
  parallel_ranges(s.outer * strips, pieces_of(s.n * wide), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t outer = i / strips, at = i % strips * wide;
      const int64_t count = std::min(s.inner - at, wide);
      body(Span{outer * s.n * s.inner + at, outer * s.inner + at, count});
    }
  });
}
// Calls body for runs of rows or strips of columns.
template <class F> void each_span(const SoftmaxShape& s, F&& body) {
  if (s.are_rows)
    return parallel_ranges(s.outer, pieces_of(s.n), [&](int64_t begin, int64_t end) {
      body(Span{begin * s.n, begin, end - begin});
    });
  if (s.inner > thresholds::kStrip && !uses(Optimization::strip_mining))
    return each_strip(s, s.inner, body);
  const bool whole = s.inner <= thresholds::kWideStrip && s.outer >= num_threads();
  each_strip(s,
             std::clamp<int64_t>(s.inner, 1, whole ? thresholds::kWideStrip : thresholds::kStrip),
             body);
}

struct Elements {
  explicit Elements(DType dtype) : bytes(size_of(dtype)) {}
  const void* at(const void* p, int64_t i) const { return static_cast<const char*>(p) + i * bytes; }
  void* at(void* p, int64_t i) const { return static_cast<char*>(p) + i * bytes; }
  int64_t bytes;
};

// Short rows, and few columns beside each other, are of less use to vectors than many of their
// planes [n, inner] side by side: these are transposed in a buffer, so that each is a column of it.
// The order of terms then follows from the number of planes.
bool is_transposed(const SoftmaxShape& s) {
  const bool narrow = s.are_rows ? s.n <= thresholds::kNarrow : s.inner < thresholds::kNarrow;
  const int64_t plane = s.n * s.inner;
  return narrow && plane > 0 && plane <= thresholds::kMostTransposed &&
         s.outer >= thresholds::kNarrow && !is_batch_invariant() &&
         uses(Optimization::short_rows_as_columns);
}
// Planes that are transposed together: the buffer is 32 KiB of float32 for those of up to 512
// elements.
int64_t transposed_at_once(const SoftmaxShape& s) {
  return std::clamp<int64_t>(thresholds::kLoneStageBytes / (s.n * s.inner), 16, 512);
}
// body(first, planes, buffer): the buffer has room for so many elements a plane.
template <class F> void each_transposed(const SoftmaxShape& s, int64_t elements, F&& body) {
  const int64_t most = transposed_at_once(s);
  parallel_ranges(s.outer, pieces_of(s.n * s.inner), [&](int64_t begin, int64_t end) {
    const Scratch buffer(static_cast<std::size_t>(most * elements) * size_of(s.dtype));
    for (int64_t i = begin; i < end; i += most) body(i, std::min(most, end - i), buffer.as<void>());
  });
}
// y[j][i] = x[i][j].
void transpose(DType dtype, int64_t rows, int64_t columns, const void* x, void* y) {
  const auto bytes = static_cast<int64_t>(size_of(dtype));
  const int power = dtype == DType::float64 ? 3 : 2;
  active_kernels().convert->transpose[power](rows, columns, x, columns * bytes, y, rows * bytes,
                                             false);
}

// Numbers of 16 bits are computed in float32: rows that fit pass through a buffer in the
// first-level cache, longer ones through one of their own.
constexpr int64_t kStaged = thresholds::kHalfL1Bytes / int64_t(sizeof(float));
bool is_narrow(DType dtype) { return is_floating(dtype) && size_of(dtype) == 2; }
// row(rows, from, to).
template <class Row> void rows_staged(const SoftmaxShape& s, const void* x, void* y, Row row) {
  const Elements e(s.dtype);
  const int64_t together = std::max<int64_t>(kStaged / s.n, 1);
  parallel_ranges(s.outer, pieces_of(s.n), [&](int64_t begin, int64_t end) {
    const Scratch buffer(static_cast<std::size_t>(together * s.n) * sizeof(float));
    auto* const rows = buffer.as<float>();
    for (int64_t i = begin; i < end; i += together) {
      const int64_t m = std::min(together, end - i), n = m * s.n;
      convert_elements(s.dtype, DType::float32, n, e.at(x, i * s.n), 2, rows, 4);
      row(m, rows, rows);
      convert_elements(DType::float32, s.dtype, n, rows, 4, e.at(y, i * s.n), 2);
    }
  });
}

// Columns in strips of all their rows, of about the same width each. Rows of a strip are converted
// one by one, which narrower ones would not be worth; few columns are one strip.
bool are_staged_columns(const SoftmaxShape& s) {
  return s.n * std::min(s.inner, thresholds::kLeastStagedColumns) <= thresholds::kLongestStaged;
}
// column(columns, apart, from, to).
template <class Column>
void columns_staged(const SoftmaxShape& s, const void* x, void* y, Column column) {
  const Elements e(s.dtype);
  const int64_t most = std::max(thresholds::kStagedStrip / s.n, thresholds::kLeastStagedColumns);
  const int64_t strips = std::max<int64_t>((s.inner + most - 1) / most, 1);
  const int64_t even = std::max<int64_t>((s.inner + strips - 1) / strips, 1);
  const int64_t wide = strips > 1 ? (even + 15) / 16 * 16 : even;
  const auto& convert = active_kernels().convert->convert;
  const auto narrow = index_of(s.dtype), single = index_of(DType::float32);
  const ConvertFunction widened = convert[narrow][single], narrowed = convert[single][narrow];
  each_strip(s, wide, [&](Span span) {
    const int64_t elements = s.n * span.count;
    // In place, but for rows that end amid a vector: their masked stores would delay the next
    // loads.
    const bool apart = span.count * sizeof(float) % 64 != 0;
    const Scratch buffer(static_cast<std::size_t>(elements * (1 + apart)) * sizeof(float));
    auto* const from = buffer.as<float>();
    auto* const to = apart ? from + elements : from;
    const bool whole = span.count == s.inner;
    const int64_t rows = whole ? 1 : s.n, length = whole ? elements : span.count;
    for (int64_t i = 0; i < rows; ++i)
      widened(length, e.at(x, span.start + i * s.inner), 2, from + i * length, 4);
    column(span.count, span.count, from, to);
    for (int64_t i = 0; i < rows; ++i)
      narrowed(length, to + i * length, 4, e.at(y, span.start + i * s.inner), 2);
  });
}

// row(rows, from, slopes, to, stream) and column(columns, apart, from, slopes, to), whose rows are
// so far apart; slopes are null or one a group, as results are if `grouped`.
template <class Row, class Column> void forward(const SoftmaxShape& s, const void* x,
                                                const void* slopes, void* y, bool grouped, Row row,
                                                Column column) {
  const Elements e(s.dtype);
  if (is_transposed(s)) {
    const int64_t plane = s.n * s.inner;
    return each_transposed(s, plane + s.inner, [&](int64_t first, int64_t m, void* buffer) {
      const int64_t groups = m * s.inner;
      void* const of_groups = e.at(buffer, m * plane);
      transpose(s.dtype, m, plane, e.at(x, first * plane), buffer);
      if (slopes) transpose(s.dtype, m, s.inner, e.at(slopes, first * s.inner), of_groups);
      column(groups, groups, buffer, slopes ? of_groups : nullptr, grouped ? of_groups : buffer);
      if (grouped)
        transpose(s.dtype, s.inner, m, of_groups, e.at(y, first * s.inner));
      else
        transpose(s.dtype, plane, m, buffer, e.at(y, first * plane));
    });
  }
  if (is_narrow(s.dtype) && !s.are_rows)
    return columns_staged(s, x, y, [&](int64_t columns, int64_t apart, float* from, float* to) {
      column(columns, apart, from, nullptr, to);
    });
  if (is_narrow(s.dtype))
    return rows_staged(s, x, y, [&](int64_t rows, const void* from, void* to) {
      row(rows, from, nullptr, to, false);
    });
  const bool aligned =
      reinterpret_cast<std::uintptr_t>(y) % 64 == 0 && s.n * e.bytes % 64 == 0 && x != y;
  const bool stream = aligned && s.outer * s.n * e.bytes > thresholds::kRowsStreamBytes &&
                      uses(Optimization::streaming_stores);
  each_span(s, [&](Span span) {
    const void* from = e.at(x, span.start);
    const void* own = slopes ? e.at(slopes, span.group) : nullptr;
    void* to = e.at(y, grouped ? span.group : span.start);
    if (s.are_rows)
      row(span.count, from, own, to, stream);
    else
      column(span.count, s.inner, from, own, to);
  });
}
void forward(const SoftmaxShape& s, const void* x, void* y, bool grouped, SoftmaxLoops::Row row,
             SoftmaxLoops::Column column) {
  forward(
      s, x, nullptr, y, grouped,
      [&](int64_t rows, const void* from, const void*, void* to, bool stream) {
        row(rows, s.n, from, to, stream);
      },
      [&](int64_t columns, int64_t apart, const void* from, const void*, void* to) {
        column(s.n, columns, apart, from, to);
      });
}
void scaled_softmax(const SoftmaxShape& s, const void* x, const void* slopes, void* y) {
  const SoftmaxLoops& loops = loops_of(s.dtype);
  forward(
      s, x, slopes, y, false,
      [&](int64_t rows, const void* from, const void* own, void* to, bool stream) {
        loops.softmax(rows, s.n, from, own, to, stream);
      },
      [&](int64_t columns, int64_t apart, const void* from, const void* own, void* to) {
        loops.softmax_columns(s.n, columns, apart, from, own, to);
      });
}
void backward(const SoftmaxShape& s, const void* y, const void* g, bool repeated, void* dx,
              SoftmaxLoops::RowBackward row, SoftmaxLoops::ColumnBackward column) {
  const Elements e(s.dtype);
  const bool transposed = is_transposed(s);
  const int64_t length = transposed   ? transposed_at_once(s) * s.inner
                         : s.are_rows ? s.n
                                      : std::min(s.inner, thresholds::kWideStrip);
  const Scratch one_row(repeated ? static_cast<std::size_t>(length * e.bytes) : 0);
  if (repeated && s.dtype == DType::float64)
    std::fill_n(one_row.as<double>(), length, *static_cast<const double*>(g));
  else if (repeated)
    std::fill_n(one_row.as<float>(), length, *static_cast<const float*>(g));
  if (transposed) {
    const int64_t plane = s.n * s.inner;
    return each_transposed(s, 2 * plane, [&](int64_t first, int64_t m, void* buffer) {
      void* const gs = e.at(buffer, m * plane);
      transpose(s.dtype, m, plane, e.at(y, first * plane), buffer);
      if (!repeated) transpose(s.dtype, m, plane, e.at(g, first * plane), gs);
      const int64_t groups = m * s.inner;
      column(s.n, groups, groups, buffer, repeated ? one_row.as<void>() : gs, repeated, buffer);
      transpose(s.dtype, plane, m, buffer, e.at(dx, first * plane));
    });
  }
  each_span(s, [&](Span span) {
    const void* ys = e.at(y, span.start);
    const void* gs = repeated ? one_row.as<void>() : e.at(g, span.start);
    void* ds = e.at(dx, span.start);
    if (s.are_rows)
      row(span.count, s.n, ys, gs, repeated, ds);
    else
      column(s.n, span.count, s.inner, ys, gs, repeated, ds);
  });
}

template <class T> void losses(const CrossEntropyProblem& p, const T* norms, T* loss) {
  const T* x = static_cast<const T*>(p.x);
  for (int64_t i = 0; i < p.rows; ++i) {
    const int64_t target = p.targets[i];
    const T top = norms[2 * i], log_sum = norms[2 * i + 1];
    loss[i] = target == p.ignore_index ? 0 : log_sum - (x[i * p.classes + target] - top);
  }
}

}  // namespace

void softmax(const SoftmaxShape& s, const void* x, void* y) { scaled_softmax(s, x, nullptr, y); }
void log_softmax(const SoftmaxShape& s, const void* x, void* y) {
  const SoftmaxLoops& loops = loops_of(s.dtype);
  forward(s, x, y, false, loops.log_softmax, loops.log_softmax_columns);
}
void logsumexp(const SoftmaxShape& s, const void* x, void* y) {
  const SoftmaxLoops& loops = loops_of(s.dtype);
  forward(s, x, y, true, loops.logsumexp, loops.logsumexp_columns);
}
void logsumexp_backward(const SoftmaxShape& s, const void* x, const void* g, void* dx) {
  scaled_softmax(s, x, g, dx);
}
void softmax_backward(const SoftmaxShape& s, const void* y, const void* g, bool repeated,
                      void* dx) {
  const SoftmaxLoops& loops = loops_of(s.dtype);
  backward(s, y, g, repeated, dx, loops.softmax_backward, loops.softmax_backward_columns);
}
void log_softmax_backward(const SoftmaxShape& s, const void* y, const void* g, bool repeated,
                          void* dx) {
  const SoftmaxLoops& loops = loops_of(s.dtype);
  backward(s, y, g, repeated, dx, loops.log_softmax_backward, loops.log_softmax_backward_columns);
}

void check_targets(const CrossEntropyProblem& p) {
  for (int64_t i = 0; i < p.rows; ++i) {
    const int64_t target = p.targets[i];
    if ((target < 0 || target >= p.classes) && target != p.ignore_index)
      fail(ErrorKind::index, "cross_entropy: target ", target, " in row ", i,
           " is out of range for ", p.classes, " classes");
  }
}
void cross_entropy(const CrossEntropyProblem& p, void* loss, void* norms) {
  const SoftmaxLoops& loops = loops_of(p.dtype);
  const auto bytes = static_cast<int64_t>(size_of(p.dtype));
  parallel_ranges(p.rows, pieces_of(p.classes), [&](int64_t begin, int64_t end) {
    loops.cross_entropy_norms(end - begin, p.classes,
                              static_cast<const char*>(p.x) + begin * p.classes * bytes,
                              static_cast<char*>(norms) + 2 * begin * bytes);
  });
  if (p.dtype == DType::float64)
    losses(p, static_cast<const double*>(norms), static_cast<double*>(loss));
  else
    losses(p, static_cast<const float*>(norms), static_cast<float*>(loss));
}
void cross_entropy_backward(const CrossEntropyProblem& p, const void* norms, const void* g,
                            int64_t g_step, void* dx) {
  const SoftmaxLoops& loops = loops_of(p.dtype);
  parallel_ranges(p.rows, pieces_of(p.classes), [&](int64_t begin, int64_t end) {
    loops.cross_entropy_backward(p, begin, end, norms, g, g_step, dx);
  });
}

namespace {

// ---- the ops' kernels and lowerings ----

using Problem = SoftmaxProblem;

// Along axes that are neighbours.
SoftmaxShape shape_of(const Meta& x, std::uint32_t reduced) {
  AxisGroups axes;
  axes.split(*x.shape, reduced);
  return {x.dtype, axes.outer, axes.n, axes.inner, axes.are_rows};
}
std::uint32_t reduced_by(const Call& call) {
  const int rank = call.in[0].rank();
  return 1u << (rank ? normalize_axis(call.attributes[0], rank, call.op->name) : 0);
}
const char* refuses(const Call& call) {
  for (int i = 0; i < call.inputs; ++i) {
    if (is_complex(call.in[i].dtype)) return "no kernel for complex numbers";
    if (call.in[i].dtype != DType::float32 && call.in[i].dtype != DType::float64) return kTooNarrow;
  }
  return nullptr;
}
// Numbers of 16 bits besides, where a buffer holds them.
const char* refuses_values(const Call& call) {
  if (!is_narrow(call.in[0].dtype)) return refuses(call);
  const SoftmaxShape s = shape_of(call.in[0], reduced_by(call));
  const bool fit = s.are_rows ? s.n <= thresholds::kLongestStaged : are_staged_columns(s);
  return s.n > 0 && fit && !is_transposed(s) ? nullptr : kTooNarrow;
}
void set_shape(void* problem, const Meta& x, std::uint32_t reduced) {
  static_cast<Problem*>(problem)->shape = shape_of(x, reduced);
}
void set_up(const Call& call, void* problem) { set_shape(problem, call.in[0], reduced_by(call)); }
// The gradient of a sum of the results comes as one element.
bool is_one_element(const Meta& g) {
  bool still = g.count > 0 && !g.contiguous;
  for (int axis = 0; axis < g.rank() && still; ++axis)
    still = (*g.strides)[axis] == 0 || g.size(axis) == 1;
  return still;
}
std::uint32_t copies_of_gradient(const Call& call) {
  const Meta& g = call.in[1];
  return g.contiguous || is_one_element(g) ? 0 : 1u << 1;
}
void set_up_backward(const Call& call, void* problem) {
  set_up(call, problem);
  static_cast<Problem*>(problem)->repeated = is_one_element(call.in[1]);
}
// Along axes that are neighbours: as along one. A long row alone is shared between threads by the
// ops of the body.
const char* refuses_axes(const Call& call) {
  if (const char* why = refuses(call)) return why;
  const Meta& x = call.in[0];
  AxisGroups axes;
  if (!axes.split(*x.shape, call.attributes.axes(0, x.rank(), call.op->name)))
    return "axes that are no neighbours are moved by copies";
  const bool few = axes.outer * axes.inner < thresholds::kFewGroups || is_batch_invariant();
  const bool alone = few && axes.n > thresholds::kLongGroup;
  return alone ? "few long rows are shared between threads by other ops" : nullptr;
}
void set_up_axes(const Call& call, void* problem) {
  const Meta& x = call.in[0];
  set_shape(problem, x, call.attributes.axes(0, x.rank(), call.op->name));
}
template <int arrays> void bind(void* problem, void* const* at) {
  for (int i = 0; i < arrays; ++i) static_cast<Problem*>(problem)->at[i] = at[i];
}
double cost_ns(const void* problem) {
  const SoftmaxShape& s = static_cast<const Problem*>(problem)->shape;
  constexpr double elements_per_ns = 2;
  return 100 + double(s.outer) * s.n * s.inner / elements_per_ns;
}
template <void (*op)(const SoftmaxShape&, const void*, void*)> void run(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  op(p.shape, p.at[0], p.at[1]);
}
template <void (*op)(const SoftmaxShape&, const void*, const void*, void*)>
void run(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  op(p.shape, p.at[0], p.at[1], p.at[2]);
}
template <void (*op)(const SoftmaxShape&, const void*, const void*, bool, void*)>
void run(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  op(p.shape, p.at[0], p.at[1], p.repeated, p.at[2]);
}
constexpr char kHelp[] = "maximum, sum of exponentials, scaling; a row stays in cache";
constexpr char kBackwardHelp[] = "a sum and a scaled difference; a row stays in cache";

LossProblem& fresh(const Call& call, void* problem) {
  LossProblem& p = *new (problem) LossProblem{};
  const Meta& x = call.in[0];
  p.rows = {x.dtype, x.size(0), x.size(1), nullptr, nullptr, call.attributes[0]};
  return p;
}
void set_up_losses(const Call& call, void* problem) { fresh(call, problem); }
void bind_losses(void* problem, void* const* at) {
  LossProblem& p = *static_cast<LossProblem*>(problem);
  p.rows.x = at[0];
  p.rows.targets = static_cast<const int64_t*>(at[1]);
  p.loss = at[2];
  p.norms_out = at[3];
  p.counted = at[4];
}
void run_losses(const void* problem) {
  const auto& p = *static_cast<const LossProblem*>(problem);
  check_targets(p.rows);
  cross_entropy(p.rows, p.loss, p.norms_out);
  const int64_t ignored =
      std::count(p.rows.targets, p.rows.targets + p.rows.rows, p.rows.ignore_index);
  const auto counted = static_cast<double>(p.rows.rows - ignored);
  if (p.rows.dtype == DType::float64)
    *static_cast<double*>(p.counted) = counted;
  else
    *static_cast<float*>(p.counted) = static_cast<float>(counted);
}
// One gradient for all rows, or one for each.
std::uint32_t copies_of_losses(const Call& call) {
  const Meta& g = call.in[3];
  return g.contiguous || (*g.strides)[0] == 0 ? 0 : 1u << 3;
}
void set_up_losses_backward(const Call& call, void* problem) {
  fresh(call, problem).g_step = (*call.in[3].strides)[0] != 0;
}
void bind_losses_backward(void* problem, void* const* at) {
  LossProblem& p = *static_cast<LossProblem*>(problem);
  p.rows.x = at[0];
  p.rows.targets = static_cast<const int64_t*>(at[1]);
  p.norms = at[2];
  p.g = at[3];
  p.dx = at[4];
}
void run_losses_backward(const void* problem) {
  const auto& p = *static_cast<const LossProblem*>(problem);
  cross_entropy_backward(p.rows, p.norms, p.g, p.g_step, p.dx);
}

}  // namespace

void register_softmax_kernels() {
  add_kernel<LossProblem>(
      "cross_entropy_rows", kHelp,
      {.set_up = set_up_losses, .bind = bind_losses, .run = run_losses, .contiguous = 3});
  add_kernel<LossProblem>("cross_entropy_rows_backward", kBackwardHelp,
                          {.set_up = set_up_losses_backward,
                           .bind = bind_losses_backward,
                           .run = run_losses_backward,
                           .contiguous = 7})
      .copies = copies_of_losses;
  add_kernel<Problem>("softmax", kHelp,
                      {.refuses = refuses_values,
                       .set_up = set_up,
                       .bind = bind<2>,
                       .cost_ns = cost_ns,
                       .run = run<softmax>,
                       .contiguous = 1})
      .widens_recorded = true;
  add_kernel<Problem>("log_softmax", kHelp,
                      {.refuses = refuses_values,
                       .set_up = set_up,
                       .bind = bind<2>,
                       .cost_ns = cost_ns,
                       .run = run<log_softmax>,
                       .contiguous = 1})
      .widens_recorded = true;
  add_kernel<Problem>("logsumexp_along", kHelp,
                      {.refuses = refuses_axes,
                       .set_up = set_up_axes,
                       .bind = bind<2>,
                       .cost_ns = cost_ns,
                       .run = run<logsumexp>,
                       .contiguous = 1});
  add_kernel<Problem>("logsumexp_backward", kHelp,
                      {.refuses = refuses_axes,
                       .set_up = set_up_axes,
                       .bind = bind<3>,
                       .cost_ns = cost_ns,
                       .run = run<logsumexp_backward>,
                       .contiguous = 3});
  add_kernel<Problem>("softmax_backward", kBackwardHelp,
                      {.refuses = refuses,
                       .set_up = set_up_backward,
                       .bind = bind<3>,
                       .cost_ns = cost_ns,
                       .run = run<softmax_backward>,
                       .contiguous = 1})
      .copies = copies_of_gradient;
  add_kernel<Problem>("log_softmax_backward", kBackwardHelp,
                      {.refuses = refuses,
                       .set_up = set_up_backward,
                       .bind = bind<3>,
                       .cost_ns = cost_ns,
                       .run = run<log_softmax_backward>,
                       .contiguous = 1})
      .copies = copies_of_gradient;
}

}  // namespace tw
