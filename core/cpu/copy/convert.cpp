// Strided copies: loop order, transposes and sharing between threads, over the kernels of one row.
#include "core/cpu/copy/convert.h"
#include "core/cpu/copy/problems.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/base/thresholds.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/problems/axes.h"
#include "core/runtime/choice.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

struct Loop {
  int64_t count, x_bytes, y_bytes;
};

// The loops of a copy, outermost first: extents of 1 dropped, ordered by the stride of y, merged.
struct Nest {
  Loop loops[kMaxRank];
  int rank = 0;

  void insert(Loop loop) {
    int at = rank++;
    if (at == 0 || !outside(loop, loops[at - 1]) || !uses(Optimization::loop_interchange)) {
      loops[at] = loop;
      return;
    }
    for (; at > 0 && outside(loop, loops[at - 1]); --at) loops[at] = loops[at - 1];
    loops[at] = loop;
  }
  static bool outside(const Loop& a, const Loop& b) {
    const int64_t ya = std::llabs(a.y_bytes), yb = std::llabs(b.y_bytes);
    return ya != yb ? ya > yb : std::llabs(a.x_bytes) > std::llabs(b.x_bytes);
  }
  void merge() {
    if (is_off(Optimization::loop_coalescing)) return;
    const int before = rank;
    rank = merge_axes<&Loop::count, &Loop::x_bytes, &Loop::y_bytes>(loops, rank);
    if (rank < before) uses(Optimization::loop_coalescing);
  }
  Loop remove(int at) {
    const Loop removed = loops[at];
    for (int i = at; i + 1 < rank; ++i) loops[i] = loops[i + 1];
    --rank;
    return removed;
  }
  int64_t count() const {
    int64_t product = 1;
    for (int i = 0; i < rank; ++i) product *= loops[i].count;
    return product;
  }
};

struct Position {
  const char* x;
  char* y;
};
Position at(const Nest& nest, Position start, int64_t index) {
  for (int i = nest.rank - 1; i >= 0; --i) {
    const Loop& loop = nest.loops[i];
    const int64_t here = index % loop.count;
    index /= loop.count;
    start.x += here * loop.x_bytes;
    start.y += here * loop.y_bytes;
  }
  return start;
}

// Calls body(position) for each of nest's points in [begin, end): an odometer, no division a step.
template <class F> void walk(const Nest& nest, Position p, int64_t begin, int64_t end, F&& body) {
  int64_t counter[kMaxRank];
  int64_t rest = begin;
  for (int i = nest.rank - 1; i >= 0; --i) {
    counter[i] = rest % nest.loops[i].count;
    rest /= nest.loops[i].count;
  }
  p = at(nest, p, begin);
  for (int64_t n = begin; n < end; ++n) {
    body(p);
    for (int i = nest.rank - 1; i >= 0; --i) {
      const Loop& loop = nest.loops[i];
      p.x += loop.x_bytes;
      p.y += loop.y_bytes;
      if (++counter[i] < loop.count) break;
      counter[i] = 0;
      p.x -= loop.count * loop.x_bytes;
      p.y -= loop.count * loop.y_bytes;
    }
  }
}

int64_t at_least_one(int64_t n) { return n < 1 ? 1 : n; }
int log2_size(int64_t bytes) { return std::countr_zero(static_cast<std::uint64_t>(bytes)); }

struct Copy {
  DType from, to;
  ConvertFunction convert;
  const ConvertTable& table;
  int64_t element_bytes;
};

