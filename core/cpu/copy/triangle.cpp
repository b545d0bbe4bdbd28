// The triangles of matrices: what is left of a diagonal, or right of it, a row at a time.
#include <algorithm>
#include <cstring>
#include <new>

#include "core/base/thresholds.h"
#include "core/cpu/copy/convert.h"
#include "core/cpu/copy/problems.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/runtime/thread_pool.h"

namespace tw {

namespace {

using std::int64_t;

using Problem = TriangleProblem;

void set_up(const Call& call, void* problem) {
  const Meta& x = call.in[0];
  Problem& p = *new (problem) Problem;
  p.dtype = x.dtype;
  p.dense = x.contiguous;
  p.rows = x.size(x.rank() - 2);
  p.columns = x.size(x.rank() - 1);
  // Diagonals beyond the matrix are all alike, and so do not overflow.
  p.diagonal = std::clamp(call.attributes[0], -p.rows - 1, p.columns + 1);
  p.shape.assign(*x.shape);
  p.strides.assign(*x.strides);
}
void bind(void* problem, void* const* at) {
  auto& p = *static_cast<Problem*>(problem);
  p.x = static_cast<const char*>(at[0]);
  p.y = static_cast<char*>(at[1]);
}
double cost_ns(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  constexpr double bytes_per_ns = 16;
  return 100 + static_cast<double>(p.shape.product()) * size_of(p.dtype) / bytes_per_ns;
}

// The rows of one matrix from `cut` to `end` hold a part each; those before them and behind are all
// zeros or whole.
template <bool lower> struct Bands {
  explicit Bands(const Problem& p) : p(p) {
    const int64_t last = p.columns - p.diagonal;
    cut = std::clamp<int64_t>(lower ? -p.diagonal : 1 - p.diagonal, 0, p.rows);
    end = std::clamp<int64_t>(lower ? last - 1 : last, cut, p.rows);
  }
  // Rows [begin, stop) of the matrix at x and y, which may be the same.
  void run(const char* x, char* y, int64_t begin, int64_t stop) const {
    const int64_t size = size_of(p.dtype), row = p.columns * size;
    const auto part = [&](int64_t from, int64_t to, bool kept) {
      if (from >= to) return;
      const auto bytes = static_cast<std::size_t>(to - from);
      if (!kept)
        std::memset(y + from, 0, bytes);
      else if (x != y)
        std::memcpy(y + from, x + from, bytes);
    };
    const int64_t first = std::clamp(cut, begin, stop), last = std::clamp(end, begin, stop);
    part(begin * row, first * row, !lower);
    for (int64_t i = first; i < last; ++i) {
      const int64_t left = std::clamp<int64_t>(i + p.diagonal + lower, 0, p.columns);
      part(i * row, i * row + left * size, lower);
      part(i * row + left * size, (i + 1) * row, !lower);
    }
    part(last * row, stop * row, lower);
  }
  const Problem& p;
  int64_t cut, end;
};
// What may be kept of an x that is not row-major, to where it belongs.
template <bool lower> void copy_kept(const Problem& p) {
  Shape shape;
  for (const int64_t extent : p.shape) shape.push_back(extent);
  const int rank = shape.rank();
  const Strides to = contiguous_strides(shape);
  if (lower)
    shape[rank - 1] = std::clamp<int64_t>(p.rows + p.diagonal, 0, p.columns);
  else
    shape[rank - 2] = std::clamp<int64_t>(p.columns - p.diagonal, 0, p.rows);
  copy_strided(p.dtype, p.dtype, shape, p.x, p.strides, p.y, to);
}
// y may be x.
template <bool lower> void run(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  if (p.rows * p.columns == 0) return;
  if (!p.dense) copy_kept<lower>(p);
  const Bands<lower> bands(p);
  const int64_t row_bytes = p.columns * static_cast<int64_t>(size_of(p.dtype));
  const char* const x = p.dense ? p.x : p.y;
  parallel_ranges(p.shape.product() / p.columns, thresholds::kGrainBytes / row_bytes + 1,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t row = begin; row < end;) {
                      const int64_t first = row % p.rows, matrix = (row - first) * row_bytes;
                      const int64_t stop = std::min(p.rows, first + end - row);
                      bands.run(x + matrix, p.y + matrix, first, stop);
                      row += stop - first;
                    }
                  });
}

constexpr char kHelp[] = "rows, a part copied and a part zeros";

}  // namespace

void register_triangle_kernels() {
  add_kernel<Problem>(
      "tril", kHelp,
      {.set_up = set_up, .bind = bind, .cost_ns = cost_ns, .run = run<true>, .name = "triangle"});
  add_kernel<Problem>(
      "triu", kHelp,
      {.set_up = set_up, .bind = bind, .cost_ns = cost_ns, .run = run<false>, .name = "triangle"});
}

}  // namespace tw
