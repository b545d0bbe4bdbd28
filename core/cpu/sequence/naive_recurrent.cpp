// The definition of recurrent layers: step after step and unit after unit, the products of inputs
// and states with their weights, then the cell. Backward the same steps from the last to the first,
// and at the end what all of them give to weights, biases and inputs. Sums are made in double.
#include <vector>

#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/pointwise/plain.h"
#include "core/cpu/sequence/recurrent_steps.h"

namespace tw {
namespace {

using std::int64_t;
using Numbers = std::vector<double>;

double sigmoid(double x) { return plain_value(PointwiseOp::sigmoid, x); }
double tanh(double x) { return plain_value(PointwiseOp::tanh, x); }

// Element i of row b of an array (steps, batch, width); null arrays are 0.
template <class T> struct Array {
  const void* at;
  int64_t batch, width;
  double operator()(int64_t t, int64_t b, int64_t i) const {
    return at ? double(static_cast<const T*>(at)[(t * batch + b) * width + i]) : 0;
  }
};
template <class T> void put(void* to, int64_t i, double x) {
  static_cast<T*>(to)[i] = static_cast<T>(x);
}
// The states before the step that is `index`-th to run.
template <class T> Array<T> states_before(const RecurrentProblem& p, const void* states,
                                          const void* first, int64_t index) {
  return {Places{p}.before(states, first, index), p.batch, p.hidden};
}

template <class T> void run_steps(const RecurrentProblem& p) {
  const int64_t h = p.hidden;
  const auto* const weight = static_cast<const T*>(p.weight);
  const auto* const weight_ih = static_cast<const T*>(p.weight_ih);
  const Array<T> x{p.x, p.batch, weight_ih ? p.in : gates_of(p) * h};
  const Array<T> bias{p.bias, 0, 0}, state_bias{p.state_bias, 0, 0};
  for (int64_t index = 0; index < p.steps; ++index) {
    const int64_t t = step_at(p, index), c_step = p.keeps ? t : 0;
    const auto h_before = states_before<T>(p, p.y, p.h0, index);
    Array<T> c_before = states_before<T>(p, p.c, p.c0, index);
    if (!p.keeps && index > 0) c_before.at = p.c;
    for (int64_t b = 0; b < p.batch; ++b)
      for (int64_t unit = 0; unit < h; ++unit) {
        double input[4] = {}, state[4] = {};  // what they give to each gate
        for (int gate = 0; gate < gates_of(p); ++gate) {
          const int64_t row = gate * h + unit;
          if (!weight_ih) input[gate] = x(t, b, row);
          for (int64_t i = 0; weight_ih && i < p.in; ++i)
            input[gate] += x(t, b, i) * double(weight_ih[row * p.in + i]);
          for (int64_t i = 0; i < h; ++i)
            state[gate] += h_before(0, b, i) * double(weight[row * h + i]);
          input[gate] += bias(0, 0, row);
        }
        const int64_t place = (t * p.batch + b) * h + unit;
        const auto keep = [&](double first, double second, double third, double fourth) {
          const double kept[] = {first, second, third, fourth};
          for (int k = 0; p.kept && k < 4; ++k)
            put<T>(p.kept, ((t * p.batch + b) * 4 + k) * h + unit, kept[k]);
        };
        if (p.cell == RecurrentCell::rnn_tanh) put<T>(p.y, place, tanh(input[0] + state[0]));
        if (p.cell == RecurrentCell::rnn_relu) {
          const double sum = input[0] + state[0];
          put<T>(p.y, place, sum < 0 ? 0 : sum);
        }
        if (p.cell == RecurrentCell::lstm) {
          const double in = sigmoid(input[0] + state[0]), forget = sigmoid(input[1] + state[1]),
                       cell = tanh(input[2] + state[2]), out = sigmoid(input[3] + state[3]);
          const double c = forget * c_before(0, b, unit) + in * cell;
          put<T>(p.c, (c_step * p.batch + b) * h + unit, c);
          put<T>(p.y, place, out * tanh(c));
          keep(in, forget, cell, out);
        }
        if (p.cell == RecurrentCell::gru) {
          const double reset = sigmoid(input[0] + state[0]), update = sigmoid(input[1] + state[1]);
          const double product = state[2] + state_bias(0, 0, unit);
          const double fresh = tanh(input[2] + reset * product);
          put<T>(p.y, place, (1 - update) * fresh + update * h_before(0, b, unit));
          keep(reset, update, fresh, product);
        }
      }
  }
}

// Gradients of what the inputs and the states give to each gate, (steps, batch, gates * hidden);
// dh and dc, (batch, hidden), are those of the states before the step at hand.
struct Gradients {
  Numbers inputs, states, dh, dc;
};

template <class T> void go_back(const RecurrentProblem& p, Gradients& d) {
  const int64_t h = p.hidden, width = gates_of(p) * h;
  const auto* const weight = static_cast<const T*>(p.weight);
  const Array<T> y{p.y, p.batch, h}, c{p.c, p.batch, h}, kept{p.kept, p.batch, 4 * h};
  const Array<T> dy{p.dy, p.batch, h}, dc{p.dc, p.batch, h}, dkept{p.dkept, p.batch, 4 * h};
  for (int64_t index = p.steps - 1; index >= 0; --index) {
    const int64_t t = step_at(p, index);
    const auto h_before = states_before<T>(p, p.y, p.h0, index);
    const auto c_before = states_before<T>(p, p.c, p.c0, index);
    for (int64_t b = 0; b < p.batch; ++b)
      for (int64_t unit = 0; unit < h; ++unit) {
        const int64_t place = b * h + unit;
        const double g = dy(t, b, unit) + d.dh[place];
        double k[4], dk[4], inputs[4] = {}, states[4] = {};  // dk: given besides
        for (int gate = 0; gate < 4 && p.kept; ++gate) {
          k[gate] = kept(t, b, gate * h + unit);
          dk[gate] = dkept(t, b, gate * h + unit);
        }
        double dh = 0;
        switch (p.cell) {
          case RecurrentCell::rnn_tanh:
            states[0] = inputs[0] = g * (1 - y(t, b, unit) * y(t, b, unit));
            break;
          case RecurrentCell::rnn_relu: states[0] = inputs[0] = y(t, b, unit) <= 0 ? 0 : g; break;
          case RecurrentCell::lstm: {
            const auto [in, forget, cell, out] = k;
            const double squashed = tanh(c(t, b, unit));
            const double of_c = dc(t, b, unit) + d.dc[place] + g * out * (1 - squashed * squashed);
            inputs[0] = (of_c * cell + dk[0]) * in * (1 - in);
            inputs[1] = (of_c * c_before(0, b, unit) + dk[1]) * forget * (1 - forget);
            inputs[2] = (of_c * in + dk[2]) * (1 - cell * cell);
            inputs[3] = (g * squashed + dk[3]) * out * (1 - out);
            for (int gate = 0; gate < 4; ++gate) states[gate] = inputs[gate];
            d.dc[place] = of_c * forget;
            break;
          }
          case RecurrentCell::gru: {
            const auto [reset, update, fresh, product] = k;
            inputs[2] = (g * (1 - update) + dk[2]) * (1 - fresh * fresh);
            inputs[1] = (g * (h_before(0, b, unit) - fresh) + dk[1]) * update * (1 - update);
            inputs[0] = (inputs[2] * product + dk[0]) * reset * (1 - reset);
            states[0] = inputs[0];
            states[1] = inputs[1];
            states[2] = inputs[2] * reset + dk[3];
            dh = g * update;
            break;
          }
        }
        for (int gate = 0; gate < gates_of(p); ++gate) {
          const int64_t at = (t * p.batch + b) * width + gate * h + unit;
          d.inputs[at] = inputs[gate];
          d.states[at] = states[gate];
        }
        d.dh[place] = dh;
      }
    for (int64_t b = 0; b < p.batch; ++b)
      for (int64_t unit = 0; unit < h; ++unit)
        for (int64_t row = 0; row < width; ++row)
          d.dh[b * h + unit] +=
              d.states[(t * p.batch + b) * width + row] * double(weight[row * h + unit]);
  }
}

// What the gates' gradients give to all else.
template <class T> void give(const RecurrentProblem& p, const Gradients& d) {
  const int64_t h = p.hidden, width = gates_of(p) * h, rows = p.steps * p.batch;
  // to[row of the weight, i] = sum of gradients times other(index of the step, t, b, i).
  const auto sum_over_steps = [&](const Numbers& gradients, int64_t first, int64_t past,
                                  int64_t columns, void* to, auto other) {
    for (int64_t row = first; row < past; ++row)
      for (int64_t i = 0; i < columns; ++i) {
        double sum = 0;
        for (int64_t index = 0; index < p.steps; ++index)
          for (int64_t b = 0; b < p.batch; ++b) {
            const int64_t t = step_at(p, index);
            sum += gradients[(t * p.batch + b) * width + row] * other(index, t, b, i);
          }
        put<T>(to, (row - first) * columns + i, sum);
      }
  };
  const Array<T> x{p.x, p.batch, p.in};
  const auto one = [](int64_t, int64_t, int64_t, int64_t) { return 1.0; };
  if (p.dx)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < p.in; ++i) {
        double sum = 0;
        for (int64_t k = 0; k < width; ++k)
          sum +=
              d.inputs[row * width + k] * double(static_cast<const T*>(p.weight_ih)[k * p.in + i]);
        put<T>(p.dx, row * p.in + i, sum);
      }
  if (p.dproducts)
    for (int64_t i = 0; i < rows * width; ++i) put<T>(p.dproducts, i, d.inputs[i]);
  if (p.dweight_ih)
    sum_over_steps(d.inputs, 0, width, p.in, p.dweight_ih,
                   [&](int64_t, int64_t t, int64_t b, int64_t i) { return x(t, b, i); });
  if (p.dweight)
    sum_over_steps(d.states, 0, width, h, p.dweight,
                   [&](int64_t index, int64_t, int64_t b, int64_t i) {
                     return states_before<T>(p, p.y, p.h0, index)(0, b, i);
                   });
  if (p.dbias) sum_over_steps(d.inputs, 0, width, 1, p.dbias, one);
  if (p.dstate_bias) sum_over_steps(d.states, 2 * h, 3 * h, 1, p.dstate_bias, one);
  for (int64_t i = 0; i < p.batch * h; ++i) {
    put<T>(p.dh0, i, d.dh[i]);
    if (p.dc0) put<T>(p.dc0, i, d.dc[i]);
  }
}

template <class T> void differentiate(const RecurrentProblem& p) {
  const auto states = static_cast<std::size_t>(p.batch * p.hidden);
  const auto gates = static_cast<std::size_t>(p.steps * gates_of(p)) * states;
  Gradients d = {Numbers(gates), Numbers(gates), Numbers(states), Numbers(states)};
  go_back<T>(p, d);
  give<T>(p, d);
}

void run(const void* problem) {
  const auto& p = *static_cast<const RecurrentProblem*>(problem);
  p.dtype == DType::float64 ? run_steps<double>(p) : run_steps<float>(p);
}
void run_backward(const void* problem) {
  const auto& p = *static_cast<const RecurrentProblem*>(problem);
  p.dtype == DType::float64 ? differentiate<double>(p) : differentiate<float>(p);
}

}  // namespace

void register_naive_recurrent_kernels() {
  add_definition("recurrent_steps", run);
  add_definition("recurrent_gradients", run_backward);
}

}  // namespace tw
