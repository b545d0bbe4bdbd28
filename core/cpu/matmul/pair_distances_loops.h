// Distances of all rows of one matrix from all rows of another, and their gradients: a tile of the
// result stays in registers while terms are added to it, as in a product of matrices, but each term
// comes from a difference, so that nothing cancels and no array of differences is made.
#pragma once
#include <cstdint>

#include "core/cpu/matmul/pair_distances.h"

namespace tw {

// Rows [first, past) and columns from `column` on, as many as a tile has, of the result of a batch.
struct PairPiece {
  std::int64_t batch, first, past, column;
};

struct PairDistancesTable {
  // `scratch` has room for scratch_bytes(rows) of the piece.
  using Piece = void (*)(const PairProblem& problem, const PairPiece& piece, void* scratch);
  struct Loops {
    Piece distances[kMetrics];
    Piece gradients[kMetrics];  // of magnitudes, squares and powers
    std::int64_t tile_columns;
    std::int64_t (*scratch_bytes)(std::int64_t rows);
  };
  Loops float32, float64;
};

}  // namespace tw

#ifdef TW_ISA_NAME  // ---- the loops, once for each instruction set ----
#include "core/cpu/simd/widen.h"
#include "core/cpu/math/functions.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

// A tile's width: with 32 registers 6 x 4 sums, with 16 registers 6 x 2, leave room for one term of
// each column, one of a row, and a difference. Gradients hold the rows' own elements as well.
inline constexpr int kTileVectors = kRegisters / 8;
inline constexpr int kTileRows = 6, kGradientRows = 3;

// Terms of the columns of a tile that lie in the L1 cache while all rows of a piece go by: sums of
// runs of 16, which lose few digits, are added up in T, and those of more terms in double.
inline constexpr int64_t kTerms = 128, kRun = 16;

// ---- metrics: how a term joins the sum, what the sums of two blocks become, and the distance ----

struct Count {
  template <class T> static TW_INLINE Vec<T> join(Vec<T> sum, Vec<T> d, Vec<T>) {
    return sum + where(d == 0, 0, where(d == d, 1, d));
  }
  template <class T> static TW_INLINE Vec<T> carry(Vec<T> a, Vec<T> b) { return a + b; }
  template <class T> static TW_INLINE Vec<T> distance(Vec<T> sum, T) { return sum; }
};
struct Magnitudes {
  template <class T> static TW_INLINE Vec<T> join(Vec<T> sum, Vec<T> d, Vec<T>) {
    return sum + abs(d);
  }
  template <class T> static TW_INLINE Vec<T> slope(Vec<T> d, Vec<T>) { return sign(d); }
  template <class T> static TW_INLINE Vec<T> carry(Vec<T> a, Vec<T> b) { return a + b; }
  template <class T> static TW_INLINE Vec<T> distance(Vec<T> sum, T) { return sum; }
};
struct Squares {
  template <class T> static TW_INLINE Vec<T> join(Vec<T> sum, Vec<T> d, Vec<T>) {
    return fma(d, d, sum);
  }
  template <class T> static TW_INLINE Vec<T> slope(Vec<T> d, Vec<T>) { return d; }
  template <class T> static TW_INLINE Vec<T> carry(Vec<T> a, Vec<T> b) { return a + b; }
  template <class T> static TW_INLINE Vec<T> distance(Vec<T> sum, T) { return sqrt(sum); }
};
struct Largest {
  template <class T> static TW_INLINE Vec<T> join(Vec<T> best, Vec<T> d, Vec<T>) {
    return maximum(best, abs(d));
  }
  template <class T> static TW_INLINE Vec<T> carry(Vec<T> a, Vec<T> b) { return maximum(a, b); }
  template <class T> static TW_INLINE Vec<T> distance(Vec<T> best, T) { return best; }
};
struct Powers {
  template <class T> static TW_INLINE Vec<T> join(Vec<T> sum, Vec<T> d, Vec<T> p) {
    return sum + pow(abs(d), p);
  }
  template <class T> static TW_INLINE Vec<T> slope(Vec<T> d, Vec<T> p) {
    return where(d == 0, 0, sign(d) * pow(abs(d), p - 1));
  }
  template <class T> static TW_INLINE Vec<T> carry(Vec<T> a, Vec<T> b) { return a + b; }
  template <class T> static TW_INLINE Vec<T> distance(Vec<T> sum, T p) {
    return pow(sum, Vec<T>(1 / p));
  }
};