// Rows of one value each, of neighbouring values, that lie one after the other.
bool repeats_each(const Copy& copy, const Nest& outer, Loop row) {
  const int64_t size = copy.element_bytes;
  const bool same = copy.from == copy.to && row.x_bytes == 0 && row.y_bytes == size;
  if (!same || outer.rank != 1 || row.count * size > 256) return false;
  return outer.loops[0].x_bytes == size && outer.loops[0].y_bytes == row.count * size;
}
void repeat_each(const Copy& copy, int64_t values, int64_t times, Position start) {
  const int64_t size = copy.element_bytes, row_bytes = times * size;
  const int64_t last = 64 / row_bytes + 1;  // what writes behind its rows is no good for these
  parallel_ranges(values, at_least_one(thresholds::kGrainBytes / row_bytes),
                  [&](int64_t begin, int64_t end) {
                    const int64_t whole = std::max<int64_t>(end - begin - last, 0);
                    const char* x = start.x + begin * size;
                    char* y = start.y + begin * row_bytes;
                    copy.table.spread[log2_size(size)](whole, times, x, y);
                    for (int64_t i = whole; i < end - begin; ++i)
                      copy.convert(times, x + i * size, 0, y + i * row_bytes, size);
                  });
}

// Rows of up to these bytes are copied many a call, along one of the loops outside them: the
// innermost, unless another is longer and this a few rows. A piece of it, and with it all of the
// other loops, stays in the first-level cache.
int loop_of_short_rows(const Nest& outer) {
  int best = outer.rank - 1;
  if (outer.loops[best].count >= thresholds::kNarrow) return best;
  for (int i = 0; i < outer.rank; ++i)
    if (outer.loops[i].count > outer.loops[best].count) best = i;
  return best;
}
// With a conversion: the rows are laid side by side in a buffer first, which is one row then.
void copy_short_rows(const Copy& copy, Nest outer, Loop row, Position start) {
  const Loop down = outer.remove(loop_of_short_rows(outer));
  const int64_t size = size_of(copy.from), bytes = row.count * size;
  const CopyRowsFunction move = copy.table.copy_rows[log2_size(size)];
  const bool converts = copy.from != copy.to;
  const int64_t others = outer.count(),
                piece = std::min(down.count, thresholds::kLoneStageBytes / bytes);
  const int64_t pieces = (down.count + piece - 1) / piece;
  parallel_ranges(
      pieces * others,
      at_least_one(thresholds::kGrainBytes / (piece * row.count * copy.element_bytes)),
      [&](int64_t begin, int64_t end) {
        alignas(64) char buffer[thresholds::kLoneStageBytes];
        for (int64_t i = begin; i < end; ++i) {
          Position p = at(outer, start, i % others);
          const int64_t first = i / others * piece, rows = std::min(piece, down.count - first);
          p.x += first * down.x_bytes;
          p.y += first * down.y_bytes;
          if (!converts) {
            move({rows, row.count, bytes, row.x_bytes, down.x_bytes, row.y_bytes, down.y_bytes},
                 p.x, p.y);
          } else {
            move({rows, row.count, bytes, row.x_bytes, down.x_bytes, size, bytes}, p.x, buffer);
            copy.convert(rows * row.count, buffer, size, p.y, row.y_bytes);
          }
        }
      });
}
bool has_short_rows(const Copy& copy, const Nest& outer, Loop row) {
  const int64_t bytes = row.count * size_of(copy.from);
  if (outer.rank == 0 || bytes > thresholds::kShortCopyBytes) return false;
  if (row.x_bytes < 0 && bytes >= 64) return false;  // backwards by whole vectors
  if (copy.from == copy.to) return true;
  return row.y_bytes * row.count == outer.loops[loop_of_short_rows(outer)].y_bytes;
}

// All of `outer` times one row; long rows are cut, short ones gathered into chunks.
void copy_rows(const Copy& copy, const Nest& outer, Loop row, Position start) {
  if (repeats_each(copy, outer, row) && uses(Optimization::value_repetition))
    return repeat_each(copy, outer.loops[0].count, row.count, start);
  if (has_short_rows(copy, outer, row) && uses(Optimization::short_run_copies))
    return copy_short_rows(copy, outer, row, start);
  const int64_t rows = outer.count();
  const int64_t piece = at_least_one(thresholds::kGrainBytes / copy.element_bytes);
  if (row.count >= 2 * piece) {
    const int64_t pieces = (row.count + piece - 1) / piece;
    parallel_chunks(rows * pieces, [&](int64_t chunk) {
      const Position p = at(outer, start, chunk / pieces);
      const int64_t begin = chunk % pieces * piece;
      const int64_t n = row.count - begin < piece ? row.count - begin : piece;
      copy.convert(n, p.x + begin * row.x_bytes, row.x_bytes, p.y + begin * row.y_bytes,
                   row.y_bytes);
    });
    return;
  }
  parallel_ranges(rows, at_least_one(piece / row.count), [&](int64_t begin, int64_t end) {
    walk(outer, start, begin, end,
         [&](Position p) { copy.convert(row.count, p.x, row.x_bytes, p.y, row.y_bytes); });
  });
}

