// Recurrent layers on raw pointers: all time steps of one layer in one direction.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"

namespace tw {

enum class RecurrentCell : std::uint8_t { rnn_tanh, rnn_relu, lstm, gru };

// Blocks of `hidden` numbers: of a step's input products, and of what is kept for the gradient.
// LSTM: input, forget, cell and output gate. GRU: reset, update and new gate, and behind them what
// the reset gate multiplies.
inline constexpr int kCellGates[] = {1, 1, 4, 3}, kCellKept[] = {0, 0, 4, 4};

// All arrays are row-major: (steps, batch, blocks * hidden), states (batch, hidden).
struct RecurrentProblem {
  DType dtype;  // float32 or float64
  RecurrentCell cell;
  bool reverse;  // from the last step to the first
  std::int64_t steps, batch, hidden;
  const void* weight;   // (gates * hidden, hidden), of the states
  const void *h0, *c0;  // c0: of an LSTM
  // Forward.
  const void* x;     // products of the inputs, biases added
  const void* bias;  // GRU: (hidden,), added before the reset gate multiplies; or null
  void *y, *c, *kept;
  // Backward: gradients of y, c and kept, each null where there is none; and what they give.
  const void *dy, *dc, *dkept;
  void* dx;         // of x
  void* dproducts;  // GRU: of the products of the states
  void *dh0, *dc0;
};

void recurrent_forward(const RecurrentProblem& p);
// From y, c and kept, which it reads.
void recurrent_backward(const RecurrentProblem& p);

// One step of `rows` of the batch, of units [first, first + units). `before`: the states before it,
// h of a GRU and c of an LSTM.
struct RecurrentStep {
  std::int64_t rows, hidden, first, units;
  const void *x, *before, *bias;
  // Forward: products of the states, of these units alone; their distances by row and by gate. They
  // may stand where y or kept are written.
  const void* sums;
  std::int64_t sums_row, sums_gate;
  void *y, *c, *kept;
  const void *dy, *dc, *dkept;
  void *dx, *dproducts;
  void *dh, *dcell;  // from the step after it; then, but for products, those of the states before
};
struct RecurrentTable {
  using Step = void (*)(const RecurrentStep& step);
  struct Cells {
    Step forward[4], backward[4];  // by cell
  };
  Cells float32, float64;
};

}  // namespace tw
