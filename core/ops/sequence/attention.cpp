// Scaled dot-product attention: checks, the op that kernels compute, its gradient.
#include <cmath>
#include <limits>
#include <numeric>

#include "core/autograd/grad_mode.h"
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
#include "core/ops/normalization/softmax.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

constexpr char kName[] = "scaled_dot_product_attention";
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor transposed(const Tensor& x) { return swap_axes(x, x.rank() - 2, x.rank() - 1); }
Shape batch_of(const Tensor& x) {
  Shape shape;
  for (int i = 0; i < x.rank() - 2; ++i) shape.push_back(x.size(i));
  return shape;
}
bool has_batch_of(const Tensor& x, const Tensor& y) {
  if (x.rank() != y.rank()) return false;
  for (int i = 0; i < x.rank() - 2; ++i)
    if (x.size(i) != y.size(i)) return false;
  return true;
}
Shape with_matrix(Shape batch, std::int64_t rows, std::int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}
std::int64_t rows_of(const Tensor& x) { return x.size(x.rank() - 2); }
std::int64_t columns_of(const Tensor& x) { return x.size(x.rank() - 1); }

// ---- in terms of other ops ----

Tensor causal_mask(std::int64_t queries, std::int64_t keys) {
  const Tensor rows = expand_dims(arange(0, Scalar(queries), 1, DType::int64), 1);
  return arange(0, Scalar(keys), 1, DType::int64) <= rows;
}
// Scaled scores with -inf where a query does not attend.
Tensor scores_of(const Tensor& q, const Tensor& k, const Tensor& mask, bool causal, double scale) {
  Tensor scores = matmul(q * scale, transposed(k));
  if (causal) scores = where(causal_mask(rows_of(q), rows_of(k)), scores, -kInfinity);
  if (!mask) return scores;
  return is_bool(mask.dtype()) ? where(mask, scores, -kInfinity) : scores + mask;
}
// What the exponentials of each row are taken relative to, and the logarithm of their sum: +inf for
// rows that attend to nothing, so that their weights are 0. Apart, since a mask of -1e30 for a
// whole row would swallow the logarithm.
struct Sums {
  Tensor base, log;

  explicit Sums(const Tensor& scores) {
    if (columns_of(scores)) {
      const Tensor top = max(scores.detached(), {-1}, true);
      base = where(top == -kInfinity, 0, top);
    } else {
      base = zeros(with_matrix(batch_of(scores), rows_of(scores), 1), scores.dtype());
    }
    const Tensor sums = logsumexp(scores - base, {-1}, true);
    log = where(sums == -kInfinity, kInfinity, sums);
  }
  Tensor weights(const Tensor& scores) const { return exp(scores - base - log); }
};
Tensor weights_of(const Tensor& scores) { return Sums(scores).weights(scores); }
// In the type that scores are computed in.
Tensor wide(const Tensor& x) { return astype(x, working_dtype(x.dtype())); }

void attention_body(const Use& use, Tensor* out) {
  const Tensor q = wide(use.in[0].tensor), k = wide(use.in[1].tensor), v = wide(use.in[2].tensor);
  const Tensor scores =
      scores_of(q, k, use.in[3].tensor, use.attributes.flag(0), use.attributes.real(1));
  const Sums sums(scores);
  out[0] = astype(matmul(sums.weights(scores), v), use.in[0].tensor.dtype());
  out[1] = concat({transposed(sums.base), transposed(sums.log)}, scores.rank() - 2);
}
void attention_backward_body(const Use& use, Tensor* out) {
  const Tensor q = wide(use.in[0].tensor), k = wide(use.in[1].tensor), v = wide(use.in[2].tensor);
  const Tensor g = wide(use.in[6].tensor);
  const double scale = use.attributes.real(1);
  const Tensor p = weights_of(scores_of(q, k, use.in[3].tensor, use.attributes.flag(0), scale));
  const Tensor dp = matmul(g, transposed(v));
  const Tensor ds = p * (dp - sum(p * dp, {-1}, true)) * scale;
  const DType type = use.in[0].tensor.dtype();
  out[0] = astype(matmul(ds, k), type);
  out[1] = astype(matmul(transposed(ds), q), type);
  out[2] = astype(matmul(transposed(p), g), type);
}

