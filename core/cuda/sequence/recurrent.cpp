// Recurrent layers: a launch a step, and backward one more for the first states.
#include <new>

#include "core/cuda/gpu/families.h"
#include "core/cuda/gpu/add_kernel.h"
#include "core/cuda/sequence/recurrent_parameters.h"

namespace tw::cuda {

namespace {

using std::int64_t;

// Arrays of all steps, and the first states.
struct Problem {
  Recurrent all;
  const void *h0, *c0;
  int64_t steps;
  DType dtype;
  RecurrentCell cell;
  bool reverse;
};

const char* refuses(const Call& call) { return refuses_narrow(call); }

const char* refuses_forward(const Call& call) {
  if (!call.in[1].absent) return "the inputs' products are computed first";
  if (!call.attributes.flag(2)) return "the gates of all steps are kept";
  return refuses(call);
}

// Attributes: cell, reverse. `x`: an operand of (steps, batch, ...).
void set_up(const Call& call, int64_t hidden, void* problem) {
  Problem& p = *new (problem) Problem{};
  const Meta& x = call.in[0];
  p.dtype = x.dtype;
  p.cell = static_cast<RecurrentCell>(call.attributes[0]);
  p.reverse = call.attributes.flag(1);
  p.steps = x.size(0);
  p.all.batch = x.size(1);
  p.all.hidden = hidden;
}
void bind_forward(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  Recurrent& a = p.all;
  a.x = at[0], a.weight = at[2], p.h0 = at[3], p.c0 = at[4], a.bias = at[6];
  a.y = at[7];
  a.c = p.cell == RecurrentCell::lstm ? at[8] : nullptr;
  a.kept = kept_of(p.cell) ? at[9] : nullptr;
}
void bind_backward(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  Recurrent& a = p.all;
  a.y = at[0], a.c = at[1], a.kept = at[2], a.weight = at[3], p.h0 = at[4], p.c0 = at[5];
  a.dy = at[6], a.dc = at[7], a.dkept = at[8];
  a.dx = at[9];
  a.dproducts = p.cell == RecurrentCell::gru ? at[10] : nullptr;
  a.dh = at[11];
  a.dcell = p.cell == RecurrentCell::lstm ? at[12] : nullptr;
}

// What arrays hold of one step. Steps are numbered as they run, from 0 on.
struct Places {
  const Problem& p;
  int64_t state_bytes = p.all.batch * p.all.hidden * static_cast<int64_t>(size_of(p.dtype));

  template <class Void> Void* of(Void* all, int64_t step, int blocks = 1) const {
    using Byte = std::conditional_t<std::is_const_v<Void>, const char, char>;
    const int64_t t = p.reverse ? p.steps - 1 - step : step;
    return all ? static_cast<Byte*>(all) + t * state_bytes * blocks : nullptr;
  }
  const void* before(const void* all, const void* first, int64_t step) const {
    return step == 0 ? first : of(all, step - 1);
  }
  Recurrent step(int64_t i) const {
    const int gates = gates_of(p.cell), kept = kept_of(p.cell);
    Recurrent s = p.all;
    s.h_before = before(p.all.y, p.h0, i);
    s.c_before = before(p.all.c, p.c0, i);
    s.x = of(p.all.x, i, gates);
    s.y = of(p.all.y, i);
    s.c = of(p.all.c, i);
    s.kept = of(p.all.kept, i, kept);
    s.dy = of(p.all.dy, i);
    s.dc = of(p.all.dc, i);
    s.dkept = of(p.all.dkept, i, kept);
    s.dx = of(p.all.dx, i, gates);
    s.dproducts = of(p.all.dproducts, i, gates);
    return s;
  }
};

constexpr char kForward[] = "recurrent_step", kBackward[] = "recurrent_step_backward";

void launch(const Problem& p, const char* kernel, const Recurrent& step) {
  const std::uint64_t key =
      static_cast<std::uint64_t>(p.dtype) * 4 + static_cast<std::uint64_t>(p.cell);
  const Function function = kernel_of(kernel, key, "recurrent.cuh", kernel, [&] {
    return define("TW_TYPE", type_name(p.dtype)) +
           define("TW_CELL", std::to_string(static_cast<int>(p.cell)));
  });
  Grid grid;
  grid.blocks[0] = static_cast<unsigned>(divide_up(p.all.hidden, kStepUnits));
  grid.blocks[1] = static_cast<unsigned>(divide_up(p.all.batch, kStepRows));
  Gpu::current().launch(function, grid, &step);
}

void run_forward(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  if (p.all.batch * p.all.hidden == 0) return;
  for (int64_t i = 0; i < p.steps; ++i) launch(p, kForward, Places{p}.step(i));
}

// The cells' gradient that a step hands to the one before it stands in that of the first ones.
void run_backward(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  if (p.all.batch * p.all.hidden == 0) return;
  const void* later = nullptr;
  for (int64_t i = p.steps - 1; i >= 0; --i) {
    Recurrent s = Places{p}.step(i);
    s.later = later;
    launch(p, kBackward, s);
    later = p.cell == RecurrentCell::gru ? s.dproducts : s.dx;
  }
  Recurrent last = p.all;
  last.later = later;
  last.only_states = 1;
  launch(p, kBackward, last);
}

}  // namespace

void register_recurrent_kernels() {
  add_kernel<Problem>(
      "recurrent_steps", "a launch a step: the states' product, and the cell on it",
      {.refuses = refuses_forward,
       .set_up = [](const Call& call, void* problem) { set_up(call, call.in[2].size(1), problem); },
       .bind = bind_forward,
       .run = run_forward,
       .contiguous = 0x7f,
       .name = "steps"});
  add_kernel<Problem>(
      "recurrent_steps_backward", "a launch a step: the later step's product, and the cell on it",
      {.refuses = refuses,
       .set_up = [](const Call& call, void* problem) { set_up(call, call.in[0].size(2), problem); },
       .bind = bind_backward,
       .run = run_backward,
       .contiguous = 0x1ff,
       .name = "steps"});
}

}  // namespace tw::cuda
