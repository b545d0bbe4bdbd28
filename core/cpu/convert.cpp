// Strided copies: loop order, transposes and sharing between threads, over the kernels of one row.
#include "core/cpu/convert.h"

#include <cstdlib>

#include "core/cpu/isa.h"
#include "core/runtime/registry.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// Bytes a chunk of work moves: long against the cost of handing it to a thread (about 1 us), short
// enough to balance; also the size below which a copy stays on the calling thread.
constexpr int64_t kChunkBytes = 256 << 10;
// Results larger than this do not fit the 2 MiB second-level cache beside their source: write
// around it.
constexpr int64_t kStreamBytes = 4 << 20;

struct Loop {
  int64_t count, x_bytes, y_bytes;
};

// The loops of a copy, outermost first: extents of 1 dropped, ordered by the stride of y, merged.
struct Nest {
  Loop loops[kMaxRank];
  int rank = 0;

  void insert(Loop loop) {
    int at = rank++;
    for (; at > 0 && outside(loop, loops[at - 1]); --at) loops[at] = loops[at - 1];
    loops[at] = loop;
  }
  static bool outside(const Loop& a, const Loop& b) {
    const int64_t ya = std::llabs(a.y_bytes), yb = std::llabs(b.y_bytes);
    return ya != yb ? ya > yb : std::llabs(a.x_bytes) > std::llabs(b.x_bytes);
  }
  void merge() {
    int last = 0;
    for (int i = 1; i < rank; ++i) {
      Loop& outer = loops[last];
      const Loop& inner = loops[i];
      if (outer.x_bytes == inner.count * inner.x_bytes &&
          outer.y_bytes == inner.count * inner.y_bytes) {
        outer = {outer.count * inner.count, inner.x_bytes, inner.y_bytes};
      } else {
        loops[++last] = inner;
      }
    }
    rank = rank == 0 ? 0 : last + 1;
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
  int64_t counter[kMaxRank] = {};
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

struct Copy {
  DType from, to;
  ConvertFunction convert;
  const ConvertTable& table;
  int64_t element_bytes;
};

// All of `outer` times one row; long rows are cut, short ones gathered into chunks.
void copy_rows(const Copy& copy, const Nest& outer, Loop row, Position start) {
  const int64_t rows = outer.count();
  const int64_t piece = at_least_one(kChunkBytes / copy.element_bytes);
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

int log2_size(int64_t bytes) { return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3; }

// `along_x` is contiguous in x, `along_y` in y; every point of `outer` is one transpose, cut into
// bands.
void copy_transposed(const Copy& copy, const Nest& outer, Loop along_x, Loop along_y,
                     Position start) {
  const int64_t size = copy.element_bytes, batch = outer.count();
  const TransposeFunction transpose = copy.table.transpose[log2_size(size)];
  const int64_t cols = along_x.count, rows = along_y.count;
  const bool aligned = reinterpret_cast<std::uintptr_t>(start.y) % 64 == 0 &&
                       along_x.y_bytes % 64 == 0 && outer.rank == 0;
  const bool stream = aligned && batch * rows * cols * size > kStreamBytes;
  // Bands of 64 rows of y, or as many as make a chunk.
  const int64_t fitting = kChunkBytes / (rows * size) / 64 * 64;
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
  parallel_ranges(batch, at_least_one(kChunkBytes / (rows * cols * size)),
                  [&](int64_t begin, int64_t end) {
                    walk(outer, start, begin, end, [&](Position p) { run(p, 0); });
                  });
}

// With a conversion: squares small enough that both sides stay in the first-level cache.
void convert_transposed(const Copy& copy, Nest outer, Loop along_x, Loop along_y, Position start) {
  constexpr int64_t side = 32;
  const int64_t across = (along_x.count + side - 1) / side;
  const int64_t down = (along_y.count + side - 1) / side;
  const int64_t squares = across * down;
  parallel_ranges(
      outer.count() * squares, kChunkBytes / (side * side * copy.element_bytes),
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

void run_copy(const void* problem) {
  const auto& p = *static_cast<const CopyProblem*>(problem);
  copy_strided(p.from, p.to, p.shape, p.x, p.x_strides, p.y, p.y_strides);
}
bool accepts_copy(const void*, std::string*) { return true; }
double copy_cost_ns(const void* problem) {
  const auto& p = *static_cast<const CopyProblem*>(problem);
  constexpr double bytes_per_ns = 10;  // one core, reading and writing memory
  return 50 + element_count(p.shape) * double(size_of(p.from) + size_of(p.to)) / bytes_per_ns;
}
constexpr Kernel copy_kernel = {"copy",
                                "vector",
                                "cpu",
                                Precision::ieee,
                                "loops ordered by stride, transposes through registers",
                                accepts_copy,
                                copy_cost_ns,
                                run_copy};
[[maybe_unused]] const bool registered = (register_kernel(&copy_kernel), true);

}  // namespace

void convert_elements(DType from, DType to, int64_t n, const void* x, int64_t x_stride_bytes,
                      void* y, int64_t y_stride_bytes) {
  active_kernels().convert->convert[index_of(from)][index_of(to)](n, x, x_stride_bytes, y,
                                                                  y_stride_bytes);
}

void copy_strided(DType from, DType to, const Shape& shape, const void* x, const Strides& x_strides,
                  void* y, const Strides& y_strides) {
  const int64_t x_size = size_of(from), y_size = size_of(to);
  Nest nest;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 0) return;
    if (shape[i] != 1) nest.insert({shape[i], x_strides[i] * x_size, y_strides[i] * y_size});
  }
  nest.merge();
  if (nest.rank == 0) nest.insert({1, x_size, y_size});
  const ConvertTable& table = *active_kernels().convert;
  const Copy copy = {from, to, table.convert[index_of(from)][index_of(to)], table,
                     x_size > y_size ? x_size : y_size};
  const Position start = {static_cast<const char*>(x), static_cast<char*>(y)};
  const int crossing = transposed_loop(nest);
  const Loop along_y = nest.remove(nest.rank - 1);
  if (crossing < 0) return copy_rows(copy, nest, along_y, start);
  const Loop along_x = nest.remove(crossing);
  if (from == to && along_x.x_bytes == x_size && along_y.y_bytes == y_size)
    copy_transposed(copy, nest, along_x, along_y, start);
  else
    convert_transposed(copy, nest, along_x, along_y, start);
}

}  // namespace tw
