// Recurrent layers step by step: products of the states, then the cells; and the way back.
#include "core/cpu/recurrent.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>

#include "core/cpu/families.h"
#include "core/cpu/isa.h"
#include "core/cpu/lowering.h"
#include "core/cpu/matmul.h"
#include "core/memory/scratch.h"
#include "core/runtime/registry.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// ---- products of the states with the weight, the same at each step ----

// Columns of a panel: a full tile of the matrix kernels. A panel is copied so that its rows follow
// each other: read where they lie, rows a power of two apart would share few sets of L1.
constexpr int64_t kPanel = 64;
// Rows of all steps together from which copying the weight pays.
constexpr int64_t kFewRows = 64;

struct Weight {
  const void* at;
  int64_t row, column;  // strides in elements
};

// `width` columns of b, each by its number, as a panel of k rows.
template <class T, class ColumnOf>
void copy_panel(const Weight& b, int64_t k, int64_t width, ColumnOf column_of, T* panel) {
  constexpr int64_t kBlock = 16;  // of rows, whose lines stay in L1 while columns are walked
  const T* const from = static_cast<const T*>(b.at);
  for (int64_t l = 0; l < k; l += kBlock)
    for (int64_t i = 0; i < width; ++i) {
      const T* const column = from + column_of(i) * b.column;
      for (int64_t r = l; r < std::min(l + kBlock, k); ++r)
        panel[r * width + i] = column[r * b.row];
    }
}
template <class ColumnOf> void copy_panel(DType dtype, const Weight& b, int64_t k, int64_t width,
                                          ColumnOf column_of, void* panel) {
  if (dtype == DType::float64)
    copy_panel(b, k, width, column_of, static_cast<double*>(panel));
  else
    copy_panel(b, k, width, column_of, static_cast<float*>(panel));
}

const Kernel& kernel_for(const MatmulProblem& p) {
  static const OpKernels* const ladder = find_op("matmul");
  return choose_freely(ladder, &p);
}
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

