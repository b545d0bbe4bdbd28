// Recurrent layers (Elman, 1990; Hochreiter, Schmidhuber, 1997; Cho et al., 2014): checks, the
// products of the inputs, and the steps as one op with a gradient.
#include "core/ops/sequence/recurrent.h"
#include "core/runtime/device.h"

#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/move/join.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/shape/view.h"
#include "core/runtime/device.h"

namespace tw {
namespace {

using std::int64_t;
using namespace recurrent;

// ---- the steps, by other ops ----

// x @ weight.T + bias of all steps.
Tensor input_products(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor sums = linear(rows_of_steps(x), weight, bias, false);
  return reshape(sums, {x.size(0), x.size(1), sums.size(1)});
}

// Operands of recurrent_steps.
enum StepsInput { kX, kWeightIh, kWeightHh, kH0, kC0, kBias, kStateBias };

// Attributes: cell, reverse, keeps.
void steps_body(const Use& use, Tensor* out) {
  const auto in = [&use](int i) -> const Tensor& { return use.in[i].tensor; };
  const Tensor &weight = in(kWeightHh), &bias = in(kStateBias);
  const Tensor x = in(kWeightIh) ? input_products(in(kX), in(kWeightIh), in(kBias)) : in(kX);
  const Attribute cell = use.attributes[0];
  const bool keeps = use.attributes.flag(2);
  const int64_t steps = x.size(0), hidden = weight.size(1);
  const auto count = static_cast<std::size_t>(steps);
  std::vector<Tensor> ys(count), cs(count), kept(count);
  Tensor h = in(kH0), c = in(kC0);
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = use.attributes.flag(1) ? steps - 1 - i : i;
    const Tensor a = step_of(x, t), products = matmul(h, transposed(weight));
    const auto sum = [&](int gate) {
      return block(a, gate, hidden) + block(products, gate, hidden);
    };
    if (cell == kTanh) h = tanh(sum(0));
    if (cell == kRelu) h = relu(sum(0));
    if (cell == kLstm) {
      const Tensor in = sigmoid(sum(0)), forget = sigmoid(sum(1)), g = tanh(sum(2)),
                   o = sigmoid(sum(3));
      c = forget * c + in * g;
      h = o * tanh(c);
      cs[static_cast<std::size_t>(t)] = c;
      kept[static_cast<std::size_t>(t)] = concat({in, forget, g, o}, 1);
    }
    if (cell == kGru) {
      const Tensor r = sigmoid(sum(0)), z = sigmoid(sum(1)), product = block(products, 2, hidden);
      const Tensor q = bias ? product + bias : product, n = tanh(block(a, 2, hidden) + r * q);
      h = without(z) * n + z * h;
      kept[static_cast<std::size_t>(t)] = concat({r, z, n, q}, 1);
    }
    ys[static_cast<std::size_t>(t)] = h;
  }
  out[0] = stacked(ys);
  out[1] = cell != kLstm ? nothing(x) : keeps ? stacked(cs) : stacked({c});
  out[2] = keeps && kKept[cell] ? stacked(kept) : nothing(x);
}

// ---- the steps as ops ----

void infer_steps(Call& call, Result* results) {
  const Attribute cell = call.attributes[0];
  const bool keeps = call.attributes.flag(2);
  const int64_t hidden = call.in[kWeightHh].size(1);
  const Shape y = with_last(*call.in[kX].shape, hidden);
  results[0].shape = y;
  results[1].shape = cell != kLstm ? Shape{0} : keeps ? y : Shape{1, y[1], hidden};
  results[2].shape = keeps && kKept[cell] ? with_last(y, kKept[cell] * hidden) : Shape{0};
  for (int i = 0; i < 3; ++i) results[i].dtype = call.in[0].dtype;
}
Estimate estimate_steps(const Call& call) {
  const Meta& weight_ih = call.in[kWeightIh];
  const int64_t of_inputs = weight_ih.absent ? 0 : weight_ih.count;
  return estimate_products(call, of_inputs + call.in[kWeightHh].count, call.out[0]);
}

// A tensor of this shape from element `at` of a flat one on.
Tensor taken(const Tensor& flat, int64_t at, const Shape& shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return reshape(part(flat, 0, at, at + count), shape);
}
Gradients gradients_at_once(const Vjp& v, const Operand* in, const AttributeList& attributes) {
  Tensor made[4];
  apply(kRecurrentGradients, in, kGradientsInputs, attributes, made);
  const int64_t hidden = v.out(0).size(2), gates = kGates[v.attributes()[0]] * hidden;
  const Tensor& x = in[kOfX].tensor;
  const int64_t width = x ? x.size(2) : 0;
  Gradients out;
  out.x = made[0];
  if (x) out.weight_ih = taken(made[1], 0, {gates, width});
  if (v.wants(kWeightHh)) out.weight_hh = taken(made[1], gates * width, {gates, hidden});
  if (v.wants(kBias)) out.bias_ih = taken(made[2], 0, {gates});
  if (v.wants(kStateBias)) out.bias_hh = taken(made[2], gates, {hidden});
  if (v.wants(kH0)) out.h0 = step_of(made[3], 0);
  if (v.wants(kC0)) out.c0 = step_of(made[3], 1);
  return out;
}
void steps_vjp(Vjp& v) {
  const Tensor y = v.out(0), h0 = v.in(kH0).tensor;
  const Attribute cell = v.attributes()[0];
  const Tensor x = v.wants(kWeightIh) ? v.in(kX).tensor : Tensor();
  const Tensor weight_ih = v.wants(kX) ? v.in(kWeightIh).tensor : Tensor();
  const Operand in[] = {y,
                        v.out(1),
                        v.out(2),
                        v.in(kWeightHh),
                        h0,
                        v.in(kC0),
                        optional(v.g(0)),
                        optional(v.g(1)),
                        optional(v.g(2)),
                        optional(x),
                        optional(weight_ih)};
  const AttributeList attributes = AttributeList(5)
                                       .set(0, cell)
                                       .set(1, v.attributes()[1])
                                       .set(2, v.wants(kX) && !weight_ih)
                                       .set(3, v.wants(kWeightHh))
                                       .set(4, v.wants(kBias) || v.wants(kStateBias));
  const Gradients made = active_kernel_set() == KernelSet::cuda
                             ? gradients_in_ops(in, attributes)
                             : gradients_at_once(v, in, attributes);
  if (v.wants(kX)) v.give(kX, made.x);
  if (x) v.give(kWeightIh, made.weight_ih);
  if (v.wants(kWeightHh)) v.give(kWeightHh, made.weight_hh);
  if (v.wants(kBias)) v.give(kBias, made.bias_ih);
  if (v.wants(kStateBias)) v.give(kStateBias, made.bias_hh);
  if (v.wants(kH0)) v.give(kH0, made.h0);
  if (v.wants(kC0)) v.give(kC0, made.c0);
}

// ---- layers ----

struct Layer {
  const char* op;
  Attribute cell;
  Tensor x, h, c, weight_ih, weight_hh, bias_ih, bias_hh;
  int64_t hidden() const { return weight_hh.size(1); }

