// Distances and angles between vectors, and the losses made of them.
#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/ops/losses/loss_reduction.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/copy/arange.h"
#include "core/ops/engine/records.h"
#include "core/ops/copy/copy.h"
#include "core/ops/reduce/reduction_records.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor norm(const Tensor& x, double p, const Axes& axes, bool keepdims) {
  if (p == 2) return l2_norm(x, axes, keepdims);
  if (p == 1) return l1_norm(x, axes, keepdims);
  const Tensor size = abs(x);
  if (p == kInfinity) return max(size, axes, keepdims);
  if (p == -kInfinity) return min(size, axes, keepdims);
  if (p == 0) return sum(sign(size), axes, keepdims);
  return power_norm(size, p, axes, keepdims);
}
Tensor distance(const Tensor& a, const Tensor& b, double p, double eps, bool keepdims) {
  return norm(a - b + eps, p, {-1}, keepdims);
}
// Attributes: p, eps, keepdims.
void pairwise_distance_body(const Use& use, Tensor* out) {
  const LossInputs in(use);
  const double p = use.attributes.real(0);
  const Tensor a = in[0], b = in[1];
  if (!a.rank() || !b.rank())
    fail(ErrorKind::value, "pairwise_distance: expected vectors, got ", a.shape(), " and ",
         b.shape());
  out[0] = in.in_own_type(distance(a, b, p, use.attributes.real(1), use.attributes.flag(2)));
}

// Vectors along an axis and their lengths, at least eps: both times a power of two where products
// of lengths would leave the range.
struct Vectors {
  Tensor x, lengths;

  Vectors(const Tensor& given, const Axes& axis, double eps) : x(given) {
    const Tensor plain = l2_norm(x, axis, false);
    const SafeRange range = range_of_lengths(x.dtype());
    if (!x.count() || !any_outside(plain, range)) {
      lengths = maximum(plain, eps);
      return;
    }
    const Tensor top = max(abs(x.detached()), axis, true);
    const Tensor scale = scale_of(reshape(plain.detached(), top.shape()), range, top);
    x = x * scale;
    lengths = maximum(l2_norm(x, axis, false), reshape(scale, plain.shape()) * eps);
  }
};

// Attributes: axis, eps.
void cosine_similarity_body(const Use& use, Tensor* out) {
  const LossInputs in(use);
  const Shape shape =
      broadcast_shapes(use.in[0].tensor.shape(), use.in[1].tensor.shape(), use.op.name);
  const int at = normalize_axis(use.attributes[0], std::max(shape.rank(), 1), use.op.name);
  const Axes axis = shape.rank() ? Axes{at} : Axes(std::vector<std::int64_t>());
  const double eps = use.attributes.real(1);
  if (!(eps >= 0)) fail(ErrorKind::value, use.op.name, ": eps is negative: ", eps);
  const Tensor a = broadcast_operand(in[0], shape), b = broadcast_operand(in[1], shape);
  const Vectors u(a, axis, eps), v(b, axis, eps);
  out[0] = in.in_own_type(sum_of_products(u.x, v.x, axis) / u.lengths / v.lengths);
}

// Attributes: ord, axis, eps.
void unit_vectors_body(const Use& use, Tensor* out) {
  const DType type = use.in[0].tensor.dtype();
  check_floating(type, use.op.name, false);
  const Tensor x = astype(use.in[0].tensor, working_dtype(type));
  const double p = use.attributes.real(0), eps = use.attributes.real(2);
  const int at = normalize_axis(use.attributes[1], std::max(x.rank(), 1), use.op.name);
  const Axes axis = x.rank() ? Axes{at} : Axes(std::vector<std::int64_t>());
  const Tensor length = norm(x, p, axis, true);
  const SafeRange range = {0, range_of_sums(x.dtype()).most};
  if (!x.count() || !any_outside(length, range)) {
    out[0] = astype(x / maximum(length, eps), type);
    return;
  }
  const Tensor scale = scale_of(length.detached(), range, max(abs(x.detached()), axis, true));
  const Tensor scaled = x * scale;
  out[0] = astype(scaled / maximum(norm(scaled, p, axis, true), scale * eps), type);
}

// Squares of the lengths of vectors along the last axis, with a little more, of vectors times a
// power of two where products of squares would leave the range.
struct Squares {
  static constexpr double kMore = 1e-12;
  Tensor x, sums;

  explicit Squares(const Tensor& given) : x(given), sums(sum(x * x, {-1}, false) + kMore) {}
  Squares scaled() const {
    const double length = range_of_lengths(x.dtype()).most;
    const Tensor top = max(abs(x.detached()), {-1}, true);
    const Tensor scale = scale_of(expand_dims(sums.detached(), -1), {0, length}, top);
    Squares other(x * scale);  // whose gradients are added up in the same order
    other.sums = sum(other.x * other.x, {-1}, false) + reshape(square(scale), sums.shape()) * kMore;
    return other;
  }
};
Tensor cosine_of_pairs(const Tensor& a, const Tensor& b) {
  const Squares u(a), v(b);
  const auto cosine = [](const Squares& u, const Squares& v) {
    return sum(u.x * v.x, {-1}, false) / sqrt(u.sums * v.sums);
  };
  const bool lost = any_outside(u.sums * v.sums, {0, range_of_sums(a.dtype()).most});
  return lost && a.count() ? cosine(u.scaled(), v.scaled()) : cosine(u, v);
}