// ---- shapes ----

void infer_attention(Call& call, Result* results) {
  const Meta &q = call.in[0], &v = call.in[2];
  results[0].shape = *q.shape;
  results[0].shape[q.rank() - 1] = v.size(v.rank() - 1);
  for (int i = 0; i + 2 < q.rank(); ++i) results[1].shape.push_back(q.size(i));
  results[1].shape.push_back(2);
  results[1].shape.push_back(q.size(q.rank() - 2));
  results[0].dtype = q.dtype;
  results[1].dtype = working_dtype(q.dtype);
}
void infer_attention_backward(Call& call, Result* results) {
  for (int i = 0; i < 3; ++i) {
    results[i].like = i;
    results[i].dtype = call.in[i].dtype;
  }
}
// Products of every query with every key, half of them where causal.
template <int products> Estimate estimate(const Call& call) {
  const Meta &q = call.in[0], &k = call.in[1];
  const double terms =
      static_cast<double>(q.count) * static_cast<double>(k.size(k.rank() - 2)) * products;
  Estimate estimate{2 * terms / (call.attributes.flag(0) ? 2 : 1), 0};
  for (int i = 0; i < call.inputs; ++i) estimate.bytes += static_cast<double>(call.in[i].count);
  for (int i = 0; i < call.op->results; ++i)
    estimate.bytes += static_cast<double>(call.out[i].count);
  estimate.bytes *= static_cast<double>(size_of(q.dtype));
  return estimate;
}

void attention_vjp(Vjp& v) {
  const Operand operands[] = {v.in(0), v.in(1), v.in(2), v.in(3), v.out(0), v.out(1), v.g()};
  Tensor dx[3];
  apply(kAttentionBackward, operands, 7, v.attributes(), dx);
  for (int i = 0; i < 3; ++i)
    if (v.wants(i)) v.give(i, dx[i]);
}

// ---- the public op ----

struct Inputs {
  Tensor q, k, v, mask;
};

void check(const Inputs& in) {
  const Tensor* const all[] = {&in.q, &in.k, &in.v};
  for (const Tensor* x : all)
    if (x->rank() < 2)
      fail(ErrorKind::value, kName, ": query, key and value have at least 2 dimensions, got ",
           in.q.shape(), ", ", in.k.shape(), " and ", in.v.shape());
  for (const Tensor* x : all)
    if (!is_floating(x->dtype()) || x->dtype() != in.q.dtype())
      fail(ErrorKind::type, kName, ": query, key and value have one floating-point type, got ",
           name_of(in.q.dtype()), ", ", name_of(in.k.dtype()), " and ", name_of(in.v.dtype()),
           "; convert with astype");
  if (columns_of(in.q) != columns_of(in.k))
    fail(ErrorKind::value, kName, ": query ", in.q.shape(), " and key ", in.k.shape(),
         " differ in their last extent");
  if (rows_of(in.k) != rows_of(in.v))
    fail(ErrorKind::value, kName, ": key ", in.k.shape(), " and value ", in.v.shape(),
         " differ in their number of rows");
  if (in.mask && !is_bool(in.mask.dtype()) && !is_floating(in.mask.dtype()))
    fail(ErrorKind::type, kName, ": attn_mask is bool or floating-point, got ",
         name_of(in.mask.dtype()));
}
void check_words(Attributes attributes, bool masked) {
  const double p = attributes.real(0);
  if (!(p >= 0 && p <= 1)) fail(ErrorKind::value, kName, ": dropout_p = ", p, " is not in [0, 1]");
  if (masked && attributes.flag(1))
    fail(ErrorKind::value, kName,
         ": attn_mask and is_causal exclude each other; put what is "
         "causal into the mask");
}