  [[noreturn]] void fail_shape(const char* name, const Tensor& x, const std::string& wanted) const {
    fail(ErrorKind::value, op, ": ", name, " ", x.shape(), " must be ", wanted);
  }
  void check(const char* name, const Tensor& x, const Shape& wanted) const {
    if (x && !(x.shape() == wanted)) fail_shape(name, x, to_string(wanted));
  }
  // `x` is (steps, batch, in).
  void check() const {
    if (x.rank() != 3) fail_shape("input", x, "of three axes: (steps, batch, features)");
    if (x.size(0) == 0)
      fail(ErrorKind::value, op, ": the sequence has no steps: input ", x.shape());
    if (weight_hh.rank() != 2 || weight_hh.size(0) != kGates[cell] * weight_hh.size(1))
      fail_shape("weight_hh", weight_hh,
                 kGates[cell] == 1 ? "(hidden, hidden)"
                                   : "(" + std::to_string(kGates[cell]) + " * hidden, hidden)");
    const int64_t gates = kGates[cell] * hidden();
    check("weight_ih", weight_ih, {gates, x.size(2)});
    check("bias_ih", bias_ih, {gates});
    check("bias_hh", bias_hh, {gates});
    check("h0", h, {x.size(1), hidden()});
    check("c0", c, {x.size(1), hidden()});
  }
  // All in one floating type.
  void convert() {
    DType type = x.dtype();
    for (const Tensor* each : {&h, &c, &weight_ih, &weight_hh, &bias_ih, &bias_hh})
      if (*each) type = promote(type, each->dtype());
    if (!is_floating(type))
      fail(ErrorKind::type, op, ": floating point only, got ", name_of(type),
           "; convert with astype");
    for (Tensor* each : {&x, &h, &c, &weight_ih, &weight_hh, &bias_ih, &bias_hh})
      if (*each) *each = astype(*each, type);
  }
  // The bias that is added to the products of the inputs: both, but for that of a GRU's new gate.
  Tensor bias_of_inputs() const {
    if (!bias_hh) return bias_ih;
    Tensor second = bias_hh;
    if (cell == kGru)
      second = concat({part(bias_hh, 0, 0, 2 * hidden()), zeros({hidden()}, bias_hh.dtype())}, 0);
    return bias_ih ? bias_ih + second : second;
  }
  void run(bool reverse, Tensor* made) {
    check();
    convert();
    const Tensor bias = bias_of_inputs();
    const Tensor of_states =
        cell == kGru && bias_hh ? part(bias_hh, 0, 2 * hidden(), 3 * hidden()) : Tensor();
    Operand in[] = {x, weight_ih, weight_hh, h, optional(c), optional(bias), optional(of_states)};
    // GPUs' kernels are launched a step, on products of all steps, and keep what they pass.
    const bool on_gpu = active_kernel_set() == KernelSet::cuda;
    if (on_gpu || size_of(x.dtype()) < size_of(DType::float32)) {
      // Steps are taken in float32; the input's products need not be.
      in[kX] = input_products(x, weight_ih, bias);
      in[kWeightIh] = in[kBias] = Operand::none();
    }
    bool keeps = on_gpu;
    if (modes.grad)
      for (const Operand& each : in) keeps |= records(each.tensor);
    const AttributeList attributes = AttributeList(3).set(0, cell).set(1, reverse).set(2, keeps);
    apply(kRecurrentSteps, in, 7, attributes, made);
  }
};

// Operands: x, h0, [c0,] weight_ih, weight_hh, bias_ih, bias_hh.
Layer layer_of(const Use& use, Attribute cell) {
  const int at = cell == kLstm ? 3 : 2;
  const auto in = [&use](int i) -> const Tensor& { return use.in[i].tensor; };
  return {use.op.name, cell,       in(0),      in(1),     cell == kLstm ? in(2) : Tensor(),
          in(at),      in(at + 1), in(at + 2), in(at + 3)};
}

// The last state in time of the pass.
Tensor last_of(const Tensor& states, bool reverse) {
  return owned(step_of(states, reverse ? 0 : states.size(0) - 1));
}
// Attributes: reverse[, nonlinearity].
template <Attribute cell> void layer_body(const Use& use, Tensor* out) {
  Tensor made[3];
  const bool reverse = use.attributes.flag(0);
  layer_of(use, cell == kTanh && use.attributes[1] ? Attribute{kRelu} : cell).run(reverse, made);
  out[0] = made[0];
  out[1] = last_of(made[0], reverse);
  if (cell == kLstm) out[2] = last_of(made[1], reverse);
}
// One step, of x (batch, in). Attributes: [nonlinearity].
template <Attribute cell> void cell_body(const Use& use, Tensor* out) {
  Layer layer = layer_of(use, cell == kTanh && use.attributes[0] ? Attribute{kRelu} : cell);
  if (layer.x.rank() != 2) layer.fail_shape("input", layer.x, "of two axes: (batch, features)");
  layer.x = expand_dims(layer.x, 0);
  Tensor made[3];
  layer.run(false, made);
  out[0] = last_of(made[0], false);
  if (cell == kLstm) out[1] = last_of(made[1], false);
}

}  // namespace

