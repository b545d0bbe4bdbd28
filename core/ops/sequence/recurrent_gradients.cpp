// Gradients of recurrent layers: the way back through the steps, and what their weights, biases and
// inputs get of it.
#include "core/ops/engine/apply.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/sequence/recurrent.h"
#include "core/ops/reduce/reduce.h"

namespace tw {
namespace recurrent {

Estimate estimate_products(const Call& call, std::int64_t weights, const Meta& y) {
  const double rows = double(y.size(0)) * double(y.size(1));
  double bytes = 0;
  for (int i = 0; i < call.inputs; ++i)
    if (!call.in[i].absent) bytes += double(call.in[i].count) * double(size_of(y.dtype));
  return {2 * rows * double(weights), bytes};
}
}  // namespace recurrent

namespace {

using std::int64_t;
using namespace recurrent;

// ---- of the products ----

// What the backward pass goes through, from the last step to the first.
struct Backward {
  const Use& use;
  const Attribute cell = use.attributes[0];
  const bool reverse = use.attributes.flag(1);
  const Tensor &y = use.in[0].tensor, &c = use.in[1].tensor, &kept = use.in[2].tensor,
               &weight = use.in[3].tensor;
  const int64_t steps = y.size(0), hidden = y.size(2);
  Tensor dh = zeros(use.in[4].tensor.shape(), y.dtype());
  Tensor dc = cell == kLstm ? zeros(dh.shape(), y.dtype()) : nothing(y);

  Tensor before(const Tensor& states, int first, int64_t t) const {
    const int64_t earlier = reverse ? t + 1 : t - 1;
    return earlier < 0 || earlier == steps ? use.in[first].tensor : step_of(states, earlier);
  }
  // Adds the gradient that is given of a step, where there is one.
  Tensor with_given(const Tensor& sum, int input, int64_t t, int gate = -1) const {
    const Tensor& given = use.in[input].tensor;
    if (!given) return sum;
    const Tensor g = step_of(given, t);
    return sum + (gate < 0 ? g : block(g, gate, hidden));
  }
  Tensor gate(int64_t t, int index) const { return block(step_of(kept, t), index, hidden); }