// `along_x` is contiguous in x, `along_y` in y; every point of `outer` is one transpose, cut into
// bands.
void copy_transposed(const Copy& copy, const Nest& outer, Loop along_x, Loop along_y,
                     Position start) {
  const int64_t size = copy.element_bytes, batch = outer.count();
  const TransposeFunction transpose = copy.table.transpose[log2_size(size)];
  const int64_t cols = along_x.count, rows = along_y.count;
  const bool aligned = reinterpret_cast<std::uintptr_t>(start.y) % 64 == 0 &&
                       along_x.y_bytes % 64 == 0 && outer.rank == 0;
  const bool stream = aligned && batch * rows * cols * size > thresholds::kTransposeStreamBytes &&
                      uses(Optimization::streaming_stores);
  // Bands of 64 rows of y, or as many as make a chunk.
  const int64_t fitting = thresholds::kGrainBytes / (rows * size) / 64 * 64;
  const int64_t band = fitting < 64 ? 64 : fitting;
  const int64_t bands = (cols + band - 1) / band;
  const auto run = [&](Position p, int64_t begin) {
    const int64_t n = cols - begin < band ? cols - begin : band;
    transpose(rows, n, p.x + begin * size, along_y.x_bytes, p.y + begin * along_x.y_bytes,
              along_x.y_bytes, stream);
  };
  if (bands > 1) {
    parallel_chunks(batch * bands, [&](int64_t chunk) {
      run(at(outer, start, chunk / bands), chunk % bands * band);
    });
    return;
  }
  parallel_ranges(batch, at_least_one(thresholds::kGrainBytes / (rows * cols * size)),
                  [&](int64_t begin, int64_t end) {
                    walk(outer, start, begin, end, [&](Position p) { run(p, 0); });
                  });
}

// With a conversion: tiles are transposed into a buffer, whose rows are converted.
void convert_tiles(const Copy& copy, const Nest& outer, Loop along_x, Loop along_y,
                   Position start) {
  const int64_t size = size_of(copy.from), height = kTileBytes / kTileWidth / size;
  const int64_t across = (along_x.count + height - 1) / height;
  const int64_t tiles = across * ((along_y.count + kTileWidth - 1) / kTileWidth);
  const TransposeFunction transpose = copy.table.transpose[log2_size(size)];
  parallel_ranges(
      outer.count() * tiles,
      at_least_one(thresholds::kGrainBytes / (height * kTileWidth * copy.element_bytes)),
      [&](int64_t begin, int64_t end) {
        alignas(64) char buffer[kTileBytes];
        for (int64_t tile = begin; tile < end; ++tile) {
          const Position p = at(outer, start, tile / tiles);
          const int64_t j = tile % tiles % across * height, i = tile % tiles / across * kTileWidth;
          const int64_t rows = std::min(height, along_x.count - j);
          const int64_t n = std::min(kTileWidth, along_y.count - i);
          transpose(n, rows, p.x + j * size + i * along_y.x_bytes, along_y.x_bytes, buffer,
                    kTileWidth * size, false);
          for (int64_t k = 0; k < rows; ++k)
            copy.convert(n, buffer + k * kTileWidth * size, size,
                         p.y + (j + k) * along_x.y_bytes + i * along_y.y_bytes, along_y.y_bytes);
        }
      });
}

