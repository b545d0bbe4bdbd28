// Distances of all rows of one matrix from all rows of another.
#include <cmath>
#include <limits>

#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/copy/arange.h"
#include "core/ops/copy/read.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

using std::int64_t;

// (b, n, k) and (b, m, k): a matrix of pairs for each of b, or one of vectors like x1.
void infer_pairs(Call& call, Result* results) {
  const Meta &x1 = call.in[0], &x2 = call.in[1];
  results[0].shape = {x1.size(0), x1.size(1), x2.size(1)};
  results[0].dtype = x1.dtype;
}
void infer_like_first(Call& call, Result* results) {
  results[0].like = 0;
  results[0].dtype = call.in[0].dtype;
}
Estimate estimate(const Call& call) {
  const Meta &x1 = call.in[0], &x2 = call.in[1];
  const double rows = double(x1.size(0)) * double(x1.size(1)), others = double(x2.size(1));
  const double values = double(x1.count) + double(x2.count) + rows * others;
  return {3 * rows * others * double(x1.size(2)), values * double(size_of(x1.dtype))};
}

// (b, n, m, k): each row of x1 beside each of x2.
Tensor first_of_pairs(const Tensor& x1) { return expand_dims(x1, -2); }
Tensor second_of_pairs(const Tensor& x2) { return expand_dims(x2, -3); }

// The p-norms of the last axis of a - b, which broadcast; of nothing 0.
Tensor distances(const Tensor& a, const Tensor& b, double p) {
  if (a.size(a.rank() - 1) == 0) return sum(a - b, {-1}, false);
  AttributeList attributes(3);
  attributes.set(0, attribute_of(p)).set(1, attribute_of(0.0)).set(2, false);
  return apply(kPairwiseDistance, {a, b}, attributes);
}

// The gradients of all pairs at once, for powers of distances that leave the range: of differences
// over the distance.
Tensor scaled_shares(const Tensor& x1, const Tensor& x2, const Tensor& size, const Tensor& g,
                     double p) {
  const Tensor d = first_of_pairs(x1) - second_of_pairs(x2), zero = d == Operand(0);
  const Tensor ratio = where(zero, 1, abs(d) / expand_dims(size, -1));
  return where(zero, 0, sign(d) * pow(ratio, p - 1)) * expand_dims(g, -1);
}

// |d| ** (p - 1) sign(d), which is 0 where d is.
Tensor slope(const Tensor& d, double p) {
  if (p == 2) return d;
  if (p == 1) return sign(d);
  const Tensor zero = d == Operand(0);
  return where(zero, 0, sign(d) * pow(where(zero, 1, abs(d)), p - 1));
}
Tensor backward(const Tensor& x1, const Tensor& x2, const Tensor& w, double p) {
  return apply(kPairDistancesBackward, {x1, x2, w}, AttributeList(1).set(0, attribute_of(p)));
}

// Of each pair, (b, n, m, k).
void give_shares(Vjp& v, const Tensor& share) {
  if (v.wants(0)) v.give(0, sum(share, {-2}, false));
  if (v.wants(1)) v.give(1, -sum(share, {-3}, false));
}
void vjp(Vjp& v) {
  const double p = v.attributes().real(0);
  const Tensor &x1 = v.in(0).tensor, &x2 = v.in(1).tensor, &g = v.g();
  if (std::isinf(p)) {
    const Tensor d = first_of_pairs(x1) - second_of_pairs(x2);
    const Tensor share =
        sign(d) * apply(kExtremumBackward, {abs(d), expand_dims(v.out(), -1), expand_dims(g, -1)},
                        AttributeList(1).set_list(0, std::vector<int64_t>{3}));
    return give_shares(v, share);
  }
  if (p == 0) {
    for (int i = 0; i < 2; ++i)
      if (v.wants(i)) v.give(i, zeros(v.in(i).tensor.shape(), g.dtype()));
    return;
  }
  Tensor w = g;
  if (p != 1) {
    const Tensor y = v.out(), none = y == Operand(0), size = where(none, 1, y);
    const Tensor power = p == 2 ? Tensor() : pow(size, 1 - p);
    const double least = range_of_sums(y.dtype()).least;
    if (power && shows_values(y) && any_outside(power, {least, 1 / least}))
      return give_shares(v, scaled_shares(x1, x2, size, where(none, 0, g), p));
    w = where(none, 0, power ? g * power : g / size);
  }
  if (v.wants(0)) v.give(0, backward(x1, x2, w, p));
  if (v.wants(1)) v.give(1, backward(x2, x1, swap_axes(w, 1, 2), p));
}