// What the gradient reads of the inputs to go back through the steps.
constexpr std::uint64_t kReadBySteps = 1 << kWeightHh | 1 << kH0 | 1 << kC0;
constexpr OpRecord kRecurrentSteps = {
    .name = "recurrent_steps",
    .signature =
        "(x: Tensor, weight_ih: Tensor | None, weight_hh: Tensor, h0: Tensor, c0: Tensor | None, "
        "bias: Tensor | None, state_bias: Tensor | None, "
        "cell: 'rnn_tanh' | 'rnn_relu' | 'lstm' | 'gru', reverse: bool, keeps: bool) -> Tensor",
    .help =
        "All steps of a recurrent layer: states, cells of an LSTM, and what the gradient reads of "
        "the gates; without `keeps` the last cells alone, and nothing of the gates. Without "
        "weight_ih, x holds the products of the inputs.",
    .flags = kWidensAll,
    .results = 3,
    .infer = infer_steps,
    .estimate = estimate_steps,
    .body = steps_body,
    .vjp = steps_vjp,
    .reads = {{.inputs = kReadBySteps | 1 << kWeightIh, .results = 7},
              {.inputs = kReadBySteps | 1 << kX, .results = 7},
              {.inputs = kReadBySteps, .results = 7},
              {.inputs = kReadBySteps, .results = 7},
              {.inputs = kReadBySteps, .results = 7},
              {.inputs = kReadBySteps, .results = 7},
              {.inputs = kReadBySteps, .results = 7}},
    .smooth = 7};