// Code that is long for each vector gains nothing from a tile.
template <class M> inline constexpr bool kLong = std::is_same_v<M, Powers>;

// ---- what a tile computes ----

template <class M> struct Distance {
  using Of = M;
  static constexpr bool gradient = false;
  template <class T> static TW_INLINE Vec<T> carry(Vec<T> a, Vec<T> b) { return M::carry(a, b); }
  static constexpr int rows = kLong<M> ? 1 : kTileRows, vectors = kLong<M> ? 1 : kTileVectors;
};
template <class M> struct Gradient {
  using Of = M;
  static constexpr bool gradient = true;
  template <class T> static TW_INLINE Vec<T> carry(Vec<T> a, Vec<T> b) { return a + b; }
  static constexpr int rows = kLong<M> ? 1 : kGradientRows, vectors = kLong<M> ? 1 : kTileVectors;
};

// The tile's side: pointers to row 0 of the tile, and to column 0.
template <class T> struct Side {
  const T* row;        // of x1, or of w: one element a term
  int64_t row_stride;  // between rows of the above
  const T* panel;      // terms of the columns: `panel_stride` elements a term
  int64_t panel_stride;
  const T* own;  // gradients: x1, elements of the tile's columns
  int64_t own_stride;
  double* totals;  // of earlier blocks, `panel_stride` a row; null where this block is the only one
  T* y;
  int64_t row_step, column_step;
  int64_t terms;
  T p;
  bool first, last;
  // Distances: row 0 of the tile and column 0 whole, of k terms, to find lost ones again.
  const T *row_terms, *column_terms;
  int64_t k;
};

// Sums of powers that have lost nothing to overflow and underflow, which float32's do below 2^-75.
template <class T> inline constexpr T kLeastPowers = sizeof(T) == 4 ? (T)1e-30 : (T)1e-290;
template <class M> inline constexpr bool kHasPowers =
    std::is_same_v<M, Squares> || std::is_same_v<M, Powers>;
template <class M, class T> double plus_term(double sum, double size, T p) {
  return std::is_same_v<M, Squares> ? fma(size, size, sum) : sum + __builtin_pow(size, (double)p);
}
// The distance of two rows by their differences over the largest one; y, where that is no number
// to divide by.
template <class M, class T>
[[gnu::noinline]] T scaled_distance(int64_t k, const T* a, const T* b, T p, T y) {
  double top = 0, sum = 0;
  const auto size = [=](int64_t i) { return __builtin_fabs((double)a[i] - (double)b[i]); };
  for (int64_t i = 0; i < k; ++i) top = size(i) <= top || top != top ? top : size(i);
  if (!(top > 0 && top < __builtin_inf())) return y;
  for (int64_t i = 0; i < k; ++i) sum = plus_term<M>(sum, size(i) / top, p);
  return (T)(top * (std::is_same_v<M, Squares> ? __builtin_sqrt(sum)
                                               : __builtin_pow(sum, 1 / (double)p)));
}

// One vector of a tile's sums on its way to the result.
template <class Op, class T>
TW_INLINE void finish_vector(const Side<T>& s, T* part, double* total, int count, T* y) {
  using M = typename Op::Of;
  constexpr int L = kLanes<T>, D = kLanes<double>;
  for (int i = 0; total && i < L; i += D) {
    Vec<double> wide = load_wider<double>(part + i, D);
    if (!s.first) {
      const Vec<double> before = Vec<double>::load(total + i);
      wide = Op::carry(before, wide);
    }
    wide.store(total + i);
    if (s.last) store_narrower(part + i, wide, D);
  }
  if (!s.last) return;
  Vec<T> sum = Vec<T>::load(part);
  if constexpr (!Op::gradient) sum = M::distance(sum, s.p);
  if (s.column_step == 1)
    store_some(y, sum, count);
  else
    for (int i = 0; i < count; ++i) y[i * s.column_step] = sum[i];
}
// Those of a row's distances whose powers left the range, from columns `at` on.
template <class Op, class T>
TW_INLINE void find_lost(const Side<T>& s, const T* part, int row, int64_t at, int count, T* y) {
  using M = typename Op::Of;
  const Vec<T> sum = Vec<T>::load(part);
  const auto safe = (sum >= kLeastPowers<T>)&(sum < (T)__builtin_inf());
  if (!any(!safe)) [[likely]]
    return;
  for (int i = 0; i < count; ++i)
    if (!(part[i] >= kLeastPowers<T> && part[i] < (T)__builtin_inf()))
      y[i * s.column_step] = scaled_distance<M>(
          s.k, s.row_terms + row * s.k, s.column_terms + (at + i) * s.k, s.p, y[i * s.column_step]);
}
// Through memory, and out of line, as GCC else keeps the sums there while terms are added to them.
template <class Op, class T>
[[gnu::noinline]] void finish(const Side<T>& s, int rows, int64_t columns, T* sums, int stride) {
  for (int r = 0; r < rows; ++r)
    each_vector<T>(columns, [&](int64_t at, int count) TW_LAMBDA_INLINE {
      T *const part = sums + r * stride + at, *const y = s.y + r * s.row_step + at * s.column_step;
      finish_vector<Op>(s, part, s.totals ? s.totals + r * s.panel_stride + at : nullptr, count, y);
      if constexpr (!Op::gradient && kHasPowers<typename Op::Of>)
        if (s.last) find_lost<Op>(s, part, r, at, count, y);
    });
}