// Of other strides: squares small enough that both sides stay in the first-level cache.
void convert_transposed(const Copy& copy, const Nest& outer, Loop along_x, Loop along_y,
                        Position start) {
  constexpr int64_t side = 32;
  const int64_t across = (along_x.count + side - 1) / side;
  const int64_t down = (along_y.count + side - 1) / side;
  const int64_t squares = across * down;
  parallel_ranges(
      outer.count() * squares, thresholds::kGrainBytes / (side * side * copy.element_bytes),
      [&](int64_t begin, int64_t end) {
        for (int64_t square = begin; square < end; ++square) {
          const Position p = at(outer, start, square / squares);
          const int64_t i = square % squares % down * side, j = square % squares / down * side;
          const int64_t rows = along_y.count - i < side ? along_y.count - i : side;
          const int64_t cols = along_x.count - j < side ? along_x.count - j : side;
          for (int64_t k = j; k < j + cols; ++k)
            copy.convert(rows, p.x + i * along_y.x_bytes + k * along_x.x_bytes, along_y.x_bytes,
                         p.y + i * along_y.y_bytes + k * along_x.y_bytes, along_y.y_bytes);
        }
      });
}

// The loop other than the innermost in which x is densest, where that beats the innermost; -1:
// none.
int transposed_loop(const Nest& nest) {
  int best = nest.rank - 1;
  for (int i = 0; i < nest.rank; ++i) {
    const int64_t here = std::llabs(nest.loops[i].x_bytes);
    if (here != 0 && here < std::llabs(nest.loops[best].x_bytes)) best = i;
  }
  return best == nest.rank - 1 ? -1 : best;
}

// ---- the ops' kernels and lowerings ----

// From input `which`, which broadcasts to the result.
template <int which> void set_up_copy(const Call& call, void* problem) {
  const Meta &x = call.in[which], &y = call.out[0];
  CopyProblem& p = *new (problem) CopyProblem;
  p.from = x.dtype;
  p.to = y.dtype;
  p.shape.assign(*y.shape);
  p.y_strides.assign(*y.strides);
  const int lead = y.rank() - x.rank();
  for (int i = 0; i < y.rank(); ++i) {
    const bool repeats = i < lead || (x.size(i - lead) == 1 && y.size(i) != 1);
    p.x_strides.push_back(repeats ? 0 : (*x.strides)[i - lead]);
  }
}
template <int which, int inputs> void bind_copy(void* problem, void* const* at) {
  CopyProblem& p = *static_cast<CopyProblem*>(problem);
  p.x = at[which];
  p.y = at[inputs];
}
void run_copy(const void* problem) {
  const auto& p = *static_cast<const CopyProblem*>(problem);
  copy_strided(p.from, p.to, p.shape, p.x, p.x_strides, p.y, p.y_strides);
}
double copy_cost_ns(const void* problem) {
  const auto& p = *static_cast<const CopyProblem*>(problem);
  constexpr double bytes_per_ns = 10;  // one core, reading and writing memory
  return 50 + double(p.shape.product()) * double(size_of(p.from) + size_of(p.to)) / bytes_per_ns;
}

void set_up_fill(const Call& call, void* problem) {
  *static_cast<FillProblem*>(problem) = {call.out[0].dtype, call.out[0].count, nullptr, nullptr};
}
void bind_zeros(void* problem, void* const* at) { static_cast<FillProblem*>(problem)->y = at[0]; }
void bind_full(void* problem, void* const* at) {
  static_cast<FillProblem*>(problem)->value = at[0];
  static_cast<FillProblem*>(problem)->y = at[1];
}
void run_zeros(const void* problem) {
  const auto& p = *static_cast<const FillProblem*>(problem);
  std::memset(p.y, 0, static_cast<std::size_t>(p.count) * size_of(p.dtype));
}
void run_full(const void* problem) {
  const auto& p = *static_cast<const FillProblem*>(problem);
  copy_strided(p.dtype, p.dtype, Shape{p.count}, p.value, Strides{0}, p.y, Strides{1});
}
double fill_cost_ns(const void* problem) {
  const auto& p = *static_cast<const FillProblem*>(problem);
  constexpr double bytes_per_ns = 16;  // one core, writing memory
  return 20 + static_cast<double>(p.count) * size_of(p.dtype) / bytes_per_ns;
}