  Tensor rnn(int64_t t) {
    const Tensor dy = with_given(dh, 6, t), h = step_of(y, t);
    return cell == kRelu ? where(h <= 0, 0, dy) : dy * without(h * h);
  }
  Tensor lstm(int64_t t) {
    const Tensor in = gate(t, 0), forget = gate(t, 1), g = gate(t, 2), o = gate(t, 3),
                 squashed = tanh(step_of(c, t)), dy = with_given(dh, 6, t);
    const Tensor d = with_given(dc, 7, t) + dy * o * without(squashed * squashed);
    dc = d * forget;
    return concat({with_given(d * g, 8, t, 0) * in * without(in),
                   with_given(d * before(c, 5, t), 8, t, 1) * forget * without(forget),
                   with_given(d * in, 8, t, 2) * without(g * g),
                   with_given(dy * squashed, 8, t, 3) * o * without(o)},
                  1);
  }
  // Of the input's products, and of the states'.
  std::pair<Tensor, Tensor> gru(int64_t t) {
    const Tensor r = gate(t, 0), z = gate(t, 1), n = gate(t, 2), q = gate(t, 3),
                 dy = with_given(dh, 6, t);
    const Tensor dn = with_given(dy * without(z), 8, t, 2) * without(n * n);
    const Tensor dz = with_given(dy * (before(y, 4, t) - n), 8, t, 1) * z * without(z);
    const Tensor dr = with_given(dn * q, 8, t, 0) * r * without(r);
    dh = dy * z;
    return {concat({dr, dz, dn}, 1), concat({dr, dz, with_given(dn * r, 8, t, 3)}, 1)};
  }
};

void steps_backward_body(const Use& use, Tensor* out) {
  Backward pass{use};
  const auto count = static_cast<std::size_t>(pass.steps);
  std::vector<Tensor> dx(count), dproducts(count);
  for (int64_t i = pass.steps - 1; i >= 0; --i) {
    const int64_t t = pass.reverse ? pass.steps - 1 - i : i;
    const auto at = static_cast<std::size_t>(t);
    if (pass.cell == kGru) {
      std::tie(dx[at], dproducts[at]) = pass.gru(t);
      pass.dh = pass.dh + matmul(dproducts[at], pass.weight);
      continue;
    }
    dx[at] = pass.cell == kLstm ? pass.lstm(t) : pass.rnn(t);
    pass.dh = matmul(dx[at], pass.weight);
  }
  out[0] = stacked(dx);
  out[1] = pass.cell == kGru ? stacked(dproducts) : nothing(pass.y);
  out[2] = pass.dh;
  out[3] = pass.dc;
}

void infer_steps_backward(Call& call, Result* results) {
  const Attribute cell = call.attributes[0];
  const Shape &y = *call.in[0].shape, &h = *call.in[4].shape;
  const Shape dx = with_last(y, kGates[cell] * y[2]);
  results[0].shape = dx;
  results[1].shape = cell == kGru ? dx : Shape{0};
  results[2].shape = h;
  results[3].shape = cell == kLstm ? h : Shape{0};
  for (int i = 0; i < 4; ++i) results[i].dtype = call.in[0].dtype;
}

// ---- of all inputs ----

// The states before each step, as rows.
Tensor states_before(const Tensor& y, const Tensor& h0, bool reverse) {
  const int64_t steps = y.size(0);
  const Tensor first = expand_dims(h0, 0);
  if (steps == 1) return h0;
  return rows_of_steps(reverse ? concat({part(y, 0, 1, steps), first}, 0)
                               : concat({first, part(y, 0, 0, steps - 1)}, 0));
}

void infer_gradients(Call& call, Result* results) {
  const Meta &x = call.in[kOfX], &weight_ih = call.in[kOfWeightIh];
  const Shape &y = *call.in[0].shape, &h = *call.in[4].shape;
  const Attribute cell = call.attributes[0];
  const int64_t hidden = y[2], gates = kGates[cell] * hidden;
  results[0].shape = call.attributes.flag(2) ? with_last(y, gates)
                     : weight_ih.absent      ? Shape{0}
                                             : with_last(y, weight_ih.size(1));
  results[1].shape = {gates *
                      ((x.absent ? 0 : x.size(2)) + (call.attributes.flag(3) ? hidden : 0))};
  results[2].shape = {call.attributes.flag(4) ? gates + (cell == kGru ? hidden : 0) : 0};
  results[3].shape = {cell == kLstm ? 2 : 1, h[0], h[1]};
  for (int i = 0; i < 4; ++i) results[i].dtype = call.in[0].dtype;
}
Estimate estimate_gradients(const Call& call) {
  const Meta &x = call.in[kOfX], &weight_ih = call.in[kOfWeightIh], &y = call.in[0];
  const int64_t gates = kGates[call.attributes[0]] * y.size(2);
  const int64_t states = call.in[3].count * (1 + call.attributes.flag(3));
  return estimate_products(
      call, states + (x.absent ? 0 : gates * x.size(2)) + (weight_ih.absent ? 0 : weight_ih.count),
      y);
}
Tensor joined(const std::vector<Tensor>& parts, const Tensor& like) {
  std::vector<Tensor> flat;
  for (const Tensor& x : parts)
    if (x) flat.push_back(reshape(x, {x.count()}));
  return flat.empty() ? nothing(like) : concat(flat, 0);
}
void gradients_body(const Use& use, Tensor* out) {
  const Tensor& y = use.in[0].tensor;
  const Gradients made = gradients_in_ops(use.in, use.attributes);
  out[0] = made.x ? made.x : nothing(y);
  out[1] = joined({made.weight_ih, made.weight_hh}, y);
  out[2] = joined({made.bias_ih, made.bias_hh}, y);
  std::vector<Tensor> states = {expand_dims(made.h0, 0)};
  if (made.c0) states.push_back(expand_dims(made.c0, 0));
  out[3] = concat(states, 0);
}

}  // namespace

recurrent::Gradients recurrent::gradients_in_ops(const Operand* in, Attributes attributes) {
  const Tensor &y = in[0].tensor, &x = in[kOfX].tensor, &weight_ih = in[kOfWeightIh].tensor;
  const bool is_gru = attributes[0] == kGru;
  Tensor made[4];
  apply(kRecurrentStepsBackward, in, kOfX, AttributeList(attributes.at, 2), made);
  const Tensor &dx = made[0], &dproducts = is_gru ? made[1] : dx, sums = rows_of_steps(dx);
  Gradients out;
  if (attributes.flag(2)) out.x = dx;
  if (weight_ih)
    out.x = reshape(matmul(sums, weight_ih), {dx.size(0), dx.size(1), weight_ih.size(1)});
  if (x) out.weight_ih = matmul(transposed(sums), rows_of_steps(x));
  if (attributes.flag(3))
    out.weight_hh = matmul(transposed(rows_of_steps(dproducts)),
                           states_before(y, in[4].tensor, attributes.flag(1)));
  if (attributes.flag(4)) out.bias_ih = sum(dx, {0, 1}, false);
  if (attributes.flag(4) && is_gru)
    out.bias_hh = sum(block(dproducts, 2, y.size(2)), {0, 1}, false);
  out.h0 = made[2];
  if (attributes[0] == kLstm) out.c0 = made[3];
  return out;
}

constexpr OpRecord kRecurrentStepsBackward = {
    .name = "recurrent_steps_backward",
    .signature =
        "(y: Tensor, c: Tensor, kept: Tensor, weight: Tensor, h0: Tensor, c0: Tensor | None, "
        "dy: Tensor | None, dc: Tensor | None, dkept: Tensor | None, "
        "cell: 'rnn_tanh' | 'rnn_relu' | 'lstm' | 'gru', reverse: bool) -> Tensor",
    .help =
        "Gradients of recurrent_steps: of the products of inputs, of those of states (GRU), of h0 "
        "and c0.",
    .flags = kWidensAll,
    .results = 4,
    .infer = infer_steps_backward,
    .estimate =
        [](const Call& call) { return estimate_products(call, call.in[3].count, call.in[0]); },
    .body = steps_backward_body};
constexpr OpRecord kRecurrentGradients = {
    .name = "recurrent_gradients",
    .signature =
        "(y: Tensor, c: Tensor, kept: Tensor, weight: Tensor, h0: Tensor, c0: Tensor | None, "
        "dy: Tensor | None, dc: Tensor | None, dkept: Tensor | None, x: Tensor | None, weight_ih: "
        "Tensor | None, cell: 'rnn_tanh' | 'rnn_relu' | 'lstm' | 'gru', reverse: bool, products: "
        "bool, weights: bool, biases: bool) -> Tensor",
    .help =
        "Gradients of recurrent_steps: of x, where weight_ih or `products` is given; of weight_ih, "
        "where x is, and of the states' weight; of both biases; of h0 and c0. Those of a result "
        "follow each other.",
    .flags = kWidensAll,
    .results = 4,
    .infer = infer_gradients,
    .estimate = estimate_gradients,
    .body = gradients_body};

}  // namespace tw
