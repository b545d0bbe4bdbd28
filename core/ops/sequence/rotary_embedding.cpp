// Rotary position embedding: pairs of numbers, rotated by angles that grow with the position.
#include <vector>

#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/copy/copy.h"
#include "core/ops/engine/apply.h"
#include "core/ops/engine/records.h"
#include "core/ops/move/join.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/shape/view.h"

namespace tw {

extern const OpRecord kRotaryEmbedding;

namespace {

void check_angles(const Call& call, int input, const char* name) {
  const Meta &x = call.in[0], &angles = call.in[input];
  bool fits = angles.rank() >= 1 && angles.rank() <= x.rank();
  for (int i = 2; fits && i <= angles.rank(); ++i) {
    const std::int64_t size = angles.size(angles.rank() - i);
    fits = size == 1 || size == x.size(x.rank() - i);
  }
  if (!fits)
    fail(ErrorKind::value, call.op->name, ": ", name, " ", to_string(*angles.shape),
         " does not broadcast to the rows of x ", to_string(*x.shape));
}
void infer(Call& call, Result* results) {
  const Meta &x = call.in[0], &cos = call.in[1], &sin = call.in[2];
  for (int i = 0; i < 3; ++i)
    if (!is_floating(call.in[i].dtype))
      fail(ErrorKind::type, call.op->name, ": no kernel for ", name_of(call.in[i].dtype));
  if (x.rank() < 2)
    fail(ErrorKind::value, call.op->name, ": x must be (..., length, width), got ",
         to_string(*x.shape));
  check_angles(call, 1, "cos");
  check_angles(call, 2, "sin");
  const std::int64_t half = cos.size(cos.rank() - 1), width = x.size(x.rank() - 1);
  if (half != sin.size(sin.rank() - 1))
    fail(ErrorKind::value, call.op->name, ": cos ", to_string(*cos.shape), " and sin ",
         to_string(*sin.shape), " differ in their last extent");
  if (2 * half > width)
    fail(ErrorKind::value, call.op->name, ": cos has ", half, " angles, which rotate ", 2 * half,
         " numbers, but a row of x has ", width);
  results[0].shape = *x.shape;
  results[0].dtype = x.dtype;
}
// Two products and a sum an element; cos and sin stay in a cache.
Estimate estimate(const Call& call) {
  const auto count = static_cast<double>(call.in[0].count);
  return {3 * count, 2 * count * static_cast<double>(size_of(call.in[0].dtype))};
}

// On a device without kernels 16-bit numbers come as they are.
Tensor as_computed(const Operand& x, DType type) { return astype(x.tensor, working_dtype(type)); }
// `count` columns from `start` on.
Tensor columns(const Tensor& x, std::int64_t start, std::int64_t step, std::int64_t count) {
  std::vector<Range> ranges;
  for (int i = 0; i + 1 < x.rank(); ++i) ranges.push_back({0, 1, x.size(i)});
  ranges.push_back({start, step, count});
  return slice(x, ranges);
}
// The numbers of each pair, and what is behind the pairs.
struct Pairs {
  Tensor first, second, rest;
  Pairs(const Tensor& x, std::int64_t half, bool interleaved)
      : first(columns(x, 0, interleaved ? 2 : 1, half)),
        second(columns(x, interleaved ? 1 : half, interleaved ? 2 : 1, half)),
        rest(columns(x, 2 * half, 1, x.size(x.rank() - 1) - 2 * half)) {}
};
std::int64_t half_of(const Tensor& cos) { return cos.size(cos.rank() - 1); }

void body(const Use& use, Tensor* out) {
  const DType type = use.in[0].tensor.dtype();
  const Tensor x = as_computed(use.in[0], type), cos = as_computed(use.in[1], type),
               sin = as_computed(use.in[2], type);
  const bool interleaved = use.attributes.flag(0);
  const Pairs pairs(x, half_of(cos), interleaved);
  const Tensor first = pairs.first * cos - pairs.second * sin,
               second = pairs.first * sin + pairs.second * cos;
  const int last = x.rank() - 1;
  Tensor rotated;
  if (interleaved) {
    Shape shape = x.shape();
    shape[last] = 2 * half_of(cos);
    rotated = reshape(concat({expand_dims(first, -1), expand_dims(second, -1)}, -1), shape);
  } else {
    rotated = concat({first, second}, last);
  }
  out[0] = astype(concat({rotated, pairs.rest}, last), type);
}

// The gradient of a rotation is the rotation back.
void vjp(Vjp& v) {
  if (v.wants(0))
    v.give(0, apply(kRotaryEmbedding, {v.g(), v.in(1), -v.in(2).tensor}, v.attributes()));
  if (!v.wants(1) && !v.wants(2)) return;
  const bool interleaved = v.attributes().flag(0);
  const Shape angles = v.shape(1);
  const std::int64_t half = angles[angles.rank() - 1];
  const Pairs x(as_computed(v.in(0), v.dtype(0)), half, interleaved),
      g(as_computed(v.g(), v.dtype(0)), half, interleaved);
  if (v.wants(1)) v.give(1, g.first * x.first + g.second * x.second);
  if (v.wants(2)) v.give(2, g.second * x.first - g.first * x.second);
}

}  // namespace

constexpr OpRecord kRotaryEmbedding = {
    .name = "rotary_embedding",
    .signature = "(x: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool = False) -> Tensor",
    .help =
        "Rotary position embedding: pairs of each row's first numbers, rotated by the angles of "
        "their position.\n"
        "A pair (a, b) becomes (a * cos - b * sin, a * sin + b * cos). Pairs are the numbers i and "
        "i + half, or 2 * i and 2 * i + 1 if interleaved. What is behind the first 2 * half "
        "numbers stays.\n"
        "Shapes: x (..., length, width); cos and sin (length, half), or any that broadcast to "
        "(..., length, half); 2 * half is at most width; the result has x's shape.\n"
        "Types: floating. Result: the type of x.\n"
        "Raises ValueError for an x with fewer than two axes, and for cos or sin that do not "
        "broadcast, differ in half or have more angles than x has pairs.\n"
        "Source: J. Su et al., \"RoFormer: enhanced transformer with rotary position embedding\", "
        "2021.",
    .flags = kFunction,
    .infer = infer,
    .estimate = estimate,
    .body = body,
    .vjp = vjp,
    .reads = {{.inputs = 0b110}, {.inputs = 0b001}, {.inputs = 0b001}},
    .shapes = 0b110};

}  // namespace tw