void set_up_unslice(const Call& call, void* problem) {
  UnsliceProblem& p = *new (problem) UnsliceProblem;
  const Meta &x = call.in[0], &y = call.out[0];
  set_up_fill(call, &p.all);
  p.window.from = p.window.to = x.dtype;
  p.window.shape.assign(*x.shape);
  p.window.x_strides.assign(*x.strides);
  const Strides whole = contiguous_strides(*y.shape);
  const List ranges = call.attributes.list(0);
  int64_t offset = 0;
  for (int i = 0; i < y.rank(); ++i) {
    if (x.size(i) > 0) offset += ranges[3 * i] * whole[i];
    p.window.y_strides.push_back(whole[i] * ranges[3 * i + 1]);
  }
  p.offset_bytes = offset * static_cast<int64_t>(size_of(x.dtype));
}
void bind_unslice(void* problem, void* const* at) {
  UnsliceProblem& p = *static_cast<UnsliceProblem*>(problem);
  p.window.x = at[0];
  p.all.y = at[1];
  p.window.y = static_cast<char*>(at[1]) + p.offset_bytes;
}
void run_unslice(const void* problem) {
  const auto& p = *static_cast<const UnsliceProblem*>(problem);
  run_zeros(&p.all);
  run_copy(&p.window);
}

void set_up_sequence(const Call& call, void* problem) {
  const Attributes& w = call.attributes;
  *static_cast<SequenceProblem*>(problem) = {call.out[0].dtype, w[0],      w.flag(2), w.flag(3),
                                             w.flag(4),         w[5],      w[6],      w.real(5),
                                             w.real(6),         w.real(7), nullptr};
}
void bind_sequence(void* problem, void* const* at) {
  static_cast<SequenceProblem*>(problem)->y = at[0];
}
template <class T, class F> void fill_sequence(const SequenceProblem& p, F&& value) {
  constexpr int64_t kBlock = thresholds::kStageBytes / 8;  // elements staged at once
  T block[kBlock];
  const int64_t size = size_of(p.dtype);
  for (int64_t at = 0; at < p.count; at += kBlock) {
    const int64_t n = std::min(kBlock, p.count - at);
    for (int64_t i = 0; i < n; ++i) block[i] = value(at + i);
    convert_elements(DTypeOf<T>::value, p.dtype, n, block, sizeof(T),
                     static_cast<char*>(p.y) + at * size, size);
  }
}
// In the result's own 64 bits, modulo 2^64.
void count_up(const SequenceProblem& p) {
  constexpr int64_t kPiece = thresholds::kGrainBytes / static_cast<int64_t>(sizeof(std::uint64_t));
  parallel_ranges(p.count, kPiece, [&](int64_t begin, int64_t end) {
    const auto step = static_cast<std::uint64_t>(p.step);
    std::uint64_t value =
        static_cast<std::uint64_t>(p.start) + static_cast<std::uint64_t>(begin) * step;
    for (int64_t i = begin; i < end; ++i, value += step)
      static_cast<std::uint64_t*>(p.y)[i] = value;
  });
}
void run_sequence(const void* problem) {
  const auto& p = *static_cast<const SequenceProblem*>(problem);
  if (p.whole && (p.dtype == DType::int64 || p.dtype == DType::uint64)) return count_up(p);
  const auto whole = [&](int64_t i) {
    return static_cast<std::uint64_t>(p.start) +
           static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(p.step);
  };
  if (p.whole)
    return fill_sequence<int64_t>(p, [&](int64_t i) { return static_cast<int64_t>(whole(i)); });
  fill_sequence<double>(p, [&](int64_t i) {
    const bool last = p.ends && i == p.count - 1 && i > 0;
    const double x = last ? p.real_stop : p.real_start + static_cast<double>(i) * p.real_step;
    return p.floors ? std::floor(x) : x;
  });
}