template <class Op, class T, int R, int V> TW_INLINE void tile(const Side<T>& s, int64_t columns) {
  using M = typename Op::Of;
  using Raw = typename Vec<T>::Raw;
  constexpr int L = kLanes<T>;
  const Vec<T> p = s.p;
  Raw own[Op::gradient ? R : 1][V];
  if constexpr (Op::gradient)
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v)
        own[r][v] = load_some(s.own + r * s.own_stride + v * L,
                              columns - v * L < L ? (int)(columns - v * L) : L)
                        .v;
  alignas(64) T stored[R * V * L];
  const T *row = s.row, *panel = s.panel;
  const int64_t row_stride = s.row_stride, panel_stride = s.panel_stride;
  for (int64_t done = 0; done == 0 || done < s.terms; done += kRun) {
    Raw sums[R][V] = {};
#pragma GCC unroll 1  // of at most kRun steps, GCC would write out all
    for (int64_t t = s.terms - done < kRun ? s.terms - done : kRun; t > 0; --t) {
      Raw other[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) other[v] = Vec<T>::load(panel + v * L).v;
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const Raw a = Vec<T>(row[r * row_stride]).v;
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v)
          if constexpr (Op::gradient)
            sums[r][v] = fma(a, M::slope(Vec<T>(own[r][v] - other[v]), p).v, sums[r][v]);
          else
            sums[r][v] = M::join(Vec<T>(sums[r][v]), Vec<T>(a - other[v]), p).v;
      }
      ++row;
      panel += panel_stride;
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        T* const to = stored + (r * V + v) * L;
        const Vec<T> run = Vec<T>(sums[r][v]);
        (done ? Op::carry(Vec<T>::load(to), run) : run).store(to);
      }
  }
  finish<Op>(s, R, columns, stored, V * L);
}

// ---- panels: `terms` of each of `columns` columns, a vector of columns beside the other ----

// From rows, one a column: squares of lanes x lanes are transposed in registers.
template <class T> inline void pack_across(const T* x, int64_t stride, int64_t columns,
                                           int64_t terms, T* panel, int64_t panel_stride) {
  constexpr int L = kLanes<T>;
  for (int64_t c = 0; c < columns; c += L)
    for (int64_t t = 0; t < terms; t += L) {
      const int count = terms - t < L ? (int)(terms - t) : L;
      typename Vec<T>::Raw square[L];
#pragma GCC unroll 16
      for (int i = 0; i < L; ++i) {
        const int64_t column = c + i < columns ? c + i : columns - 1;
        square[i] = load_some(x + column * stride + t, count).v;
      }
      transpose_lanes<1>(square);
#pragma GCC unroll 16
      for (int i = 0; i < L; ++i) Vec<T>(square[i]).store(panel + (t + i) * panel_stride + c);
    }
}
// From rows, one a term.
template <class T> inline void pack_along(const T* x, int64_t stride, int64_t columns,
                                          int64_t terms, T* panel, int64_t panel_stride) {
  for (int64_t t = 0; t < terms; ++t)
    each_vector<T>(columns, [=](int64_t at, int count) TW_LAMBDA_INLINE {
      load_some(x + t * stride + at, count).store(panel + t * panel_stride + at);
    });
}

// ---- pieces ----

