// Recurrent layers step by step: products of the states, then the cells.
#include "core/cpu/sequence/recurrent.h"

#include <algorithm>
#include <new>

#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/sequence/recurrent_products.h"
#include "core/memory/scratch.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// ---- steps ----

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
  const int64_t bytes = static_cast<int64_t>(size_of(p.dtype));
  const UnitPanels states(p, p.weight, p.hidden);
  InputProducts inputs(p, true);
  // A GRU's reset gate stands between the products of inputs and states.
  const bool adds = inputs.in_panels() && p.cell != RecurrentCell::gru;
  const int64_t row_pieces = (p.batch + kRows - 1) / kRows, width = states.width();
  const int threads = threads_for(2 * p.batch * gates_of(p) * p.hidden * p.hidden);
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
      s.inputs = inputs.of(step_at(p, i), first);
      if (inputs.in_panels()) s.bias = nullptr;
      move_rows(p, row, &s);
      const Scratch sums(static_cast<std::size_t>(s.rows * width * bytes));
      states.multiply(first, s.rows, h + row * p.hidden * bytes, adds ? s.inputs.at : nullptr,
                      width, sums.as<void>());
      s.states = {sums.as<void>(), width, states.units()};
      if (adds) s.inputs = {};
      cell(s);
    };
    parallel_chunks(states.pieces() * row_pieces, run_piece, threads);
  }
}

}  // namespace

void recurrent_forward(const RecurrentProblem& p) {
  const RecurrentTable::Step cell = cells_of(p).forward[static_cast<int>(p.cell)];
  has_many_rows(p) ? forward_by_units(p, cell) : forward_by_steps(p, cell);
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

// Attributes: cell, reverse.
RecurrentProblem& fresh(const Call& call, const Meta& y_or_x, int64_t hidden, void* problem) {
  RecurrentProblem& p = *new (problem) RecurrentProblem{};
  p.dtype = call.in[0].dtype;
  p.cell = static_cast<RecurrentCell>(call.attributes[0]);
  p.reverse = call.attributes.flag(1);
  p.steps = y_or_x.size(0);
  p.batch = y_or_x.size(1);
  p.hidden = hidden;
  return p;
}
// Attributes: also whether it keeps what the gradient reads.
void set_up_forward(const Call& call, void* problem) {
  RecurrentProblem& p = fresh(call, call.in[0], call.in[2].size(1), problem);
  p.in = call.in[0].size(2);
  p.keeps = call.attributes.flag(2);
}
void bind_forward(void* problem, void* const* at) {
  RecurrentProblem& p = *static_cast<RecurrentProblem*>(problem);
  p.x = at[0], p.weight_ih = at[1], p.weight = at[2], p.h0 = at[3], p.c0 = at[4];
  p.bias = at[5], p.state_bias = at[6];
  p.y = at[7];
  p.c = p.cell == RecurrentCell::lstm ? at[8] : nullptr;
  p.kept = p.keeps && kept_of(p) ? at[9] : nullptr;
}
// Inputs: y, c, kept, weight, h0, c0, dy, dc, dkept, x, weight_ih; results: dx, both weights'
// gradients, both biases', those of first states. Attributes: also whether dx is that of products,
// and which of the states' weight and the biases are wanted.
void set_up_backward(const Call& call, void* problem) {
  RecurrentProblem& p = fresh(call, call.in[0], call.in[0].size(2), problem);
  const Meta &x = call.in[9], &weight_ih = call.in[10];
  p.in = !x.absent ? x.size(2) : !weight_ih.absent ? weight_ih.size(1) : 0;
  p.gives_products = call.attributes.flag(2);
  p.gives_weight = call.attributes.flag(3);
  p.gives_biases = call.attributes.flag(4);
}
void bind_backward(void* problem, void* const* at) {
  RecurrentProblem& p = *static_cast<RecurrentProblem*>(problem);
  const auto moved = [&p](void* array, int64_t elements) {
    return static_cast<char*>(array) + elements * static_cast<int64_t>(size_of(p.dtype));
  };
  const int64_t gates = gates_of(p) * p.hidden;
  p.y = at[0], p.c = at[1], p.kept = at[2];
  p.weight = at[3], p.h0 = at[4], p.c0 = at[5];
  p.dy = at[6], p.dc = at[7], p.dkept = at[8];
  p.x = at[9], p.weight_ih = at[10];
  (p.gives_products ? p.dproducts : p.dx) = p.gives_products || p.weight_ih ? at[11] : nullptr;
  p.dweight_ih = p.x ? at[12] : nullptr;
  p.dweight = p.gives_weight ? moved(at[12], p.x ? gates * p.in : 0) : nullptr;
  p.dbias = p.gives_biases ? at[13] : nullptr;
  if (p.gives_biases && p.cell == RecurrentCell::gru) p.dstate_bias = moved(at[13], gates);
  p.dh0 = at[14];
  if (p.cell == RecurrentCell::lstm) p.dc0 = moved(at[14], p.batch * p.hidden);
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
                               {.refuses = refuses,
                                .set_up = set_up_forward,
                                .bind = bind_forward,
                                .cost_ns = cost_ns,
                                .run = run<recurrent_forward>,
                                .contiguous = 0x7f});
  add_kernel<RecurrentProblem>("recurrent_gradients",
                               "backwards a step at a time the cells and the product that leads to "
                               "the one before; of some steps together the weights' products",
                               {.refuses = refuses,
                                .set_up = set_up_backward,
                                .bind = bind_backward,
                                .cost_ns = cost_ns,
                                .run = run<recurrent_backward>,
                                .contiguous = 0x7ff});
}

}  // namespace tw
