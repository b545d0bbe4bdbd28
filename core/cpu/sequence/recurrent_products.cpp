// Recurrent layers' products: weights copied into panels, given to the ladder of matrix kernels.
#include "core/cpu/sequence/recurrent_products.h"

#include <algorithm>
#include <cstring>

#include "core/base/thresholds.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// Columns of a panel: a full tile of the matrix kernels. A panel is copied so that its rows follow
// each other: read where they lie, rows a power of two apart would share few sets of L1.
constexpr int64_t kPanel = 64;

// Rows of columns [first, first + width) of b, whose columns follow each other, one after the
// other.
void copy_panel(const Weight& b, int64_t k, int64_t first, int64_t width, std::size_t bytes,
                char* panel) {
  const char* from = static_cast<const char*>(b.at) + static_cast<std::size_t>(first) * bytes;
  const std::size_t row = static_cast<std::size_t>(width) * bytes;
  for (int64_t l = 0; l < k; ++l, panel += row)
    std::memcpy(panel, from + static_cast<std::size_t>(l * b.row) * bytes, row);
}

const Kernel& kernel_for(const MatmulProblem& p) {
  static const OpKernels* const ladder = find_op("matmul");
  return choose_inside(ladder, &p);
}

MatmulProblem product_of_inputs(const RecurrentProblem& p, void* sums) {
  const int64_t columns = gates_of(p) * p.hidden;
  MatmulProblem all =
      product_of(p.dtype, p.steps * p.batch, p.in, columns, {p.weight_ih, 1, p.in}, p.in, columns);
  all.a = p.x;
  all.c = sums;
  return all;
}
const void* moved(const void* at, int64_t bytes) { return static_cast<const char*>(at) + bytes; }
void* moved(void* at, int64_t bytes) { return static_cast<char*>(at) + bytes; }

}  // namespace

MatmulProblem product_of(DType dtype, int64_t m, int64_t k, int64_t n, const Weight& b,
                         int64_t a_row, int64_t c_row) {
  MatmulProblem p{};
  p.dtype = dtype;
  p.batch = 1;
  p.m = m, p.k = k, p.n = n;
  p.a_row = a_row, p.a_col = 1;
  p.b = b.at, p.b_row = b.row, p.b_col = b.column;
  p.c_row = c_row, p.c_col = 1;
  return p;
}

void multiply(const MatmulProblem& p, bool in_cache) {
  const Kernel& chosen = kernel_for(p);
  if (!in_cache || chosen.precision != Precision::ieee || !multiply_unpacked(p)) chosen.run(&p);
}
int threads_for(int64_t flops) { return flops < 2'000'000 ? 1 : kMostThreads; }

// ---- of the states, all units at once ----

StateProduct::StateProduct(DType dtype, int64_t m, int64_t k, int64_t n, const Weight& b,
                           int64_t a_row, int64_t c_row, double beta, bool many)
    : bytes_(size_of(dtype)), panels_(many ? static_cast<std::size_t>(k * n) * bytes_ : 0) {
  MatmulProblem p = product_of(dtype, m, k, n, b, a_row, c_row);
  p.beta = beta;
  if (!many) {
    add(p, 0);
    return;
  }
  for (int64_t j = 0; j < n; j += kPanel)
    copy_panel(b, k, j, std::min(kPanel, n - j), bytes_,
               panels_.as<char>() + static_cast<std::size_t>(j * k) * bytes_);
  const int64_t whole = n / kPanel, rest = n % kPanel;
  p.b_col = 1;
  if (whole) {
    p.batch = whole;
    p.n = p.b_row = p.c_batch = kPanel;
    p.b_batch = k * kPanel;
    p.b = panels_.as<char>();
    add(p, 0);
  }
  if (rest) {
    p.batch = 1;
    p.n = p.b_row = rest;
    p.b = panels_.as<char>() + static_cast<std::size_t>(whole * kPanel * k) * bytes_;
    add(p, whole * kPanel);
  }
}
void StateProduct::operator()(const void* a, void* c, int64_t rows) const {
  for (int i = 0; i < count_; ++i) {
    MatmulProblem p = parts_[i].problem;
    p.m = rows;
    p.a = a;
    p.c = static_cast<char*>(c) + static_cast<std::size_t>(parts_[i].column) * bytes_;
    parts_[i].kernel->run(&p);
  }
}
void StateProduct::add(const MatmulProblem& p, int64_t column) {
  parts_[count_++] = {p, &kernel_for(p), column};
}