template <class T> constexpr int64_t tile_columns() { return kTileVectors * kLanes<T>; }
template <class T> int64_t scratch_bytes(int64_t rows) {
  return kTerms * tile_columns<T>() * (int64_t)sizeof(T) +
         rows * tile_columns<T>() * (int64_t)sizeof(double);
}

// All columns that the tile has not yet: full tiles of rows, then row by row.
template <class Op, class T, int V>
inline void rows_of_tiles(Side<T> s, int64_t rows, int64_t columns) {
  const auto forward = [&s](int by) TW_LAMBDA_INLINE {
    s.row += by * s.row_stride;
    s.own += by * s.own_stride;
    s.row_terms += by * s.k;
    s.y += by * s.row_step;
    if (s.totals) s.totals += by * s.panel_stride;
  };
  for (; rows >= Op::rows; rows -= Op::rows, forward(Op::rows))
    tile<Op, T, Op::rows, V>(s, columns);
  for (; rows > 0; --rows, forward(1)) tile<Op, T, 1, V>(s, columns);
}

template <class Op, class T>
void pairs(const PairProblem& p, const PairPiece& piece, void* scratch) {
  constexpr int64_t width = tile_columns<T>();
  constexpr int L = kLanes<T>, full = Op::vectors * L;
  const int64_t all_terms = Op::gradient ? p.m : p.k, all_columns = Op::gradient ? p.k : p.m;
  const int64_t rows = piece.past - piece.first;
  const int64_t columns = all_columns - piece.column < width ? all_columns - piece.column : width;
  const T* const x1 = (const T*)p.x1 + (piece.batch * p.n + piece.first) * p.k;
  const T* const x2 = (const T*)p.x2 + piece.batch * p.m * p.k;
  T* const panel = (T*)scratch;
  const bool single = all_terms <= kTerms;
  Side<T> s;
  s.row_stride = all_terms;
  s.panel_stride = width;
  s.own_stride = p.k;
  s.row_step = p.row_step;
  s.column_step = p.column_step;
  s.p = (T)p.p;
  s.k = p.k;
  for (int64_t t = 0; t == 0 || t < all_terms; t += kTerms) {
    s.terms = all_terms - t < kTerms ? all_terms - t : kTerms;
    s.first = t == 0;
    s.last = t + kTerms >= all_terms;
    if constexpr (Op::gradient)
      pack_along(x2 + t * p.k + piece.column, p.k, columns, s.terms, panel, width);
    else
      pack_across(x2 + piece.column * p.k + t, p.k, columns, s.terms, panel, width);
    for (int64_t c = 0; c < columns;) {
      const int64_t at = piece.column + c;
      s.panel = panel + c;
      s.row = Op::gradient ? (const T*)p.w + (piece.batch * p.n + piece.first) * p.m + t : x1 + t;
      s.own = x1 + at;
      s.row_terms = x1;
      s.column_terms = x2 + at * p.k;
      s.totals = single ? nullptr : (double*)(panel + kTerms * width) + c;
      s.y =
          (T*)p.y + piece.batch * p.n * all_columns + piece.first * p.row_step + at * p.column_step;
      if (columns - c > full - L) {
        rows_of_tiles<Op, T, Op::vectors>(s, rows, columns - c < full ? columns - c : full);
        c += full;
      } else {
        rows_of_tiles<Op, T, 1>(s, rows, columns - c < L ? columns - c : L);
        c += L;
      }
    }
  }
}

template <class T> constexpr PairDistancesTable::Loops loops_of() {
  return {{pairs<Distance<Count>, T>, pairs<Distance<Magnitudes>, T>, pairs<Distance<Squares>, T>,
           pairs<Distance<Largest>, T>, pairs<Distance<Powers>, T>},
          {nullptr, pairs<Gradient<Magnitudes>, T>, pairs<Gradient<Squares>, T>, nullptr,
           pairs<Gradient<Powers>, T>},
          tile_columns<T>(),
          scratch_bytes<T>};
}

}  // namespace

extern const PairDistancesTable pair_distances_table;
const PairDistancesTable pair_distances_table = {loops_of<float>(), loops_of<double>()};

}  // namespace tw::TW_ISA_NAME

#else  // ---- the lowerings, once ----
#include <cmath>
#include <new>
#include <utility>

#include "core/base/thresholds.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/memory/scratch.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;
using Problem = PairProblem;

