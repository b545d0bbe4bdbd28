// Recurrent layers on raw pointers: all time steps of one layer in one direction.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"
#include "core/problems/attribute_values.h"

namespace tw {

// All arrays are row-major: (steps, batch, blocks * hidden), states (batch, hidden).
struct RecurrentProblem {
  DType dtype;  // float32 or float64
  RecurrentCell cell;
  bool reverse;  // from the last step to the first
  std::int64_t steps, batch, hidden;
  const void* weight;   // (gates * hidden, hidden), of the states
  const void *h0, *c0;  // c0: of an LSTM
  // Forward. Without a weight of the inputs x holds their products. `kept` may be null: then c has
  // room for one step, and ends as the last.
  std::int64_t in;
  const void *x, *weight_ih;  // (gates * hidden, in)
  const void* bias;           // (gates * hidden,), or null
  const void* state_bias;     // GRU: (hidden,), added before the reset gate multiplies; or null
  bool keeps;
  void *y, *c, *kept;
  // Backward: gradients of y, c and kept, each null where there is none; and what they give, null
  // where it is not wanted. x is there where its weight's gradient is wanted, that weight where
  // x's is.
  bool gives_products, gives_weight, gives_biases;
  const void *dy, *dc, *dkept;
  void* dx;
  void* dproducts;  // of the products of the inputs, in place of dx
  void *dweight_ih, *dweight;
  void* dbias;        // (gates * hidden,)
  void* dstate_bias;  // GRU: (hidden,)
  void *dh0, *dc0;
};

void recurrent_forward(const RecurrentProblem& p);
void recurrent_backward(const RecurrentProblem& p);

// Products of some units: from the first of them, their distances by row and by gate.
struct RecurrentSums {
  const void* at;
  std::int64_t row, gate;
};
// One step of `rows` of the batch, of units [first, first + units). `before`: the states before it,
// h of a GRU and c of an LSTM.
struct RecurrentStep {
  std::int64_t rows, hidden, first, units;
  const void *before, *bias, *state_bias;
  RecurrentSums inputs, states;  // forward
  void *y, *c, *kept;
  const void *dy, *dc, *dkept;
  // Of the products of the inputs and, of a GRU, of the states: rows this far apart.
  void *dx, *dproducts;
  std::int64_t gradient_row;
  void *dh, *dcell;  // from the step after it; then, but for products, those of the states before
};
// All gates of some units from the first on, rows of a weight (gates * hidden, k), as the columns
// of a panel, gate by gate; zeros beyond the last unit.
struct RecurrentPanel {
  const void* weight;
  std::int64_t k, hidden, first, gates;
  void* to;
};
// to (rows, columns) = from + a (rows, k) @ panel (k, columns). `from` may be null.
struct RecurrentProduct {
  std::int64_t rows, k;
  const void* a;
  std::int64_t a_row;
  const void* panel;
  const void* from;
  std::int64_t from_row;
  void* to;
};
struct RecurrentTable {
  using Step = void (*)(const RecurrentStep& step);
  struct Products {
    int units;  // of a panel
    void (*pack)(const RecurrentPanel& panel);
    void (*multiply)(const RecurrentProduct& product);
  };
  struct Cells {
    Products products[4];  // by cell
    Step forward[4], backward[4];
  };
  Cells float32, float64;
};

}  // namespace tw