// x (..., n, k) as (b, n, k), where `lead` are the leading axes of all operands.
Tensor in_batches(const Tensor& x, Shape lead, int64_t batches, DType dtype) {
  const int64_t n = x.size(x.rank() - 2), k = x.size(x.rank() - 1);
  lead.push_back(n);
  lead.push_back(k);
  return reshape(broadcast_operand(astype(x, dtype), lead), {batches, n, k});
}

void cdist_body(const Use& use, Tensor* out) {
  const Tensor &x1 = use.in[0].tensor, &x2 = use.in[1].tensor;
  const double p = use.attributes.real(0);
  Shape lead[2];
  for (int i = 0; i < 2; ++i) {
    const Tensor& x = use.in[i].tensor;
    if (x.rank() < 2) fail(ErrorKind::value, "cdist: needs at least 2 dimensions, got ", x.shape());
    for (int axis = 0; axis < x.rank() - 2; ++axis) lead[i].push_back(x.size(axis));
  }
  const int64_t k = x1.size(x1.rank() - 1);
  if (k != x2.size(x2.rank() - 1))
    fail(ErrorKind::value, "cdist: rows of ", k, " and of ", x2.size(x2.rank() - 1), " numbers");
  if (!(p >= 0)) fail(ErrorKind::value, "cdist: p is at least 0, got ", p);
  const DType dtype = promote(x1.dtype(), x2.dtype());
  if (is_complex(dtype)) {
    const Tensor sizes = abs(first_of_pairs(x1) - second_of_pairs(x2));
    out[0] = distances(sizes, zeros(sizes.shape(), sizes.dtype()), p);
    return;
  }
  if (!is_floating(dtype)) fail(ErrorKind::type, "cdist: no kernel for ", name_of(dtype));
  Shape shape = broadcast_shapes(lead[0], lead[1], "cdist");
  int64_t batches = 1;
  for (const int64_t extent : shape) batches *= extent;
  const DType working = working_dtype(dtype);
  const Tensor y =
      apply(kPairDistances,
            {in_batches(x1, shape, batches, working), in_batches(x2, shape, batches, working)},
            AttributeList(1).set(0, attribute_of(p)));
  shape.push_back(y.size(1));
  shape.push_back(y.size(2));
  out[0] = astype(reshape(y, shape), dtype);
}

}  // namespace

constexpr OpRecord kPairDistances = {
    .name = "pair_distances",
    .signature = "(x1: Tensor, x2: Tensor, p: float) -> Tensor",
    .help = "Distances (b, n, m) of rows (b, n, k) from rows (b, m, k).",
    .infer = infer_pairs,
    .estimate = estimate,
    .body =
        [](const Use& use, Tensor* out) {
          out[0] = distances(first_of_pairs(use.in[0].tensor), second_of_pairs(use.in[1].tensor),
                             use.attributes.real(0));
        },
    .vjp = vjp,
    .reads = {{.inputs = 3, .results = 1}, {.inputs = 3, .results = 1}}};
constexpr OpRecord kPairDistancesBackward = {
    .name = "pair_distances_backward",
    .signature = "(x1: Tensor, x2: Tensor, w: Tensor, p: float) -> Tensor",
    .help =
        "Sums over j of w[i, j] |d| ** (p - 1) sign(d), d = x1[i] - x2[j]: the gradient of x1, "
        "where w are those of the distances by the distances' powers p - 1.",
    .infer = infer_like_first,
    .estimate = estimate,
    .body = [](const Use& use, Tensor* out) {
      const Tensor d = first_of_pairs(use.in[0].tensor) - second_of_pairs(use.in[1].tensor);
      const Tensor slopes = slope(d, use.attributes.real(0));
      out[0] = sum(expand_dims(use.in[2].tensor, -1) * slopes, {-2}, false);
    }};
constexpr OpRecord kCdist = {
    .name = "cdist",
    .signature = "(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor",
    .help =
        "Distances of all rows of x1 from all of x2: (..., n, k) and (..., m, k) to (..., n, m).\n"
        "(Sum of abs(a - b) ** p) ** (1 / p), from the differences themselves; leading axes "
        "broadcast. inf is the largest difference, 0 counts those that are not 0; NaN stays. The "
        "gradient "
        "where a distance is 0 is 0.\n"
        "Shapes: x1 (..., n, k), x2 (..., m, k); the result is (..., n, m).\n"
        "Types: floating, complex. Result: the common type, of complex numbers that of their "
        "parts.\n"
        "Raises ValueError for fewer than 2 dimensions, for rows of different lengths, for "
        "leading axes that do not broadcast and for a negative p, TypeError for other types.\n"
        "Source: PyTorch's torch.cdist.",
    .flags = kFunction,
    .body = cdist_body,
    .autocast = Autocast::wide};

}  // namespace tw