constexpr OpRecord kRnnLayer = {
    .name = "rnn_layer",
    .signature =
        "(x: Tensor, h0: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor | None = "
        "None, bias_hh: Tensor | None = None, reverse: bool = False, "
        "nonlinearity: 'tanh' | 'relu' = 'tanh') -> tuple[Tensor, Tensor]",
    .help =
        "All steps of x (steps, batch, in) through an Elman layer from h0 (batch, hidden): the "
        "states (steps, batch, hidden), and the last one.\n"
        "h = tanh(weight_ih x + bias_ih + weight_hh h + bias_hh). Raises ValueError where shapes "
        "do not fit or there is no step. Source: Elman, \"Finding structure in time\" (1990).\n"
        "Shapes: x (steps, batch, in), h0 (batch, hidden), weight_ih (hidden, in), weight_hh "
        "(hidden, hidden), biases (hidden,); results (steps, batch, hidden) and (batch, hidden).\n"
        "Types: floating. Result: the same type.",
    .flags = kFunction,
    .results = 2,
    .body = layer_body<kTanh>,
    .autocast = Autocast::narrow};
constexpr OpRecord kLstmLayer = {
    .name = "lstm_layer",
    .signature =
        "(x: Tensor, h0: Tensor, c0: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor "
        "| None = None, bias_hh: Tensor | None = None, reverse: bool = False) -> "
        "tuple[Tensor, Tensor, Tensor]",
    .help =
        "All steps of x (steps, batch, in) through an LSTM from h0 and c0 (batch, hidden): the "
        "states (steps, batch, hidden), the last one and the last cells.\n"
        "Weights (4 * hidden, ...) and biases hold input, forget, cell and output gate, as in "
        "PyTorch. Raises ValueError where shapes do not fit or there is no step. Source: "
        "Hochreiter and Schmidhuber, \"Long short-term memory\" (1997).\n"
        "Shapes: x (steps, batch, in), h0 and c0 (batch, hidden), weight_ih (4 * hidden, in), "
        "weight_hh (4 * hidden, hidden), biases (4 * hidden,); results (steps, batch, hidden), "
        "then (batch, hidden) twice.\n"
        "Types: floating. Result: the same type.",
    .flags = kFunction,
    .results = 3,
    .body = layer_body<kLstm>,
    .autocast = Autocast::narrow};
