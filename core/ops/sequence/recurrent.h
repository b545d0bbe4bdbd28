// What recurrent layers and their gradients share: cells, and parts of arrays of all steps.
#pragma once
#include <vector>

#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/move/join.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/shape/view.h"
#include "core/runtime/op.h"

namespace tw::recurrent {

enum Cell : Attribute { kTanh, kRelu, kLstm, kGru };
// Blocks of hidden numbers, as core/cpu/sequence/recurrent.h says.
inline constexpr int kGates[] = {1, 1, 4, 3}, kKept[] = {0, 0, 4, 4};

// Numbers [first, past) of an axis, as a view.
inline Tensor part(const Tensor& x, int axis, std::int64_t first, std::int64_t past) {
  std::vector<Range> ranges;
  for (int i = 0; i < x.rank(); ++i)
    ranges.push_back(i == axis ? Range{first, 1, past - first} : Range{0, 1, x.size(i)});
  return slice(x, ranges);
}
inline Tensor step_of(const Tensor& x, std::int64_t t) {
  return squeeze(part(x, 0, t, t + 1), {0});
}
// A block of hidden numbers of the last axis.
inline Tensor block(const Tensor& x, std::int64_t index, std::int64_t hidden) {
  return part(x, x.rank() - 1, index * hidden, (index + 1) * hidden);
}
inline Tensor stacked(const std::vector<Tensor>& steps) {
  std::vector<Tensor> expanded;
  for (const Tensor& x : steps) expanded.push_back(expand_dims(x, 0));
  return concat(expanded, 0);
}
inline Tensor transposed(const Tensor& x) { return swap_axes(x, 0, 1); }
inline Tensor rows_of_steps(const Tensor& x) {
  return reshape(x, {x.size(0) * x.size(1), x.size(2)});
}
inline Tensor nothing(const Tensor& like) { return zeros({0}, like.dtype()); }
inline Tensor without(const Tensor& x) { return 1 - x; }

inline Shape with_last(const Shape& shape, std::int64_t last) {
  Shape out = shape;
  out[out.rank() - 1] = last;
  return out;
}
inline Operand optional(const Tensor& x) { return x ? Operand(x) : Operand::none(); }
// Operands of recurrent_gradients: those of recurrent_steps_backward, then these. Its attributes:
// cell, reverse, whether the products of the inputs are x, whether the states' weight and the
// biases are wanted.
enum GradientsInput { kOfX = 9, kOfWeightIh, kGradientsInputs };
// What the gradient of recurrent_steps gives; what is not wanted is empty.
struct Gradients {
  Tensor x, weight_ih, weight_hh, bias_ih, bias_hh, h0, c0;
};
// The same as recurrent_gradients, of its operands and attributes, by other ops: each result by
// itself, as GPUs like it, which would copy the pieces to join them.
Gradients gradients_in_ops(const Operand* in, Attributes attributes);
// Of products of each row of `y` with so many elements of weights.
Estimate estimate_products(const Call& call, std::int64_t weights, const Meta& y);

}  // namespace tw::recurrent