// ---- of some units ----

UnitPanels::UnitPanels(const RecurrentProblem& p, const void* weight, int64_t k)
    : p_(p),
      products_(cells_of(p).products[static_cast<int>(p.cell)]),
      k_(k),
      panels_(static_cast<std::size_t>(pieces() * width() * k) * size_of(p.dtype)) {
  for (int64_t i = 0; i < pieces(); ++i)
    products_.pack({weight, k, p.hidden, first_of(i), gates_of(p), panel_at(first_of(i))});
}
void* UnitPanels::panel_at(int64_t first) const {
  return moved(panels_.as<void>(),
               first * gates_of(p_) * k_ * static_cast<int64_t>(size_of(p_.dtype)));
}
void UnitPanels::multiply(int64_t first, int64_t rows, const void* a, const void* from,
                          int64_t from_row, void* to) const {
  products_.multiply({rows, k_, a, k_, panel_at(first), from, from_row, to});
}

// ---- of the inputs ----

InputProducts::InputProducts(const RecurrentProblem& p, bool by_units)
    : p_(p), bytes_(static_cast<int64_t>(size_of(p.dtype))), sums_(bytes_in_advance(by_units)) {
  if (p.weight_ih && !panels_) {
    const MatmulProblem all = product_of_inputs(p, sums_.as<void>());
    kernel_for(all).run(&all);
  }
}
// Panels run at the rate of kernels that multiply and add; where another is chosen for the whole
// product, as on matrix units, it gets that.
std::size_t InputProducts::bytes_in_advance(bool by_units) {
  if (!p_.weight_ih) return 0;
  int64_t steps = p_.steps;
  if (by_units && kernel_for(product_of_inputs(p_, nullptr)).precision == Precision::ieee) {
    steps = steps_ = std::min(p_.steps, std::max<int64_t>(thresholds::kInputRows / p_.batch, 1));
    panels_.emplace(p_, p_.weight_ih, p_.in);
    if (p_.bias) bias_.emplace(p_, p_.bias, 1);
    return static_cast<std::size_t>(steps * p_.batch * panels_->pieces() * panels_->width() *
                                    bytes_);
  }
  return static_cast<std::size_t>(steps * p_.batch * gates_of(p_) * p_.hidden * bytes_);
}
void InputProducts::prepare(int64_t index) {
  if (!panels_ || index % steps_) return;
  const int64_t last = std::min(index + steps_, p_.steps) - 1;
  from_ = std::min(step_at(p_, index), step_at(p_, last));
  const int64_t rows = (last + 1 - index) * p_.batch;
  const void* const x = moved(p_.x, from_ * p_.batch * p_.in * bytes_);
  auto run_piece = [&](int64_t piece) {
    const int64_t first = panels_->first_of(piece);
    panels_->multiply(first, rows, x, bias_ ? bias_->panel(first) : nullptr, 0, sums_at(piece));
  };
  parallel_chunks(panels_->pieces(), run_piece,
                  threads_for(2 * rows * gates_of(p_) * p_.hidden * p_.in));
}
void* InputProducts::sums_at(int64_t piece) const {
  return moved(sums_.as<void>(), piece * steps_ * p_.batch * panels_->width() * bytes_);
}
RecurrentSums InputProducts::of(int64_t t, int64_t first) const {
  const int64_t gates = gates_of(p_);
  if (panels_) {
    const int64_t row = panels_->width();
    const void* const sums = sums_at(first / panels_->units());
    return {moved(sums, (t - from_) * p_.batch * row * bytes_), row, panels_->units()};
  }
  const int64_t row = gates * p_.hidden;
  const void* const all = p_.weight_ih ? sums_.as<const void>() : p_.x;
  return {moved(all, (t * p_.batch * row + first) * bytes_), row, p_.hidden};
}

}  // namespace tw
