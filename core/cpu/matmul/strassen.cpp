// Strassen's recursion in Winograd's form, over the packed rung. Sums of A lie in one buffer a
// level, sums of B in another, products in the quadrants of C; with the products that are added to
// C at the end this is the whole of the memory: a third of A, B and C together, whatever the depth.
// With beta there is the product itself besides.
#include "core/cpu/matmul/strassen.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "core/base/thresholds.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/matmul/layout.h"
#include "core/cpu/matmul/blocking.h"
#include "core/cpu/matmul/tuning.h"
#include "core/memory/scratch.h"
#include "core/runtime/thread_pool.h"

namespace tw {

namespace {

// Each level multiplies the error by about three.
constexpr int kMostLevels = 3;
// Rows of a temporary begin this far apart beyond their length: a stride of a power of two would
// put them all into a few sets of the L1 cache.
constexpr std::int64_t kRowPad = 32;

// A matrix in memory, one of whose strides is 1.
template <class T> struct View {
  T* data;
  std::int64_t row, col;

  View quadrant(int i, int j, std::int64_t rows, std::int64_t cols) const {
    return {data + i * rows * row + j * cols * col, row, col};
  }
  bool by_rows() const { return col == 1; }
};

template <class T> const MatmulTable::Sums<T>& sums();
template <> const MatmulTable::Sums<float>& sums() { return active_kernels().matmul->sums32; }
template <> const MatmulTable::Sums<double>& sums() { return active_kernels().matmul->sums64; }

// f(first line, lines) for pieces of `lines` lines of `length` elements.
template <class T, class F> void each_band(std::int64_t lines, std::int64_t length, F&& f) {
  const std::int64_t grain =
      std::max<std::int64_t>(thresholds::kGrainBytes / (length * std::int64_t(sizeof(T))), 1);
  parallel_ranges(lines, grain, [&](std::int64_t from, std::int64_t to) { f(from, to - from); });
}

// Sizes of a product, all divisible by two to the power of the levels left.
struct Extent {
  std::int64_t m, n, k;
  Extent half() const { return {m / 2, n / 2, k / 2}; }
};

enum class Into { overwrite, add, subtract };

template <class T> class Winograd {
 public:
  Winograd(const MatmulProblem& p, double alpha) : dtype_(p.dtype), alpha_(alpha) {}

  // Elements of scratch for `levels` levels; `adds`: the product is added to C, not written.
  static std::int64_t scratch(Extent e, int levels, bool adds) {
    if (levels == 0) return 0;
    const Extent h = e.half();
    return (adds ? padded(e.m, e.n) : 0) + std::max(padded(h.m, h.k), padded(h.k, h.m)) +
           std::max(padded(h.k, h.n), padded(h.n, h.k)) + scratch(h, levels - 1, true);
  }

  // C = A B, or C += A B, or C -= A B, times alpha.
  void multiply(View<T> a, View<T> b, View<T> c, Extent e, int levels, Into into, T* memory) const {
    if (levels == 0) return multiply_packed(a, b, c, e, into);
    if (into == Into::overwrite) return one_level(a, b, c, e, levels, memory);
    const View<T> product{memory, e.n + kRowPad, 1};
    one_level(a, b, product, e, levels, memory + padded(e.m, e.n));
    add(product, into == Into::add ? 1 : -1, c, e.m, e.n);
  }

  // Nothing infinite or NaN in it. A sum may overflow, and infinities may cancel, where the product
  // as defined is finite; either shows in the result, since each sum enters some part of it.
  static bool is_finite(View<T> x, std::int64_t m, std::int64_t n) {
    std::atomic<bool> finite{true};
    each_band<T>(m, n, [&](std::int64_t i, std::int64_t count) {
      if (!sums<T>().finite(count, n, x.data + i * x.row, x.row))
        finite.store(false, std::memory_order_relaxed);
    });
    return finite.load(std::memory_order_relaxed);
  }

  // c = x + beta * c.
  static void blend(View<T> x, double beta, View<T> c, std::int64_t m, std::int64_t n) {
    each_band<T>(m, n, [&](std::int64_t i, std::int64_t count) {
      sums<T>().blend(count, n, x.data + i * x.row, x.row, beta, c.data + i * c.row, c.row);
    });
  }

 private:
  static std::int64_t padded(std::int64_t lines, std::int64_t length) {
    return lines * (length + kRowPad);
  }

  void multiply_packed(View<T> a, View<T> b, View<T> c, Extent e, Into into) const {
    MatmulProblem p{};
    p.dtype = dtype_;
    p.batch = 1;
    p.m = e.m, p.n = e.n, p.k = e.k;
    p.a = a.data, p.a_row = a.row, p.a_col = a.col;
    p.b = b.data, p.b_row = b.row, p.b_col = b.col;
    p.c = c.data, p.c_row = c.row, p.c_col = c.col;
    p.alpha = into == Into::subtract ? -alpha_ : alpha_;
    p.beta = into == Into::overwrite ? 0 : 1;
    run_packed(p);
  }

  // out = x + sign * y; all three lie alike.
  static void sum(View<T> x, int sign, View<T> y, View<T> out, std::int64_t rows,
                  std::int64_t cols) {
    if (!out.by_rows())  // the same elements, columns as rows
      return sum({x.data, x.col, x.row}, sign, {y.data, y.col, y.row}, {out.data, out.col, out.row},
                 cols, rows);
    const auto run = sign > 0 ? sums<T>().add : sums<T>().subtract;
    each_band<T>(rows, cols, [&](std::int64_t i, std::int64_t count) {
      run(count, cols, x.data + i * x.row, x.row, y.data + i * y.row, y.row, out.data + i * out.row,
          out.row);
    });
  }
  static void add(View<T> x, int sign, View<T> c, std::int64_t m, std::int64_t n) {
    sum(c, sign, x, c, m, n);
  }

  // A buffer that lies as its source does, so that packing finds what it would have found there.
  static View<T> buffer(T*& memory, const View<T>& like, std::int64_t rows, std::int64_t cols) {
    const std::int64_t length = (like.by_rows() ? cols : rows) + kRowPad;
    const View<T> out{memory, like.by_rows() ? length : 1, like.by_rows() ? 1 : length};
    memory += std::max(padded(rows, cols), padded(cols, rows));
    return out;
  }

  void one_level(View<T> a, View<T> b, View<T> c, Extent e, int levels, T* memory) const {
    const Extent h = e.half();
    const auto A = [&](int i, int j) { return a.quadrant(i, j, h.m, h.k); };
    const auto B = [&](int i, int j) { return b.quadrant(i, j, h.k, h.n); };
    const auto C = [&](int i, int j) { return c.quadrant(i, j, h.m, h.n); };
    const View<T> x = buffer(memory, a, h.m, h.k), y = buffer(memory, b, h.k, h.n);
    const auto sum_a = [&](View<T> p, int sign, View<T> q) { sum(p, sign, q, x, h.m, h.k); };
    const auto sum_b = [&](View<T> p, int sign, View<T> q) { sum(p, sign, q, y, h.k, h.n); };
    const auto product = [&](View<T> p, View<T> q, View<T> out, Into into) {
      multiply(p, q, out, h, levels - 1, into, memory);
    };
    sum_a(A(0, 0), -1, A(1, 0));                          // S3 = A11 - A21
    sum_b(B(1, 1), -1, B(0, 1));                          // T3 = B22 - B12
    product(x, y, C(1, 0), Into::overwrite);              // P7
    sum_a(A(1, 0), 1, A(1, 1));                           // S1 = A21 + A22
    sum_b(B(0, 1), -1, B(0, 0));                          // T1 = B12 - B11
    product(x, y, C(1, 1), Into::overwrite);              // P5
    sum_a(x, -1, A(0, 0));                                // S2 = S1 - A11
    sum_b(B(1, 1), -1, y);                                // T2 = B22 - T1
    product(x, y, C(0, 1), Into::overwrite);              // P6
    product(A(0, 0), B(0, 0), C(0, 0), Into::overwrite);  // P1
    each_band<T>(h.m, h.n, [&](std::int64_t i, std::int64_t count) {
      const std::int64_t at = i * c.row;
      sums<T>().join(count, h.n, C(0, 0).data + at, C(0, 1).data + at, C(1, 0).data + at,
                     C(1, 1).data + at, c.row);
    });
    sum_a(A(0, 1), -1, x);                          // S4 = A12 - S2
    product(x, B(1, 1), C(0, 1), Into::add);        // P3
    sum_b(y, -1, B(1, 0));                          // T4 = T2 - B21
    product(A(1, 1), y, C(1, 0), Into::subtract);   // P4
    product(A(0, 1), B(1, 0), C(0, 0), Into::add);  // P2
  }

  const DType dtype_;
  const double alpha_;
};

bool has_unit(std::int64_t row, std::int64_t col) { return row == 1 || col == 1; }

// 0: the product is the packed rung's as it is.
int levels_of(const MatmulProblem& p) {
  if (!has_unit(p.a_row, p.a_col) || !has_unit(p.b_row, p.b_col) || !has_unit(p.c_row, p.c_col))
    return 0;
  const std::int64_t smallest = std::min({p.m, p.n, p.k});
  int levels = 0;
  while (levels < kMostLevels && (smallest >> levels) >= matmul_tuning().strassen_extent) ++levels;
  return levels;
}

// Largest multiples that halve evenly; the columns in whole vectors.
Extent even_part(const MatmulProblem& p, int levels) {
  const std::int64_t step = std::int64_t{1} << levels, wide = step * lanes_of(p.dtype);
  return {p.m / step * step, p.n / wide * wide, p.k / step * step};
}

// False, with C as it was or to be overwritten, where the result is not finite.
template <class T>
bool run_even_part(const MatmulProblem& p, Extent e, int levels, View<T> a, View<T> b, View<T> c) {
  const Winograd<T> winograd(p, p.alpha);
  const bool adds = p.beta != 0;
  const std::int64_t whole = adds ? e.m * (e.n + kRowPad) : 0;
  const Scratch memory((whole + Winograd<T>::scratch(e, levels, false)) * sizeof(T));
  T* const scratch = memory.as<T>();
  const View<T> product = adds ? View<T>{scratch, e.n + kRowPad, 1} : c;
  winograd.multiply(a, b, product, e, levels, Into::overwrite, scratch + whole);
  if (!Winograd<T>::is_finite(product, e.m, e.n)) return false;
  if (adds) Winograd<T>::blend(product, p.beta, c, e.m, e.n);
  return true;
}

template <class T> void run_one(const MatmulProblem& p, int levels) {
  const Extent e = even_part(p, levels);
  const View<T> a{static_cast<T*>(const_cast<void*>(p.a)), p.a_row, p.a_col};
  const View<T> b{static_cast<T*>(const_cast<void*>(p.b)), p.b_row, p.b_col};
  const View<T> c{static_cast<T*>(p.c), p.c_row, p.c_col};
  if (!run_even_part(p, e, levels, a, b, c)) return run_packed(p);
  // What the even part leaves: the rest of k, then rows below and columns beside.
  MatmulProblem rest = p;
  rest.m = e.m, rest.n = e.n, rest.k = p.k - e.k;
  rest.a = a.data + e.k * a.col, rest.b = b.data + e.k * b.row;
  rest.beta = 1;
  if (rest.k > 0) run_packed(rest);
  rest = p;
  rest.m = p.m - e.m;
  rest.a = a.data + e.m * a.row, rest.c = c.data + e.m * c.row;
  if (rest.m > 0) run_packed(rest);
  rest = p;
  rest.m = e.m, rest.n = p.n - e.n;
  rest.b = b.data + e.n * b.col, rest.c = c.data + e.n * c.col;
  if (rest.n > 0) run_packed(rest);
}

}  // namespace

StrassenCost strassen_cost(const MatmulProblem& p) {
  // The precision setting is about float32; the free choice leaves float64 exact.
  if (p.dtype != DType::float32) return {std::numeric_limits<double>::infinity(), 0};
  const int levels = levels_of(p);
  const double m = double(p.m), n = double(p.n), k = double(p.k);
  double products = 1, sums = 0;
  for (int level = 0; level < levels; ++level) {
    // Four sums of A, four of B, one pass over C, and what an inner level adds to C.
    const double streams = 12 * (m * k + k * n) / 4 + (level + 1 < levels ? 16 : 7) * m * n / 4;
    sums += products * streams / std::pow(4.0, level);
    products *= 7;
  }
  MatmulProblem leaf = p;
  leaf.batch = 1;
  leaf.m >>= levels, leaf.n >>= levels, leaf.k >>= levels;
  const double batch = double(p.batch);
  return {batch * products * packed_ns(leaf), batch * sums * matmul_tuning().strassen_ns_per_sum};
}

void run_strassen(const MatmulProblem& given) {
  const MatmulProblem p = given.c_col == 1 ? given : transposed(given);
  const int levels = is_empty(p) ? 0 : levels_of(p);
  if (levels == 0) return run_packed(p);
  const std::int64_t size = size_of(p.dtype);
  MatmulProblem one = p;
  one.epilogue = {};
  for (std::int64_t i = 0; i < p.batch; ++i) {
    one.batch = 1;
    one.a = static_cast<const char*>(p.a) + i * p.a_batch * size;
    one.b = static_cast<const char*>(p.b) + i * p.b_batch * size;
    one.c = static_cast<char*>(p.c) + i * p.c_batch * size;
    p.dtype == DType::float32 ? run_one<float>(one, levels) : run_one<double>(one, levels);
  }
  apply_epilogue(p);
}

}  // namespace tw