// Heads of keys or values, each repeated until there are so many.
Tensor repeated_heads(const Tensor& x, std::int64_t heads) {
  const int axis = x.rank() - 3;
  if (x.size(axis) == heads) return x;
  Shape shape = x.shape();
  shape.insert(axis + 1, heads / x.size(axis));
  const Tensor wide = broadcast_to(expand_dims(x, axis + 1), shape);
  shape.erase(axis + 1);
  shape[axis] = heads;
  return reshape(wide, shape);
}
// The axis of heads as two, groups first: a view.
Tensor in_groups(const Tensor& x, std::int64_t groups) {
  const int axis = x.rank() - 3;
  Shape shape = x.shape();
  shape.insert(axis + 1, shape[axis] / groups);
  shape[axis] = groups;
  return reshape(x, shape);
}
// Gives heads a second axis, along which those of keys and values repeat, so that nothing is copied
// for the heads of queries that share them.
void group_heads(Inputs& in) {
  if (in.q.rank() < 3)
    fail(ErrorKind::value, kName, ": with enable_gqa query is (..., heads, rows, size), got ",
         in.q.shape());
  const std::int64_t heads = in.q.size(in.q.rank() - 3);
  const auto heads_of = [heads](const Tensor& x, const char* what) {
    const std::int64_t own = x.rank() < 3 ? 0 : x.size(x.rank() - 3);
    if (own == 0 || heads % own)
      fail(ErrorKind::value, kName, ": the ", heads, " heads of query are no multiple of those of ",
           what, " ", x.shape());
    return own;
  };
  const std::int64_t of_keys = heads_of(in.k, "key"), of_values = heads_of(in.v, "value");
  const std::int64_t groups = std::lcm(of_keys, of_values);
  in.k = expand_dims(repeated_heads(in.k, groups), in.k.rank() - 2);
  in.v = expand_dims(repeated_heads(in.v, groups), in.v.rank() - 2);
  if (in.mask && in.mask.rank() > 2) {
    const std::int64_t of_mask = in.mask.size(in.mask.rank() - 3);
    if (of_mask != 1 && of_mask != heads)
      fail(ErrorKind::value, kName, ": attn_mask ", in.mask.shape(), " does not fit scores ",
           with_matrix(batch_of(in.q), rows_of(in.q), rows_of(in.k)));
    in.mask = of_mask == 1 ? expand_dims(in.mask, in.mask.rank() - 2) : in_groups(in.mask, groups);
  }
  in.q = in_groups(in.q, groups);
}

// One batch shape for all, and masks in the type of scores.
void align(Inputs& in, bool grouped) {
  if (grouped) group_heads(in);
  if (!in.mask && has_batch_of(in.k, in.q) && has_batch_of(in.v, in.q)) return;
  Shape batch = batch_of(in.q);
  for (const Tensor* x : {&in.k, &in.v})
    if (!(batch_of(*x) == batch)) batch = broadcast_shapes(batch, batch_of(*x), kName);
  for (Tensor* x : {&in.q, &in.k, &in.v})
    *x = broadcast_operand(*x, with_matrix(batch, rows_of(*x), columns_of(*x)));
  if (!in.mask) return;
  const Shape scores = with_matrix(batch, rows_of(in.q), rows_of(in.k));
  if (in.mask.rank() > scores.rank() ||
      !(broadcast_shapes(in.mask.shape(), scores, kName) == scores))
    fail(ErrorKind::value, kName, ": attn_mask ", in.mask.shape(), " does not fit scores ", scores);
  if (!is_bool(in.mask.dtype())) in.mask = astype(in.mask, working_dtype(in.q.dtype()));
  in.mask = broadcast_operand(in.mask, scores);
}

