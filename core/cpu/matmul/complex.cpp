#include "core/cpu/matmul/complex.h"

#include <algorithm>

#include "core/base/thresholds.h"
#include "core/cpu/matmul/layout.h"
#include "core/memory/scratch.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// Rearranged operands take at most so much memory: longer sums are added up in runs, and matrices
// of a batch go together while they stay in a cache.
constexpr int64_t kMostBytes = thresholds::kCopiedOperandBytes;
// To write a real number of a rearranged operand, and of a result that is joined.
constexpr double kNsPerMoved = 0.12, kNsPerJoined = 0.3;

const MatmulTable::ComplexParts& parts_of(DType t) {
  return active_kernels().matmul->complex[t == DType::complex128];
}

// A real product of strides in real numbers.
MatmulProblem real_problem(const MatmulProblem& p) {
  MatmulProblem real{};
  real.dtype = part_dtype(p.dtype);
  real.batch = 1;
  real.m = p.m, real.n = 2 * p.n, real.k = 2 * p.k;
  real.a_row = 2 * p.a_row, real.a_col = real.b_col = real.c_col = 1;
  real.b_row = 2 * p.n, real.c_row = 2 * p.c_row;
  real.alpha = p.alpha, real.beta = p.beta;
  return real;
}
RealProduct by_rows_twice(const MatmulProblem& p) {
  RealProduct out{p, real_problem(p), false, !is_unit(p.a_col, p.k), 0};
  const double m = double(p.m), n = double(p.n), k = double(p.k);
  if (out.copies) out.real.a_row = 2 * p.k;
  out.moved_ns = kNsPerMoved * (4 * k * n + (out.copies ? 2 * m * k : 0));
  return out;
}
RealProduct by_parts(const MatmulProblem& p) {
  RealProduct out{p, real_problem(p), true, !is_unit(p.b_col, p.n), 0};
  const double m = double(p.m), n = double(p.n), k = double(p.k);
  out.real.m = 2 * p.m, out.real.k = p.k;
  out.real.a_row = p.k;
  out.real.b_row = out.copies ? 2 * p.n : 2 * p.b_row;
  out.real.c_row = 2 * p.n;
  out.real.alpha = 1, out.real.beta = 0;
  out.moved_ns =
      kNsPerMoved * (2 * m * k + (out.copies ? 2 * k * n : 0)) + kNsPerJoined * 4 * m * n;
  return out;
}

// f(first row, rows) on all threads.
template <class F> void each_rows(int64_t rows, int64_t length, F&& f) {
  const int64_t grain = (thresholds::kHeavyGrain / (length + 1) + 8) / 8 * 8;
  parallel_ranges(rows, grain, [&](int64_t from, int64_t to) { f(from, to - from); });
}

// Terms [l, l + k) of matrices [first, first + count).
struct Piece {
  int64_t first, count, l, k;
};

class Rearranged {
 public:
  Rearranged(const RealProduct& plan, void (*run)(const void*))
      : p_(plan.complex), plan_(plan), run_(run), parts_(parts_of(plan.complex.dtype)) {}

  void multiply() {
    const int64_t part = size_of(plan_.real.dtype);
    const int64_t per_term = part * (plan_.by_parts ? 2 * p_.m + (plan_.copies ? 2 * p_.n : 0)
                                                    : 4 * p_.n + (plan_.copies ? 2 * p_.m : 0));
    const int64_t run = std::clamp<int64_t>(kMostBytes / std::max<int64_t>(per_term, 1), 8,
                                            std::max<int64_t>(p_.k, 8));
    const int64_t each =
        per_term * std::min(run, p_.k) + (plan_.by_parts ? 4 * part * p_.m * p_.n : 0);
    const int64_t group =
        std::clamp<int64_t>(thresholds::kSourceBytes / std::max<int64_t>(each, 1), 1, p_.batch);
    const Scratch memory(static_cast<std::size_t>(group * each));
    for (int64_t first = 0; first < p_.batch; first += group)
      for (int64_t l = 0; l == 0 || l < p_.k; l += run) {
        const Piece piece{first, std::min(group, p_.batch - first), l, std::min(run, p_.k - l)};
        plan_.by_parts ? multiply_parts(piece, memory.as<char>())
                       : multiply_twice(piece, memory.as<char>());
      }
  }

 private:
  const char* a_at(int64_t i, int64_t l) const {
    return static_cast<const char*>(p_.a) + (i * p_.a_batch + l * p_.a_col) * size();
  }
  const char* b_at(int64_t i, int64_t l) const {
    return static_cast<const char*>(p_.b) + (i * p_.b_batch + l * p_.b_row) * size();
  }
  char* c_at(int64_t i) const { return static_cast<char*>(p_.c) + i * p_.c_batch * size(); }
  int64_t size() const { return static_cast<int64_t>(size_of(p_.dtype)); }
  // The same rows of each matrix of a piece, `to` one after the other.
  template <class F>
  void each_matrix(const Piece& piece, int64_t rows, int64_t length, F&& f) const {
    for (int64_t i = 0; i < piece.count; ++i)
      each_rows(rows, length, [&](int64_t from, int64_t some) { f(i, from, some); });
  }