// c (m, n) = a (m, k) @ b (k, n) + beta * c, for one b and many a.
class StateProduct {
 public:
  StateProduct(DType dtype, int64_t m, int64_t k, int64_t n, const Weight& b, int64_t a_row,
               int64_t c_row, double beta, bool many)
      : bytes_(size_of(dtype)), panels_(many ? static_cast<std::size_t>(k * n) * bytes_ : 0) {
    MatmulProblem p = product_of(dtype, m, k, n, b, a_row, c_row);
    p.beta = beta;
    if (!many) {
      add(p, 0);
      return;
    }
    for (int64_t j = 0; j < n; j += kPanel)
      copy_panel(
          dtype, b, k, std::min(kPanel, n - j), [j](int64_t i) { return j + i; },
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
  void operator()(const void* a, void* c) const {
    for (int i = 0; i < count_; ++i) {
      MatmulProblem p = parts_[i].problem;
      p.a = a;
      p.c = static_cast<char*>(c) + static_cast<std::size_t>(parts_[i].column) * bytes_;
      parts_[i].kernel->run(&p);
    }
  }

 private:
  void add(const MatmulProblem& p, int64_t column) {
    parts_[count_++] = {p, &kernel_for(p), column};
  }
  struct Part {
    MatmulProblem problem;
    const Kernel* kernel;
    int64_t column;
  };
  const std::size_t bytes_;
  Scratch panels_;
  Part parts_[2];
  int count_ = 0;
};

// The products of some rows and of all gates of some units at a time, so that the cells find them
// in L1: a panel's columns are those units, gate by gate.
class UnitProduct {
 public:
  UnitProduct(DType dtype, int64_t rows, int64_t hidden, int gates, const void* weight)
      : dtype_(dtype),
        bytes_(static_cast<int64_t>(size_of(dtype))),
        rows_(rows),
        hidden_(hidden),
        gates_(gates),
        units_(kPanel / gates / 16 * 16),
        panels_(static_cast<std::size_t>(gates * hidden * hidden * bytes_)) {
    const Weight b{weight, 1, hidden};  // transposed
    for (int64_t unit = 0; unit < hidden; unit += units_) {
      const int64_t count = units_at(unit);
      copy_panel(
          dtype, b, hidden, gates * count,
          [=](int64_t i) { return i / count * hidden + unit + i % count; }, panel_at(unit));
    }
    for (const bool last_units : {false, true})
      for (const bool last_rows : {false, true})
        kernels_[last_units][last_rows] = &kernel_for(
            problem(last_units ? last_unit() : 0, last_rows ? rows_ / kRows * kRows : 0));
  }
  int64_t pieces() const { return unit_pieces() * row_pieces(); }
  int64_t flops() const { return 2 * rows_ * gates_ * hidden_ * hidden_; }
  // body(first unit, units, first row, rows, sums) for a piece of the states h.
  template <class F> void run(int64_t piece, const void* h, F body) const {
    const int64_t unit = piece % unit_pieces() * units_, row = piece / unit_pieces() * kRows;
    MatmulProblem p = problem(unit, row);
    const Scratch sums(static_cast<std::size_t>(p.m * p.n * bytes_));
    p.a = static_cast<const char*>(h) + row * hidden_ * bytes_;
    p.c = sums.as<char>();
    kernels_[unit == last_unit()][p.m != kRows]->run(&p);
    body(unit, units_at(unit), row, p.m, p.c);
  }

 private:
  static constexpr int64_t kRows = 64;
  int64_t unit_pieces() const { return (hidden_ + units_ - 1) / units_; }
  int64_t row_pieces() const { return (rows_ + kRows - 1) / kRows; }
  int64_t last_unit() const { return (unit_pieces() - 1) * units_; }
  int64_t units_at(int64_t unit) const { return std::min(units_, hidden_ - unit); }
  char* panel_at(int64_t unit) const {
    return panels_.as<char>() + unit * gates_ * hidden_ * bytes_;
  }
  MatmulProblem problem(int64_t unit, int64_t row) const {
    const int64_t width = gates_ * units_at(unit);
    return product_of(dtype_, std::min(kRows, rows_ - row), hidden_, width,
                      {panel_at(unit), width, 1}, hidden_, width);
  }
  const DType dtype_;
  const int64_t bytes_, rows_, hidden_, gates_, units_;
  Scratch panels_;
  const Kernel* kernels_[2][2];  // of the last units, of the last rows
};

// ---- steps ----

int gates_of(const RecurrentProblem& p) { return kCellGates[static_cast<int>(p.cell)]; }
int kept_of(const RecurrentProblem& p) { return kCellKept[static_cast<int>(p.cell)]; }

// The arrays of one step.
struct Places {
  const RecurrentProblem& p;
  int64_t states = p.batch * p.hidden * static_cast<int64_t>(size_of(p.dtype));  // bytes
  // The place of a step that is `index`-th to run.
  int64_t at(int64_t index) const { return p.reverse ? p.steps - 1 - index : index; }
  template <class V> V* in(V* array, int64_t step, int blocks = 1) const {
    using Byte = std::conditional_t<std::is_const_v<V>, const char, char>;
    return array ? static_cast<Byte*>(array) + step * blocks * states : nullptr;
  }
  // The states before the step that is `index`-th.
  const void* before(const void* array, const void* first, int64_t index) const {
    return index == 0 ? first : in(array, at(index - 1));
  }
};

// So many elements of a step take some 10 us.
constexpr int64_t kPiece = 8192;

// The same step for the rows from `row` on.
void move_rows(const RecurrentProblem& p, int64_t rows, RecurrentStep* s) {
  const int gates = gates_of(p), kept = kept_of(p);
  const int64_t row = rows * p.hidden * static_cast<int64_t>(size_of(p.dtype));
  const auto move = [row](auto& array, int blocks) {
    using Byte =
        std::conditional_t<std::is_same_v<decltype(array), const void*&>, const char, char>;
    if (array) array = static_cast<Byte*>(array) + row * blocks;
  };
  move(s->x, gates), move(s->before, 1);
  move(s->y, 1), move(s->c, 1), move(s->kept, kept);
  move(s->dy, 1), move(s->dc, 1), move(s->dkept, kept);
  move(s->dx, gates), move(s->dproducts, gates);
  move(s->dh, 1), move(s->dcell, 1);
}
void run_step(const RecurrentProblem& p, RecurrentTable::Step run, const RecurrentStep& all) {
  parallel_ranges(p.batch, std::max<int64_t>(kPiece / (p.hidden + 1), 1),
                  [&](int64_t begin, int64_t end) {
                    RecurrentStep s = all;
                    s.rows = end - begin;
                    move_rows(p, begin, &s);
                    if (s.sums)
                      s.sums = static_cast<const char*>(s.sums) +
                               begin * s.sums_row * static_cast<int64_t>(size_of(p.dtype));
                    run(s);
                  });
}

const RecurrentTable::Cells& cells_of(const RecurrentProblem& p) {
  const RecurrentTable& table = *active_kernels().recurrent;
  return p.dtype == DType::float64 ? table.float64 : table.float32;
}
bool has_many_rows(const RecurrentProblem& p) {
  return p.steps > 1 && p.steps * p.batch >= kFewRows;
}

}  // namespace

namespace {

// The arrays of the step that is `index`-th to run.
RecurrentStep forward_step(const RecurrentProblem& p, int64_t index) {
  const Places places{p};
  const int64_t t = places.at(index);
  RecurrentStep s{};
  s.hidden = s.units = p.hidden;
  s.x = places.in(p.x, t, gates_of(p));
  s.bias = p.bias;
  s.y = places.in(p.y, t);
  s.c = places.in(p.c, t);
  s.kept = places.in(p.kept, t, kept_of(p));
  s.before = p.cell == RecurrentCell::lstm ? places.before(p.c, p.c0, index)
                                           : places.before(p.y, p.h0, index);
  return s;
}

// Of few rows: the products of all units stand in the place of what is kept until the cells read
// them.
void forward_by_steps(const RecurrentProblem& p, RecurrentTable::Step cell) {
  const int gates = gates_of(p), kept = kept_of(p);
  const int64_t row = (kept ? kept : 1) * p.hidden;
  const StateProduct product(p.dtype, p.batch, p.hidden, gates * p.hidden, {p.weight, 1, p.hidden},
                             p.hidden, row, 0, false);
  for (int64_t i = 0; i < p.steps; ++i) {
    RecurrentStep s = forward_step(p, i);
    void* const sums = kept ? s.kept : s.y;
    product(Places{p}.before(p.y, p.h0, i), sums);
    s.sums = sums;
    s.sums_row = row;
    s.sums_gate = p.hidden;
    run_step(p, cell, s);
  }
}
void forward_by_units(const RecurrentProblem& p, RecurrentTable::Step cell) {
  const UnitProduct product(p.dtype, p.batch, p.hidden, gates_of(p), p.weight);
  constexpr int64_t kAlone =
      2'000'000;  // flops below which waking others costs more than it brings
  const int threads = product.flops() < kAlone ? 1 : kMostThreads;
  for (int64_t i = 0; i < p.steps; ++i) {
    const RecurrentStep all = forward_step(p, i);
    const void* const h = Places{p}.before(p.y, p.h0, i);
    auto run_piece = [&](int64_t piece) {
      product.run(piece, h,
                  [&](int64_t unit, int64_t units, int64_t row, int64_t rows, void* sums) {
                    RecurrentStep s = all;
                    s.rows = rows, s.first = unit, s.units = units;
                    move_rows(p, row, &s);
                    s.sums = sums;
                    s.sums_row = gates_of(p) * units;
                    s.sums_gate = units;
                    cell(s);
                  });
    };
    parallel_chunks(product.pieces(), run_piece, threads);
  }
}

}  // namespace

void recurrent_forward(const RecurrentProblem& p) {
  const RecurrentTable::Step cell = cells_of(p).forward[static_cast<int>(p.cell)];
  has_many_rows(p) ? forward_by_units(p, cell) : forward_by_steps(p, cell);
}

void recurrent_backward(const RecurrentProblem& p) {
  const int gates = gates_of(p), kept = kept_of(p);
  const Places places{p};
  const bool is_gru = p.cell == RecurrentCell::gru, is_lstm = p.cell == RecurrentCell::lstm;
  const StateProduct product(p.dtype, p.batch, gates * p.hidden, p.hidden, {p.weight, p.hidden, 1},
                             gates * p.hidden, p.hidden, is_gru ? 1 : 0, has_many_rows(p));
  const RecurrentTable::Step cell = cells_of(p).backward[static_cast<int>(p.cell)];
  const auto bytes = static_cast<std::size_t>(places.states);
  // What one step hands to the one before it ends as the gradient of the first states.
  std::memset(p.dh0, 0, bytes);
  if (is_lstm) std::memset(p.dc0, 0, bytes);
  for (int64_t i = p.steps - 1; i >= 0; --i) {
    const int64_t t = places.at(i);
    RecurrentStep s{};
    s.hidden = s.units = p.hidden;
    s.before = is_lstm ? places.before(p.c, p.c0, i) : places.before(p.y, p.h0, i);
    s.y = places.in(p.y, t);
    s.c = places.in(p.c, t);
    s.kept = places.in(p.kept, t, kept);
    s.dy = places.in(p.dy, t);
    s.dc = places.in(p.dc, t);
    s.dkept = places.in(p.dkept, t, kept);
    s.dx = places.in(p.dx, t, gates);
    s.dproducts = places.in(p.dproducts, t, gates);
    s.dh = p.dh0;
    s.dcell = p.dc0;
    run_step(p, cell, s);
    product(is_gru ? s.dproducts : s.dx, p.dh0);
  }
}

// ---- the ops' kernels and lowerings ----

namespace {

const char* refuses(const Call& call) {
  for (int i = 0; i < call.inputs; ++i) {
    if (call.in[i].absent) continue;
    if (call.in[i].dtype != DType::float32 && call.in[i].dtype != DType::float64) return kTooNarrow;
  }
  return nullptr;
}

// Words: cell, reverse.
RecurrentProblem& fresh(const Call& call, const Meta& y_or_x, int64_t hidden, void* problem) {
  RecurrentProblem& p = *new (problem) RecurrentProblem{};
  p.dtype = call.in[0].dtype;
  p.cell = static_cast<RecurrentCell>(call.words[0]);
  p.reverse = call.words.flag(1);
  p.steps = y_or_x.size(0);
  p.batch = y_or_x.size(1);
  p.hidden = hidden;
  return p;
}
void set_up_forward(const Call& call, void* problem) {
  fresh(call, call.in[0], call.in[1].size(1), problem);
}
void bind_forward(void* problem, void* const* at) {
  RecurrentProblem& p = *static_cast<RecurrentProblem*>(problem);
  p.x = at[0], p.weight = at[1], p.h0 = at[2], p.c0 = at[3], p.bias = at[4];
  p.y = at[5];
  p.c = p.cell == RecurrentCell::lstm ? at[6] : nullptr;
  p.kept = kept_of(p) ? at[7] : nullptr;
}
void set_up_backward(const Call& call, void* problem) {
  fresh(call, call.in[0], call.in[0].size(2), problem);
}
void bind_backward(void* problem, void* const* at) {
  RecurrentProblem& p = *static_cast<RecurrentProblem*>(problem);
  p.y = at[0], p.c = at[1], p.kept = at[2];
  p.weight = at[3], p.h0 = at[4], p.c0 = at[5];
  p.dy = at[6], p.dc = at[7], p.dkept = at[8];
  p.dx = at[9];
  p.dproducts = p.cell == RecurrentCell::gru ? at[10] : nullptr;
  p.dh0 = at[11];
  p.dc0 = p.cell == RecurrentCell::lstm ? at[12] : nullptr;
}
double cost_ns(const void* problem) {
  const auto& p = *static_cast<const RecurrentProblem*>(problem);
  constexpr double flops_per_ns = 100;
  return 100 +
         2.0 * double(p.steps * p.batch * p.hidden) * double(gates_of(p) * p.hidden) / flops_per_ns;
}
template <void (*op)(const RecurrentProblem&)> void run(const void* problem) {
  op(*static_cast<const RecurrentProblem*>(problem));
}

}  // namespace

void register_recurrent_kernels() {
  add_kernel<RecurrentProblem>(
      "recurrent_steps", "a product of the states a step, then the cells on what is in cache",
      refuses, set_up_forward, bind_forward, cost_ns, run<recurrent_forward>, 0x1f);
  add_kernel<RecurrentProblem>(
      "recurrent_steps_backward", "the cells' gradients a step, then their product, backwards",
      refuses, set_up_backward, bind_backward, cost_ns, run<recurrent_backward>, 0x1ff);
}

}  // namespace tw