// Where weights are dropped, or the mask learns, scores are ops of the graph.
Tensor attention_of_scores(const Inputs& in, Attributes attributes, double scale) {
  Tensor p = weights_of(scores_of(wide(in.q), wide(in.k), in.mask, attributes.flag(1), scale));
  if (attributes.real(0) > 0)
    p = apply(kDropout, {p}, AttributeList(3).set(0, attributes[0]).set(1, true).set(2, kNone));
  return astype(matmul(p, wide(in.v)), in.q.dtype());
}

// Attributes: dropout_p, is_causal, scale, enable_gqa.
void attention_in_ops(const Use& use, Tensor* out) {
  Inputs in{use.in[0].tensor, use.in[1].tensor, use.in[2].tensor, use.in[3].tensor};
  const Attributes& attributes = use.attributes;
  check(in);
  check_words(attributes, static_cast<bool>(in.mask));
  const double scale = attributes.none(2) ? 1 / std::sqrt(static_cast<double>(columns_of(in.q)))
                                          : attributes.real(2);
  const bool grouped = attributes.flag(3);
  align(in, grouped);
  const bool mask_learns = modes.grad && in.mask && records(in.mask);
  Tensor y;
  if (attributes.real(0) > 0 || mask_learns) {
    y = attention_of_scores(in, attributes, scale);
  } else {
    Tensor results[2];
    const Operand operands[] = {in.q, in.k, in.v, in.mask ? Operand(in.mask) : Operand::none()};
    apply(kAttention, operands, 4,
          AttributeList(2).set(0, attributes.flag(1)).set(1, attribute_of(scale)), results);
    y = results[0];
  }
  if (!grouped) {
    out[0] = y;
    return;
  }
  Shape shape = y.shape();
  const int axis = y.rank() - 4;
  shape[axis] *= shape[axis + 1];
  shape.erase(axis + 1);
  out[0] = reshape(y, shape);
}

}  // namespace

constexpr OpRecord kAttentionBackward = {
    .name = "attention_backward",
    .signature =
        "(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, out: Tensor, log_sums: "
        "Tensor, g: Tensor, causal: bool, scale: float) -> Tensor",
    .help = "The gradients of attention by query, key and value.",
    .results = 3,
    .infer = infer_attention_backward,
    .estimate = estimate<5>,
    .body = attention_backward_body};
constexpr OpRecord kAttention = {
    .name = "attention",
    .signature =
        "(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, scale: "
        "float) -> Tensor",
    .help = "softmax(scale * query @ key.T + mask) @ value of operands with one batch shape.",
    .results = 2,
    .infer = infer_attention,
    .estimate = estimate<2>,
    .body = attention_body,
    .vjp = attention_vjp,
    .reads = {
        {.inputs = 15, .results = 3}, {.inputs = 15, .results = 3}, {.inputs = 15, .results = 3}}};
constexpr OpRecord kScaledDotProductAttention = {
    .name = kName,
    .signature =
        "(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: "
        "float = 0.0, is_causal: bool = False, scale: float | None = None, enable_gqa: bool = "
        "False) -> Tensor",
    .help =
        "softmax(query @ key.T * scale + attn_mask) @ value over the last two axes, without the\n"
        "matrix of scores (Dao et al., FlashAttention, 2022): (..., L, E), (..., S, E) and\n"
        "(..., S, V) give (..., L, V). In a bool mask True means: attend; other masks are added.\n"
        "is_causal: query i attends to keys 0 to i. scale is 1/sqrt(E) by default. Rows that\n"
        "attend to nothing are 0. enable_gqa: groups of query heads share a head of key and "
        "value.\n"
        "Shapes: query (..., L, E), key (..., S, E), value (..., S, V), attn_mask broadcasts to "
        "(..., L, S); the result is (..., L, V).\n"
        "Types: floating. Result: the same type.\n"
        "Raises ValueError for shapes that do not fit, for a mask with is_causal and for dropout_p "
        "outside [0, 1], TypeError for types that differ.\n"
        "Source: PyTorch's torch.nn.functional.scaled_dot_product_attention.",
    .flags = kFunction,
    .body = attention_in_ops,
    .autocast = Autocast::narrow};

}  // namespace tw
