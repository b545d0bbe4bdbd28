// Recurrent layers step by step: products of the states, then the cells; and the way back.
#include "core/cpu/recurrent.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>

#include "core/cpu/families.h"
#include "core/cpu/isa.h"
#include "core/cpu/lowering.h"
#include "core/cpu/recurrent_products.h"
#include "core/memory/scratch.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// ---- steps ----

// Rows of all steps together from which copying the weight pays.
constexpr int64_t kFewRows = 64;

int kept_of(const RecurrentProblem& p) { return kCellKept[static_cast<int>(p.cell)]; }

// The arrays of one step.
struct Places {
  const RecurrentProblem& p;
  int64_t states = p.batch * p.hidden * static_cast<int64_t>(size_of(p.dtype));  // bytes
  int64_t at(int64_t index) const { return step_at(p, index); }
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
  for (RecurrentSums* sums : {&s->inputs, &s->states})
    if (sums->at)
      sums->at = static_cast<const char*>(sums->at) +
                 rows * sums->row * static_cast<int64_t>(size_of(p.dtype));
  move(s->before, 1);
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
                    run(s);
                  });
}

bool has_many_rows(const RecurrentProblem& p) {
  return p.steps > 1 && p.steps * p.batch >= kFewRows;
}

// The arrays of the step that is `index`-th to run.
RecurrentStep forward_step(const RecurrentProblem& p, int64_t index) {
  const Places places{p};
  const int64_t t = places.at(index);
  RecurrentStep s{};
  s.hidden = s.units = p.hidden;
  s.bias = p.bias;
  s.state_bias = p.state_bias;
  s.y = places.in(p.y, t);
  s.kept = places.in(p.kept, t, kept_of(p));
  if (p.cell == RecurrentCell::lstm) {
    s.c = places.in(p.c, p.keeps ? t : 0);
    s.before = p.keeps || index == 0 ? places.before(p.c, p.c0, index) : p.c;
  } else {
    s.before = places.before(p.y, p.h0, index);
  }
  return s;
}

// Of few rows: the products of all units at once.
void forward_by_steps(const RecurrentProblem& p, RecurrentTable::Step cell) {
  const int64_t row = gates_of(p) * p.hidden;
  const StateProduct product(p.dtype, p.batch, p.hidden, row, {p.weight, 1, p.hidden}, p.hidden,
                             row, 0, false);
  const InputProducts inputs(p, false);
  const Scratch sums(static_cast<std::size_t>(p.batch * row) * size_of(p.dtype));
  for (int64_t i = 0; i < p.steps; ++i) {
    RecurrentStep s = forward_step(p, i);
    product(Places{p}.before(p.y, p.h0, i), sums.as<void>());
    s.inputs = inputs.of(step_at(p, i), 0);
    s.states = {sums.as<void>(), row, p.hidden};
    run_step(p, cell, s);
  }
}
// The products of some rows and of all gates of some units at a time, so that the cells find them
// in L1.
void forward_by_units(const RecurrentProblem& p, RecurrentTable::Step cell) {
  constexpr int64_t kRows = 64;  // whose products stay in L1
  const int64_t gates = gates_of(p), bytes = static_cast<int64_t>(size_of(p.dtype));
  const UnitPanels states(p, p.weight, p.hidden, std::min(kRows, p.batch),
                          (p.batch - 1) % kRows + 1);
  InputProducts inputs(p, true);
  const int64_t row_pieces = (p.batch + kRows - 1) / kRows;
  const int threads = threads_for(2 * p.batch * gates * p.hidden * p.hidden);
  for (int64_t i = 0; i < p.steps; ++i) {
    inputs.prepare(i);
    const RecurrentStep all = forward_step(p, i);
    const char* const h = static_cast<const char*>(Places{p}.before(p.y, p.h0, i));
    auto run_piece = [&](int64_t piece) {
      const int64_t row = piece % row_pieces * kRows, first = states.first_of(piece / row_pieces);
      RecurrentStep s = all;
      s.rows = std::min(kRows, p.batch - row);
      s.first = first;
      s.units = states.units_at(first);
      const int64_t width = gates * s.units;
      const Scratch sums(static_cast<std::size_t>(s.rows * width * bytes));
      states.multiply(first, s.rows, h + row * p.hidden * bytes, sums.as<void>());
      s.inputs = inputs.of(step_at(p, i), first);
      move_rows(p, row, &s);
      s.states = {sums.as<void>(), width, s.units};
      cell(s);
    };
    parallel_chunks(states.pieces() * row_pieces, run_piece, threads);
  }
}

}  // namespace

const RecurrentTable::Cells& cells_of(const RecurrentProblem& p) {
  const RecurrentTable& table = *active_kernels().recurrent;
  return p.dtype == DType::float64 ? table.float64 : table.float32;
}

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
// Words: also whether it keeps what the gradient reads.
void set_up_forward(const Call& call, void* problem) {
  RecurrentProblem& p = fresh(call, call.in[0], call.in[2].size(1), problem);
  p.in = call.in[0].size(2);
  p.keeps = call.words.flag(2);
}
void bind_forward(void* problem, void* const* at) {
  RecurrentProblem& p = *static_cast<RecurrentProblem*>(problem);
  p.x = at[0], p.weight_ih = at[1], p.weight = at[2], p.h0 = at[3], p.c0 = at[4];
  p.bias = at[5], p.state_bias = at[6];
  p.y = at[7];
  p.c = p.cell == RecurrentCell::lstm ? at[8] : nullptr;
  p.kept = p.keeps && kept_of(p) ? at[9] : nullptr;
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
  return 100 + 2.0 * double(p.steps * p.batch * p.hidden) *
                   double(gates_of(p) * (p.hidden + p.in)) / flops_per_ns;
}
template <void (*op)(const RecurrentProblem&)> void run(const void* problem) {
  op(*static_cast<const RecurrentProblem*>(problem));
}

}  // namespace

void register_recurrent_kernels() {
  add_kernel<RecurrentProblem>("recurrent_steps",
                               "products of some inputs, then a step at a time of the states, and "
                               "the cells on what is in cache",
                               refuses, set_up_forward, bind_forward, cost_ns,
                               run<recurrent_forward>, 0x7f);
  add_kernel<RecurrentProblem>(
      "recurrent_steps_backward", "the cells' gradients a step, then their product, backwards",
      refuses, set_up_backward, bind_backward, cost_ns, run<recurrent_backward>, 0x1ff);
}

}  // namespace tw