// Attributes: margin, reduction.
void cosine_embedding_body(const Use& use, Tensor* out) {
  const LossInputs in(use);
  const Tensor a = in[0], b = in[1], t = in[2];
  if (t.rank() > 1 || a.rank() != t.rank() + 1 || b.rank() != a.rank())
    fail(ErrorKind::value,
         "cosine_embedding_loss: expected inputs (n, d) and target (n,), or (d,) "
         "and (), got ",
         a.shape(), ", ", b.shape(), " and ", t.shape());
  constexpr double kLeast = 1e-12;
  const Tensor cosine = cosine_of_pairs(a, b);
  const Tensor alike = where(t == Operand(1), 1 - cosine, 0);
  const Tensor apart = clip(cosine - use.attributes.real(0), 0, kInfinity);
  out[0] = in.reduced(alike + where(t == Operand(-1), apart, 0), use.attributes[1]);
}

// Attributes: margin, p, eps, swap, reduction.
void triplet_margin_body(const Use& use, Tensor* out) {
  const LossInputs in(use);
  const Tensor anchor = in[0], positive = in[1], negative = in[2];
  const double margin = use.attributes.real(0), p = use.attributes.real(1),
               eps = use.attributes.real(2);
  if (!(margin > 0))
    fail(ErrorKind::value, "triplet_margin_loss: margin must be above 0, got ", margin);
  if (!anchor.rank() || positive.rank() != anchor.rank() || negative.rank() != anchor.rank())
    fail(ErrorKind::value, "triplet_margin_loss: expected vectors with as many axes, got ",
         anchor.shape(), ", ", positive.shape(), " and ", negative.shape());
  const Tensor near = distance(anchor, positive, p, eps, false);
  Tensor far = distance(anchor, negative, p, eps, false);
  if (use.attributes.flag(3)) far = minimum(far, distance(positive, negative, p, eps, false));
  out[0] = in.reduced(clip(near - far + margin, 0, kInfinity), use.attributes[4]);
}

}  // namespace

constexpr OpRecord kPairwiseDistance = {
    .name = "pairwise_distance",
    .signature =
        "(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-06, keepdims: bool = False) -> "
        "Tensor",
    .help =
        "The p-norm of x1 - x2 + eps along the last axis.\n"
        "Raises ValueError for numbers alone.\n"
        "Shapes: x1 and x2 broadcast to (..., n); the result is (...), or (..., 1) where "
        "keepdims.\n"
        "Types: floating. Result: the same type.\n"
        "Raises ValueError for shapes that do not broadcast.\n"
        "Source: PyTorch's torch.nn.functional.pairwise_distance.",
    .flags = kFunction,
    .body = pairwise_distance_body,
    .autocast = Autocast::wide};
constexpr OpRecord kCosineSimilarity = {
    .name = "cosine_similarity",
    .signature = "(x1: Tensor, x2: Tensor, axis: int = 1, eps: float = 1e-08) -> Tensor",
    .help =
        "The cosine of the angle between vectors along an axis of what x1 and x2 broadcast to.\n"
        "Lengths below eps count as eps.\n"
        "Shapes: x1 and x2 broadcast; the result has their common shape without the axis.\n"
        "Types: floating. Result: the same type.\n"
        "Raises ValueError for a negative eps and for shapes that do not broadcast.\n"
        "Source: PyTorch's torch.nn.functional.cosine_similarity.",
    .flags = kFunction,
    .body = cosine_similarity_body,
    .autocast = Autocast::wide};
constexpr OpRecord kUnitVectors = {
    .name = "unit_vectors",
    .signature = "(x: Tensor, ord: float = 2.0, axis: int = 1, eps: float = 1e-12) -> Tensor",
    .help =
        "Vectors along an axis over their norm of order ord, which counts as eps below that.\n"
        "Shapes: x (..., n, ...); the result has its shape.\n"
        "Types: floating. Result: the same type.\n"
        "Raises IndexError for an axis out of range, TypeError for other types.\n"
        "Source: PyTorch's torch.nn.functional.normalize.",
    .flags = kFunction,
    .body = unit_vectors_body,
    .autocast = Autocast::wide};
constexpr OpRecord kCosineEmbeddingLoss = {
    .name = "cosine_embedding_loss",
    .signature =
        "(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: 'mean' "
        "| 'sum' | 'none' = 'mean') -> Tensor",
    .help =
        "1 - cosine of pairs whose target is 1, and the cosine above the margin where it is -1.\n"
        "Inputs are (n, d) with targets (n,), or (d,) with one target; ValueError for others.\n"
        "Shapes: input1 and input2 (n, d) and target (n,), or (d,) and (); the result is (), or of "
        "target's shape for 'none'.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.cosine_embedding_loss.",
    .flags = kFunction,
    .body = cosine_embedding_body,
    .autocast = Autocast::wide};
constexpr OpRecord kTripletMarginLoss = {
    .name = "triplet_margin_loss",
    .signature =
        "(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, "
        "eps: float = 1e-06, swap: bool = False, reduction: 'mean' | 'sum' | 'none' = 'mean') -> "
        "Tensor",
    .help =
        "max(0, margin + distance to the positive - distance to the negative) (Balntas et al., "
        "2016).\n"
        "swap takes the distance from positive to negative where that is less.\n"
        "Shapes: anchor, positive and negative (..., n), which broadcast; the result is (), or "
        "(...) for 'none'.\n"
        "Types: floating. Result: the same type.\n"
        "Raises ValueError for a margin that is not above 0 and for shapes that do not fit.\n"
        "Source: PyTorch's torch.nn.functional.triplet_margin_loss.",
    .flags = kFunction,
    .body = triplet_margin_body,
    .autocast = Autocast::wide};

}  // namespace tw