constexpr OpRecord kGruLayer = {
    .name = "gru_layer",
    .signature =
        "(x: Tensor, h0: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor | None = "
        "None, bias_hh: Tensor | None = None, reverse: bool = False) -> tuple[Tensor, Tensor]",
    .help =
        "All steps of x (steps, batch, in) through a GRU from h0 (batch, hidden): the states "
        "(steps, batch, hidden), and the last one.\n"
        "Weights (3 * hidden, ...) and biases hold reset, update and new gate, as in PyTorch. "
        "Raises ValueError where shapes do not fit or there is no step. Source: Cho et al., "
        "\"Learning phrase representations using RNN encoder-decoder\" (2014).\n"
        "Shapes: x (steps, batch, in), h0 (batch, hidden), weight_ih (3 * hidden, in), weight_hh "
        "(3 * hidden, hidden), biases (3 * hidden,); results (steps, batch, hidden) and (batch, "
        "hidden).\n"
        "Types: floating. Result: the same type.",
    .flags = kFunction,
    .results = 2,
    .body = layer_body<kGru>,
    .autocast = Autocast::narrow};
constexpr OpRecord kRnnCell = {
    .name = "rnn_cell",
    .signature =
        "(x: Tensor, h: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor | None = "
        "None, bias_hh: Tensor | None = None, nonlinearity: 'tanh' | 'relu' = 'tanh') -> Tensor",
    .help =
        "One step of rnn_layer: x (batch, in), h and the result (batch, hidden).\n"
        "Shapes: weights and biases as for rnn_layer.\n"
        "Types: floating. Result: the same type.\n"
        "Raises ValueError for shapes that do not fit.\n"
        "Source: PyTorch's torch.nn.RNNCell.",
    .flags = kFunction,
    .body = cell_body<kTanh>,
    .autocast = Autocast::narrow};
constexpr OpRecord kLstmCell = {
    .name = "lstm_cell",
    .signature =
        "(x: Tensor, h: Tensor, c: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor "
        "| None = None, bias_hh: Tensor | None = None) -> tuple[Tensor, Tensor]",
    .help =
        "One step of lstm_layer: x (batch, in); h and c (batch, hidden), and so the new ones.\n"
        "Shapes: weights and biases as for lstm_layer.\n"
        "Types: floating. Result: the same type.\n"
        "Raises ValueError for shapes that do not fit.\n"
        "Source: PyTorch's torch.lstm_cell.",
    .flags = kFunction,
    .results = 2,
    .body = cell_body<kLstm>,
    .autocast = Autocast::narrow};
constexpr OpRecord kGruCell = {
    .name = "gru_cell",
    .signature =
        "(x: Tensor, h: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor | None = "
        "None, bias_hh: Tensor | None = None) -> Tensor",
    .help =
        "One step of gru_layer: x (batch, in), h and the result (batch, hidden).\n"
        "Shapes: weights and biases as for gru_layer.\n"
        "Types: floating. Result: the same type.\n"
        "Raises ValueError for shapes that do not fit.\n"
        "Source: PyTorch's torch.gru_cell.",
    .flags = kFunction,
    .body = cell_body<kGru>,
    .autocast = Autocast::narrow};

}  // namespace tw