// Rows that share a packed panel: packing then takes a few percent of the time.
constexpr int64_t kPieceRows = 256;

Metric metric_of(double p) {
  if (p == 0) return Metric::count;
  if (p == 1) return Metric::magnitudes;
  if (p == 2) return Metric::squares;
  return std::isinf(p) ? Metric::largest : Metric::powers;
}
const char* refuses(const Call& call) {
  const DType dtype = call.in[0].dtype;
  return dtype == DType::float32 || dtype == DType::float64 ? nullptr : kTooNarrow;
}
Problem& set_up(const Call& call, void* problem) {
  const Meta &x1 = call.in[0], &x2 = call.in[1];
  const double p = call.attributes.real(0);
  return *new (problem) Problem{.dtype = x1.dtype,
                                .metric = metric_of(p),
                                .swapped = false,
                                .p = p,
                                .batches = x1.size(0),
                                .n = x1.size(1),
                                .m = x2.size(1),
                                .k = x1.size(2),
                                .row_step = 0,
                                .column_step = 1,
                                .x1 = nullptr,
                                .x2 = nullptr,
                                .w = nullptr,
                                .y = nullptr};
}
void set_up_distances(const Call& call, void* problem) {
  Problem& p = set_up(call, problem);
  p.row_step = p.m;
  // Columns are lanes: of the widest vectors' 16, few would leave most empty.
  if (p.m >= 16 || p.m >= p.n) return;
  std::swap(p.n, p.m);
  std::swap(p.row_step, p.column_step);
  p.swapped = true;
}
void set_up_gradients(const Call& call, void* problem) {
  Problem& p = set_up(call, problem);
  p.row_step = p.k;
}
void bind_distances(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  p.x1 = at[p.swapped];
  p.x2 = at[!p.swapped];
  p.y = at[2];
}
void bind_gradients(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  p.x1 = at[0];
  p.x2 = at[1];
  p.w = at[2];
  p.y = at[3];
}
double differences(const Problem& p) {
  return double(p.batches) * double(p.n) * double(p.m) * double(p.k);
}
double cost_ns(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  return 300 + (p.metric == Metric::powers ? 2 : 0.05) * differences(p);
}

template <bool gradient> void run(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  const PairDistancesTable& table = *active_kernels().pair_distances;
  const auto& loops = p.dtype == DType::float64 ? table.float64 : table.float32;
  const auto loop = (gradient ? loops.gradients : loops.distances)[static_cast<int>(p.metric)];
  const int64_t columns = gradient ? p.k : p.m, width = loops.tile_columns;
  const int64_t across = (columns + width - 1) / width;
  const int64_t down = (p.n + kPieceRows - 1) / kPieceRows, pieces = p.batches * down * across;
  if (pieces == 0) return;
  const auto grain =
      static_cast<int64_t>(thresholds::kPairGrain / (differences(p) / double(pieces) + 1)) + 1;
  parallel_ranges(pieces, grain, [&](int64_t begin, int64_t end) {
    const int64_t rows = p.n < kPieceRows ? p.n : kPieceRows;
    const Scratch memory(static_cast<std::size_t>(loops.scratch_bytes(rows)));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i / across % down * kPieceRows;
      const PairPiece piece = {i / across / down, first,
                               p.n - first < kPieceRows ? p.n : first + kPieceRows,
                               i % across * width};
      loop(p, piece, memory.as<void>());
    }
  });
}

}  // namespace

void register_pair_distances_kernels() {
  add_kernel<Problem>("pair_distances", "tiles of pairs, terms from their differences",
                      {.refuses = refuses,
                       .set_up = set_up_distances,
                       .bind = bind_distances,
                       .cost_ns = cost_ns,
                       .run = run<false>,
                       .contiguous = 3,
                       .name = "tiles"});
  add_kernel<Problem>(
      "pair_distances_backward", "tiles of the gradient, terms from their differences",
      {.refuses =
           [](const Call& call) {
             const Metric metric = metric_of(call.attributes.real(0));
             const bool sums = metric != Metric::count && metric != Metric::largest;
             return sums ? refuses(call) : "the gradients of these metrics are no sums of slopes";
           },
       .set_up = set_up_gradients,
       .bind = bind_gradients,
       .cost_ns = cost_ns,
       .run = run<true>,
       .contiguous = 7,
       .name = "tiles"});
}

}  // namespace tw
#endif