  void multiply_twice(const Piece& piece, char* room) const {
    const int64_t k = piece.k, n = p_.n, part = size() / 2;
    MatmulProblem real = plan_.real;
    real.batch = piece.count;
    real.k = 2 * k;
    real.b = room;
    real.b_batch = 4 * k * n;
    real.c = c_at(piece.first);
    real.c_batch = 2 * p_.c_batch;
    real.beta = piece.l == 0 ? p_.beta : 1;
    each_matrix(piece, k, n, [&](int64_t i, int64_t from, int64_t rows) {
      parts_.twice(rows, n, b_at(piece.first + i, piece.l + from), p_.b_row, p_.b_col,
                   room + (i * k + from) * 4 * n * part);
    });
    real.a = a_at(piece.first, piece.l);
    real.a_batch = 2 * p_.a_batch;
    if (plan_.copies) {
      char* const rows_of_a = room + piece.count * 4 * k * n * part;
      each_matrix(piece, p_.m, k, [&](int64_t i, int64_t from, int64_t rows) {
        parts_.rows(rows, k, a_at(piece.first + i, piece.l) + from * p_.a_row * size(), p_.a_row,
                    p_.a_col, rows_of_a + (i * p_.m + from) * k * size());
      });
      real.a = rows_of_a;
      real.a_row = 2 * k;
      real.a_batch = 2 * p_.m * k;
    }
    run_(&real);
  }

  void multiply_parts(const Piece& piece, char* room) const {
    const int64_t k = piece.k, m = p_.m, n = p_.n, part = size() / 2;
    char* const products = room;
    char* const parts = products + piece.count * 4 * m * n * part;
    MatmulProblem real = plan_.real;
    real.batch = piece.count;
    real.k = real.a_row = k;
    real.a = parts;
    real.a_batch = 2 * m * k;
    real.c = products;
    real.c_batch = 4 * m * n;
    for (int64_t i = 0; i < piece.count; ++i)
      parts_.apart(m, k, a_at(piece.first + i, piece.l), p_.a_row, p_.a_col,
                   parts + i * 2 * m * k * part);
    real.b = b_at(piece.first, piece.l);
    real.b_batch = 2 * p_.b_batch;
    if (plan_.copies) {
      char* const rows_of_b = parts + piece.count * 2 * m * k * part;
      each_matrix(piece, k, n, [&](int64_t i, int64_t from, int64_t rows) {
        parts_.rows(rows, n, b_at(piece.first + i, piece.l + from), p_.b_row, p_.b_col,
                    rows_of_b + (i * k + from) * n * size());
      });
      real.b = rows_of_b;
      real.b_batch = 2 * k * n;
    }
    run_(&real);
    for (int64_t i = 0; i < piece.count; ++i)
      parts_.join(m, n, products + i * 4 * m * n * part, p_.alpha, piece.l == 0 ? p_.beta : 1,
                  c_at(piece.first + i), p_.c_row, p_.c_col);
  }

  const MatmulProblem& p_;
  const RealProduct& plan_;
  void (*const run_)(const void*);
  const MatmulTable::ComplexParts& parts_;
};

// The products of two vectors, whose numbers lie one after the other: in pieces, so that bits do
// not depend on the number of threads.
bool is_of_vectors(const MatmulProblem& p) {
  return p.m == 1 && p.n == 1 && is_unit(p.a_col, p.k) && is_unit(p.b_row, p.k);
}
template <class Part> void multiply_vectors(const MatmulProblem& p, bool conjugate) {
  struct Sums {
    double of[4];
  };
  const auto products = parts_of(p.dtype).products;
  const int64_t pieces = (p.k + thresholds::kSumPiece - 1) / thresholds::kSumPiece;
  const Scratch memory(static_cast<std::size_t>(p.batch * pieces) * sizeof(Sums));
  auto* const sums = memory.as<Sums>();
  const int64_t grain = std::max<int64_t>(1, thresholds::kSumPiece / (p.k + 1));
  parallel_ranges(p.batch * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t i = at / pieces, l = at % pieces * thresholds::kSumPiece;
      sums[at] = {};
      products(std::min(thresholds::kSumPiece, p.k - l),
               static_cast<const Complex<Part>*>(p.a) + i * p.a_batch + l,
               static_cast<const Complex<Part>*>(p.b) + i * p.b_batch + l, sums[at].of);
    }
  });
  const double sign = conjugate ? -1 : 1;  // of a's imaginary parts
  for (int64_t i = 0; i < p.batch; ++i) {
    double re = 0, im = 0;
    for (const Sums* s = sums + i * pieces; s < sums + (i + 1) * pieces; ++s) {
      re += s->of[0] - sign * s->of[1];
      im += s->of[2] + sign * s->of[3];
    }
    auto& c = static_cast<Complex<Part>*>(p.c)[i * p.c_batch];
    re *= p.alpha, im *= p.alpha;
    if (p.beta != 0) re += p.beta * c.re, im += p.beta * c.im;
    c = {static_cast<Part>(re), static_cast<Part>(im)};
  }
}

}  // namespace

void multiply_vectors(const MatmulProblem& p, bool conjugate) {
  p.dtype == DType::complex64 ? multiply_vectors<float>(p, conjugate)
                              : multiply_vectors<double>(p, conjugate);
}

// Where a batch must not change a bit, the ways differ by layout alone.
RealProduct as_real(const MatmulProblem& p) {
  const MatmulProblem other = transposed(p);
  const bool fits = is_unit(p.c_col, p.n), other_fits = is_unit(other.c_col, other.n);
  if (is_batch_invariant())
    return p.c_col == 1 ? by_rows_twice(p) : other.c_col == 1 ? by_rows_twice(other) : by_parts(p);
  RealProduct best = by_parts(p);
  const auto consider = [&best](const RealProduct& way) {
    if (way.moved_ns < best.moved_ns) best = way;
  };
  consider(by_parts(other));
  if (fits) consider(by_rows_twice(p));
  if (other_fits) consider(by_rows_twice(other));
  return best;
}

void run_complex(const MatmulProblem& p, void (*run)(const void*)) {
  if (is_empty(p)) return;
  if (is_of_vectors(p) && !is_batch_invariant()) return multiply_vectors(p, false);
  const RealProduct plan = as_real(p);
  Rearranged(plan, run).multiply();
}

}  // namespace tw
