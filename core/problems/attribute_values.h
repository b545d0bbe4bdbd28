// Numbers by which attributes of internal ops say what a call is of. The ops that set them read
// them here, as do the lowerings of every device and the texts of GPU kernels, for which this is
// C++ that is CUDA C++ as well; what those choose by in the preprocessor is a macro.
#pragma once

namespace tw {

// ---- recurrent layers ----

#define TW_CELL_TANH 0
#define TW_CELL_RELU 1
#define TW_CELL_LSTM 2
#define TW_CELL_GRU 3
enum class RecurrentCell : unsigned char {
  rnn_tanh = TW_CELL_TANH,
  rnn_relu = TW_CELL_RELU,
  lstm = TW_CELL_LSTM,
  gru = TW_CELL_GRU
};
// Blocks of `hidden` numbers: of a step's input products, and of what is kept for the gradient.
// LSTM: input, forget, cell and output gate. GRU: reset, update and new gate, and behind them what
// the reset gate multiplies.
constexpr int gates_of(RecurrentCell cell) {
  return cell == RecurrentCell::gru ? 3 : cell == RecurrentCell::lstm ? 4 : 1;
}
constexpr int kept_of(RecurrentCell cell) { return cell >= RecurrentCell::lstm ? 4 : 0; }

// ---- images of another size ----

enum class ResampleMethod : unsigned char { nearest, nearest_exact, linear, cubic };

// ---- scatter ----

// What becomes of elements that meet in one place; `scatter_reduce_along` has an attribute for the
// first three. TW_JOIN_LATER: the later one stays.
#define TW_JOIN_PRODUCT 0
#define TW_JOIN_LARGEST 1
#define TW_JOIN_SMALLEST 2
#define TW_JOIN_SUM 3
#define TW_JOIN_LATER 4
enum class ScatterJoin : unsigned char {
  product = TW_JOIN_PRODUCT,
  largest = TW_JOIN_LARGEST,
  smallest = TW_JOIN_SMALLEST,
  sum = TW_JOIN_SUM,
  later = TW_JOIN_LATER
};

}  // namespace tw