constexpr char kCopyHelp[] = "loops ordered by stride, transposes through registers";
}  // namespace

void register_convert_kernels() {
  add_kernel<CopyProblem>("copy", kCopyHelp,
                          {.set_up = set_up_copy<0>,
                           .bind = bind_copy<0, 1>,
                           .cost_ns = copy_cost_ns,
                           .run = run_copy});
  add_kernel<CopyProblem>("astype", kCopyHelp,
                          {.set_up = set_up_copy<0>,
                           .bind = bind_copy<0, 1>,
                           .cost_ns = copy_cost_ns,
                           .run = run_copy});
  add_kernel<CopyProblem>("assign", kCopyHelp,
                          {.set_up = set_up_copy<1>,
                           .bind = bind_copy<1, 2>,
                           .cost_ns = copy_cost_ns,
                           .run = run_copy});
  add_kernel<FillProblem>(
      "zeros", "one run of bytes",
      {.set_up = set_up_fill, .bind = bind_zeros, .cost_ns = fill_cost_ns, .run = run_zeros});
  add_kernel<FillProblem>(
      "full", "one value in vectors",
      {.set_up = set_up_fill, .bind = bind_full, .cost_ns = fill_cost_ns, .run = run_full});
  add_kernel<UnsliceProblem>("unslice", "zeros, then a strided copy",
                             {.set_up = set_up_unslice, .bind = bind_unslice, .run = run_unslice});
  add_kernel<SequenceProblem>(
      "sequence", "blocks in the first-level cache, converted",
      {.set_up = set_up_sequence, .bind = bind_sequence, .run = run_sequence});
}

void convert_elements(DType from, DType to, int64_t n, const void* x, int64_t x_stride_bytes,
                      void* y, int64_t y_stride_bytes) {
  active_kernels().convert->convert[index_of(from)][index_of(to)](n, x, x_stride_bytes, y,
                                                                  y_stride_bytes);
}

void copy_strided(DType from, DType to, DimsView shape, const void* x, DimsView x_strides, void* y,
                  DimsView y_strides) {
  const int64_t x_size = size_of(from), y_size = size_of(to);
  Position start = {static_cast<const char*>(x), static_cast<char*>(y)};
  Nest nest;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return;
    Loop loop = {shape[i], x_strides[i] * x_size, y_strides[i] * y_size};
    if (loop.y_bytes < 0) {  // results are written forwards
      start.x += (loop.count - 1) * loop.x_bytes;
      start.y += (loop.count - 1) * loop.y_bytes;
      loop = {loop.count, -loop.x_bytes, -loop.y_bytes};
    }
    if (loop.count != 1) nest.insert(loop);
  }
  nest.merge();
  if (nest.rank == 0) nest.insert({1, x_size, y_size});
  const ConvertTable& table = *active_kernels().convert;
  const Copy copy = {from, to, table.convert[index_of(from)][index_of(to)], table,
                     x_size > y_size ? x_size : y_size};
  const int crossing = transposed_loop(nest);
  const Loop along_y = nest.remove(nest.rank - 1);
  if (crossing < 0 || !uses(Optimization::transpose_tiling))
    return copy_rows(copy, nest, along_y, start);
  Loop along_x = nest.remove(crossing);
  if (along_x.x_bytes < 0) {  // read forwards, and written backwards by whole rows
    start.x += (along_x.count - 1) * along_x.x_bytes;
    start.y += (along_x.count - 1) * along_x.y_bytes;
    along_x = {along_x.count, -along_x.x_bytes, -along_x.y_bytes};
  }
  if (along_x.x_bytes == x_size && along_y.y_bytes == y_size)
    (from == to ? copy_transposed : convert_tiles)(copy, nest, along_x, along_y, start);
  else
    convert_transposed(copy, nest, along_x, along_y, start);
}

}  // namespace tw
