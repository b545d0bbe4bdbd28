// Shares normalisation between threads, by sets, and adds up the sums that weights and biases get.
#include "core/cpu/normalization/norm.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/base/thresholds.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/memory/scratch.h"
#include "core/runtime/choice.h"
#include "core/runtime/registry.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

const NormLoops& loops_of(const NormProblem& p) {
  const NormTable& table = *active_kernels().norm;
  return p.dtype == DType::float64 ? table.float64 : table.float32;
}
int64_t bytes_of(const NormProblem& p) { return static_cast<int64_t>(size_of(p.dtype)); }
int64_t rows_of(const NormProblem& p) { return p.outer * p.groups; }
int64_t scales_of(const NormProblem& p) { return p.groups * p.channels; }
int64_t pieces_of(int64_t elements) {
  return elements < thresholds::kGrain ? thresholds::kGrain / (elements + 1) + 1 : 1;
}

// `run`: elements that lie together, which all begin on a cache line where the first does.
bool streams(const NormProblem& p, const void* y, int64_t run) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(y) % 64 == 0 && run * bytes_of(p) % 64 == 0;
  return aligned &&
         rows_of(p) * p.channels * p.inner * bytes_of(p) > thresholds::kRowsStreamBytes &&
         uses(Optimization::streaming_stores);
}

// dweight and dbias from sums of pieces, `step` apart, in their order; those for dbias are `apart`
// from those for dweight.
template <class T>
void add_up(const NormProblem& p, const double* sums, int64_t pieces, int64_t step, int64_t apart) {
  auto *dw = static_cast<T*>(p.dweight), *db = static_cast<T*>(p.dbias);
  for (int64_t i = 0; i < scales_of(p); ++i) {
    double w = 0, b = 0;
    for (int64_t k = 0; k < pieces; ++k) {
      w += sums[k * step + i];
      b += sums[k * step + i + apart];
    }
    dw[i] = static_cast<T>(w);
    db[i] = static_cast<T>(b);
  }
}
void add_up(const NormProblem& p, const double* sums, int64_t pieces, int64_t step, int64_t apart) {
  const auto add = p.dtype == DType::float64 ? add_up<double> : add_up<float>;
  add(p, sums, pieces, step, apart);
}

}  // namespace

void normalize_rows(const NormProblem& p) {
  const NormLoops& loops = loops_of(p);
  const auto loop = p.inner == 1 ? loops.rows : loops.runs;
  const bool stream = streams(p, p.y, p.inner == 1 ? p.channels : p.inner);
  parallel_ranges(rows_of(p), pieces_of(p.channels * p.inner),
                  [&](int64_t begin, int64_t end) { loop(p, begin, end, stream); });
}

void normalize_channels(const NormProblem& p) {
  const NormLoops& loops = loops_of(p);
  if (p.inner == 1)
    return parallel_ranges(p.channels, thresholds::kNormStrip, [&](int64_t begin, int64_t end) {
      loops.columns(p, begin, end, false);
    });
  const bool stream = streams(p, p.y, p.inner);
  parallel_ranges(p.channels, pieces_of(p.outer * p.inner),
                  [&](int64_t begin, int64_t end) { loops.channels(p, begin, end, stream); });
}

namespace {

// A scale an element: pieces of rows have sums of their own, [pieces][2][scales].
void plain_rows_backward(const NormProblem& p) {
  const int64_t rows = rows_of(p), width = 2 * scales_of(p);
  const bool sums = p.dweight, stream = streams(p, p.dx, p.channels);
  const int64_t grain = sums
                            ? std::max(thresholds::kLeastSumRows,
                                       (rows + thresholds::kMostParts - 1) / thresholds::kMostParts)
                            : pieces_of(p.channels);
  const int64_t pieces = (rows + grain - 1) / grain;
  const int64_t own = width * (8 + bytes_of(p));
  const Scratch scratch(sums ? static_cast<std::size_t>(pieces * own) : 0);
  char* const room = scratch.as<char>();
  parallel_ranges(rows, grain, [&](int64_t begin, int64_t end) {
    if (!sums) return loops_of(p).rows_backward(p, begin, end, stream, nullptr, nullptr);
    const int64_t piece = begin / grain;
    char* const of_piece = room + piece * width * 8;
    char* const narrow = room + pieces * width * 8 + piece * width * bytes_of(p);
    std::memset(of_piece, 0, static_cast<std::size_t>(width * 8));
    std::memset(narrow, 0, static_cast<std::size_t>(width * bytes_of(p)));
    loops_of(p).rows_backward(p, begin, end, stream, reinterpret_cast<double*>(of_piece), narrow);
  });
  if (sums) add_up(p, reinterpret_cast<double*>(room), pieces, width, width / 2);
}

}  // namespace

void normalize_rows_backward(const NormProblem& p) {
  if (p.inner == 1) return plain_rows_backward(p);
  const int64_t runs = rows_of(p) * p.channels;
  const Scratch scratch(p.dweight ? static_cast<std::size_t>(2 * runs) * sizeof(double) : 0);
  auto* const sums = p.dweight ? scratch.as<double>() : nullptr;
  const bool stream = streams(p, p.dx, p.inner);
  const NormLoops& loops = loops_of(p);
  parallel_ranges(rows_of(p), pieces_of(p.channels * p.inner), [&](int64_t begin, int64_t end) {
    loops.runs_backward(p, begin, end, stream, sums, nullptr);
  });
  if (sums) add_up(p, sums, p.outer, scales_of(p), runs);
}

void normalize_channels_backward(const NormProblem& p) {
  const NormLoops& loops = loops_of(p);
  const auto loop = p.inner == 1 ? loops.columns_backward : loops.channels_backward;
  const bool stream = p.inner > 1 && streams(p, p.dx, p.inner);
  parallel_ranges(p.channels, p.inner == 1 ? thresholds::kNormStrip : pieces_of(p.outer * p.inner),
                  [&](int64_t begin, int64_t end) { loop(p, begin, end, stream); });
}

namespace {

// ---- the ops' kernels and lowerings ----

const char* refuses(const Call& call) {
  for (int i = 0; i < call.inputs; ++i) {
    if (call.in[i].absent) continue;
    if (call.in[i].dtype != DType::float32 && call.in[i].dtype != DType::float64) return kTooNarrow;
  }
  return nullptr;
}
// Attributes: groups, channels, inner, eps, centered.
void set_up(const Call& call, void* problem) {
  NormProblem& p = *new (problem) NormProblem{};
  const Attributes attributes = call.attributes;
  p.dtype = call.in[0].dtype;
  p.groups = attributes[0];
  p.channels = attributes[1];
  p.inner = attributes[2];
  p.eps = attributes.real(3);
  p.centered = attributes.flag(4);
  const int64_t of_place = p.groups * p.channels * p.inner;
  p.outer = of_place ? call.in[0].count / of_place : 0;
}
template <bool of_channels> void bind(void* problem, void* const* at) {
  NormProblem& p = *static_cast<NormProblem*>(problem);
  p.x = at[0];
  p.weight = at[1];
  p.bias = at[2];
  p.y = at[3];
  p.mean = at[4];
  p.rstd = at[5];
  if (of_channels) p.variance = at[6];
}
void set_up_backward(const Call& call, void* problem) {
  set_up(call, problem);
  static_cast<NormProblem*>(problem)->affine = call.attributes.flag(5);
}
void bind_backward(void* problem, void* const* at) {
  NormProblem& p = *static_cast<NormProblem*>(problem);
  p.g = at[0];
  p.x = at[1];
  p.mean = at[2];
  p.rstd = at[3];
  p.weight = at[4];
  p.dx = at[5];
  p.dweight = p.affine ? at[6] : nullptr;
  p.dbias = p.affine ? at[7] : nullptr;
}
double cost_ns(const void* problem) {
  const auto& p = *static_cast<const NormProblem*>(problem);
  constexpr double elements_per_ns = 2;
  return 100 + static_cast<double>(p.outer * p.groups * p.channels * p.inner) / elements_per_ns;
}
template <void (*op)(const NormProblem&)> void run(const void* problem) {
  op(*static_cast<const NormProblem*>(problem));
}
constexpr char kHelp[] = "mean, variance about it, scaling; a set stays in cache";
constexpr char kBackwardHelp[] = "two sums and a scaled difference; a set stays in cache";

}  // namespace

void register_norm_kernels() {
  add_kernel<NormProblem>("normalize_rows", kHelp,
                          {.refuses = refuses,
                           .set_up = set_up,
                           .bind = bind<false>,
                           .cost_ns = cost_ns,
                           .run = run<normalize_rows>,
                           .contiguous = 7});
  add_kernel<NormProblem>("normalize_channels", kHelp,
                          {.refuses = refuses,
                           .set_up = set_up,
                           .bind = bind<true>,
                           .cost_ns = cost_ns,
                           .run = run<normalize_channels>,
                           .contiguous = 7});
  add_kernel<NormProblem>("normalize_rows_backward", kBackwardHelp,
                          {.refuses = refuses,
                           .set_up = set_up_backward,
                           .bind = bind_backward,
                           .cost_ns = cost_ns,
                           .run = run<normalize_rows_backward>,
                           .contiguous = 31});
  add_kernel<NormProblem>("normalize_channels_backward", kBackwardHelp,
                          {.refuses = refuses,
                           .set_up = set_up_backward,
                           .bind = bind_backward,
                           .cost_ns = cost_ns,
                           .run = run<normalize_channels_backward>,
                           .contiguous = 31});
}

}  // namespace tw
