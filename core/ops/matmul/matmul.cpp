// Matrix products: shapes, types and gradients. How they are computed is core/cpu/matmul's.
#include "core/ops/matmul/matmul.h"

#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/pointwise/complex.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/in_place.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/shape/view.h"
#include "core/runtime/device.h"
#include "core/runtime/registry.h"

namespace tw {
namespace {

Tensor transposed(const Tensor& x) { return swap_axes(x, x.rank() - 2, x.rank() - 1); }

// A stack of matrices as one of all their rows.
Tensor as_rows(const Tensor& x) {
  if (x.rank() == 2) return x;
  std::int64_t rows = 1;
  for (int i = 0; i < x.rank() - 1; ++i) rows *= x.size(i);
  return reshape(x, {rows, x.size(x.rank() - 1)});
}

Estimate estimate_product(const Call& call, const Meta& a, const Meta& b) {
  const Meta& c = call.out[0];
  const double k = static_cast<double>(a.size(a.rank() - 1));
  const auto elements = static_cast<double>(a.count + b.count + c.count);
  return {2 * static_cast<double>(c.count) * k, elements * static_cast<double>(size_of(c.dtype))};
}

// ---- matmul ----

void check(const Tensor& a, const Tensor& b) {
  if (a.rank() == 0 || b.rank() == 0)
    fail(ErrorKind::value, "matmul: needs at least 1 dimension: ", a.shape(), " @ ", b.shape(),
         "; use * for numbers");
  const std::int64_t inner_b = b.rank() == 1 ? b.size(0) : b.size(b.rank() - 2);
  if (a.size(a.rank() - 1) != inner_b)
    fail(ErrorKind::value, "matmul: inner sizes differ: ", a.shape(), " @ ", b.shape());
}

// Vectors and two types are seen to first: products are of matrices of one type.
bool rewrite(const Use& use, Tensor* out) {
  const Tensor &a_in = use.in[0].tensor, &b_in = use.in[1].tensor;
  check(a_in, b_in);
  if (a_in.rank() > 1 && b_in.rank() > 1 && a_in.dtype() == b_in.dtype()) [[likely]]
    return false;
  const DType type = promote(a_in.dtype(), b_in.dtype());
  Tensor a = astype(a_in, type), b = astype(b_in, type);
  if (a_in.rank() == 1) a = expand_dims(a, 0);
  if (b_in.rank() == 1) b = expand_dims(b, 1);
  Tensor c = apply(use.op, {a, b});
  if (b_in.rank() == 1) c = owned(squeeze(c, {c.rank() - 1}));
  if (a_in.rank() == 1) c = owned(squeeze(c, {b_in.rank() == 1 ? c.rank() - 1 : c.rank() - 2}));
  out[0] = c;
  return true;
}

void infer_matmul(Call& call, Result* results) {
  const Meta &a = call.in[0], &b = call.in[1];
  if (is_bool(a.dtype))
    fail(ErrorKind::type, "matmul: no product of bool matrices; convert with astype");
  Shape& shape = results[0].shape;
  if (a.rank() > 2 || b.rank() > 2) {
    Shape batch_a, batch_b;
    for (int i = 0; i < a.rank() - 2; ++i) batch_a.push_back(a.size(i));
    for (int i = 0; i < b.rank() - 2; ++i) batch_b.push_back(b.size(i));
    shape = batch_a == batch_b ? batch_a : broadcast_shapes(batch_a, batch_b, "matmul");
  }
  shape.push_back(a.size(a.rank() - 2));
  shape.push_back(b.size(b.rank() - 1));
  results[0].dtype = a.dtype;
}

void matmul_vjp(Vjp& v) {
  const Tensor& g = v.g();
  const bool tall = g.rank() > 2 && v.shape(0).rank() > 2 && v.shape(1).rank() == 2;
  if (v.wants(0)) v.give(0, kMatmul, {g, conj(transposed(v.in(1).tensor))});
  if (!v.wants(1)) return;
  const Tensor a = conj(v.in(0).tensor);
  v.give(1, kMatmul, {transposed(tall ? as_rows(a) : a), tall ? as_rows(g) : g});
}

// ---- linear ----

void check_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (weight.rank() != 2 || x.rank() == 0 || x.size(x.rank() - 1) != weight.size(1))
    fail(ErrorKind::value, "linear: input ", x.shape(), " does not fit weight ", weight.shape(),
         "; the last extents must agree");
  if (bias && !(bias.shape() == Shape{weight.size(0)}))
    fail(ErrorKind::value, "linear: bias ", bias.shape(), " does not fit weight ", weight.shape());
}

void linear_body(const Use& use, Tensor* out) {
  const Tensor &x = use.in[0].tensor, &weight = use.in[1].tensor, &bias = use.in[2].tensor;
  const Tensor product = matmul(x, transposed(weight));
  out[0] = bias ? add(product, bias) : product;
  if (&use.op == &kLinearRelu) out[0] = relu(out[0]);
}

// What differs in type, and vectors, are taken apart. The attribute: whether relu follows.
bool rewrite_linear(const Use& use, Tensor* out) {
  const Tensor &x = use.in[0].tensor, &weight = use.in[1].tensor, &bias = use.in[2].tensor;
  check_linear(x, weight, bias);
  const OpRecord& op = use.attributes.count == 0 || use.attributes.none(0) ? kLinear : kLinearRelu;
  const bool apart = x.dtype() != weight.dtype() || (bias && bias.dtype() != x.dtype()) ||
                     !is_floating(x.dtype()) || x.rank() == 1;
  if (!apart && &op == &use.op) return false;
  if (apart)
    linear_body({op, use.in, use.inputs, {}}, out);
  else
    out[0] = apply(op, {use.in[0], use.in[1], use.in[2]});
  return true;
}

void infer_linear(Call& call, Result* results) {
  const Meta &x = call.in[0], &weight = call.in[1];
  results[0].shape = *x.shape;
  results[0].shape[x.rank() - 1] = weight.size(0);
  results[0].dtype = x.dtype;
}

// Of x @ weight.T + bias.
void give_linear(Vjp& v, const Tensor& g_in) {
  const Tensor g = as_rows(g_in);
  if (v.wants(0)) {
    const Tensor rows = matmul(g, v.in(1).tensor);
    v.give(0, g_in.rank() == 2 ? rows : reshape(rows, v.shape(0)));
  }
  if (v.wants(1)) v.give(1, kMatmul, {transposed(g), as_rows(v.in(0).tensor)});
  if (v.wants(2)) v.give(2, sum(g, {0}, false));
}

// ---- addmm ----

void check_addmm(const Tensor& input, const Tensor& a, const Tensor& b, const char* op) {
  if (a.rank() != 2 || b.rank() != 2 || a.size(1) != b.size(0))
    fail(ErrorKind::value, op, ": needs two matrices whose inner sizes agree: ", a.shape(), " @ ",
         b.shape());
  for (const Tensor* x : {&input, &a, &b})
    if (!is_floating(x->dtype()))
      fail(ErrorKind::type, op, ": floating point only, got ", name_of(x->dtype()),
           "; write beta * input + alpha * (mat1 @ mat2)");
}

// Whether `from` broadcasts to `to`.
bool fits_into(const Shape& from, const Shape& to) {
  if (from.rank() > to.rank()) return false;
  for (int i = 1; i <= from.rank(); ++i) {
    const std::int64_t size = from[from.rank() - i];
    if (size != 1 && size != to[to.rank() - i]) return false;
  }
  return true;
}

bool rewrite_addmm(const Use& use, Tensor* out) {
  const Tensor &input = use.in[0].tensor, &a = use.in[1].tensor, &b = use.in[2].tensor;
  check_addmm(input, a, b, "addmm");
  const Shape shape{a.size(0), b.size(1)};
  if (!fits_into(input.shape(), shape))
    fail(ErrorKind::value, "addmm: input ", input.shape(), " does not fit the product ", shape);
  const DType type = promote(input.dtype(), promote(a.dtype(), b.dtype()));
  if (input.dtype() == type && a.dtype() == type && b.dtype() == type) return false;
  out[0] = apply(use.op, {astype(input, type), astype(a, type), astype(b, type)}, use.attributes);
  return true;
}

void infer_addmm(Call& call, Result* results) {
  results[0].shape = {call.in[1].size(0), call.in[2].size(1)};
  results[0].dtype = call.in[1].dtype;
}

// c = beta * c + alpha * a @ b in the memory of c, which holds neither a nor b.
void add_product(const Tensor& c, const Tensor& a, const Tensor& b, double beta, double alpha) {
  if (c.count() == 0) return;
  const Operand operands[] = {c, a, b};
  apply_into(kMatmulInto, operands, 3,
             AttributeList(2).set(0, attribute_of(beta)).set(1, attribute_of(alpha)), c);
}

// Adds a product of matrices to a gradient.
bool add_to_gradient(const Use& use, const Tensor& target) {
  const Tensor &a = use.in[0].tensor, &b = use.in[1].tensor;
  const DType type = target.dtype();
  if (a.rank() != 2 || b.rank() != 2 || a.dtype() != type || b.dtype() != type ||
      (type != DType::float32 && type != DType::float64) ||
      !(target.shape() == Shape{a.size(0), b.size(1)}))
    return false;
  target->storage->count_change();
  if (a.size(1) > 0) add_product(target, a, b, 1, 1);
  return true;
}

// The CPU adds products of 16 bits up in a matrix of float; a GPU's kernels in registers, and what
// C holds is rounded once.
DType sums_dtype(const Tensor& a) {
  const bool on_gpu = a.device() && a.device()->kernels == KernelSet::cuda;
  return on_gpu ? a.dtype() : working_dtype(a.dtype());
}

void addmm_body(const Use& use, Tensor* out) {
  const Tensor &input = use.in[0].tensor, &a = use.in[1].tensor, &b = use.in[2].tensor;
  const double beta = use.attributes.real(0), alpha = use.attributes.real(1);
  const DType wide = sums_dtype(a);
  Tensor sums = Tensor::empty({a.size(0), b.size(1)}, wide);
  if (beta != 0) assign(sums, input);
  add_product(sums, astype(a, wide), astype(b, wide), beta, alpha);
  out[0] = astype(sums, a.dtype());
}

Tensor scaled(const Tensor& x, double factor) {
  return factor == 1 ? x : multiply(x, Scalar(factor));
}
void addmm_vjp(Vjp& v) {
  const double beta = v.attributes().real(0), alpha = v.attributes().real(1);
  const Tensor& g = v.g();
  if (v.wants(0)) v.give(0, scaled(sum_to(g, v.shape(0)), beta));
  const auto give = [&](int input, const Tensor& a, const Tensor& b) {
    alpha == 1 ? v.give(input, kMatmul, {a, b}) : v.give(input, scaled(matmul(a, b), alpha));
  };
  if (v.wants(1)) give(1, g, transposed(v.in(2).tensor));
  if (v.wants(2)) give(2, transposed(v.in(1).tensor), g);
}

}  // namespace

constexpr OpRecord kMatmul = {
    .name = "matmul",
    .signature = "(a: Tensor, b: Tensor) -> Tensor",
    .help =
        "Matrix product; 1-D operands are vectors, leading axes are broadcast batches.\n"
        "Shapes: a (..., m, k) and b (..., k, n) give (..., m, n), leading axes broadcast; a "
        "vector's axis is dropped from the result.\n"
        "Types: integer, floating, complex. Result: the common type.\n"
        "Raises ValueError for inner sizes that differ, for leading axes that do not broadcast and "
        "for operands of 0 dimensions.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .rewrite = rewrite,
    .infer = infer_matmul,
    .estimate = [](const Call& call) { return estimate_product(call, call.in[0], call.in[1]); },
    .vjp = matmul_vjp,
    .add_into = add_to_gradient,
    .reads = {{.inputs = 2}, {.inputs = 1}},
    .autocast = Autocast::narrow,
    .shapes = kOfStacks | 3};
constexpr OpRecord kVdotComplex = {
    .name = "vdot_complex",
    .signature = "(x1: Tensor, x2: Tensor) -> Tensor",
    .help = "Sum of the products of two vectors of one complex type, the first conjugated.",
    .infer = [](Call& call, Result* results) { results[0].dtype = call.in[0].dtype; },
    .estimate = [](const Call& call) { return estimate_product(call, call.in[0], call.in[1]); },
    .body = [](const Use& use,
               Tensor* out) { out[0] = matmul(conj(use.in[0].tensor), use.in[1].tensor); },
    .vjp =
        [](Vjp& v) {
          if (v.wants(0)) v.give(0, conj(v.g()) * v.in(1).tensor);
          if (v.wants(1)) v.give(1, v.g() * v.in(0).tensor);
        },
    .reads = {{.inputs = 2}, {.inputs = 1}}};
Tensor vdot(const Tensor& x1, const Tensor& x2) {
  const DType type = promote(x1.dtype(), x2.dtype());
  if (!is_complex(type) || x1.size(0) != x2.size(0)) return matmul(conj(x1), x2);
  return apply(kVdotComplex, {astype(x1, type, false), astype(x2, type, false)});
}
constexpr OpRecord kLinear = {
    .name = "linear",
    .signature =
        "(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, activation: 'relu' | "
        "None = None) -> Tensor",
    .help =
        "x @ weight.T + bias for x (..., in), weight (out, in), bias (out,); with "
        "activation='relu' what is negative becomes 0 as the product is stored.\n"
        "Shapes: x (..., in), weight (out, in), bias (out,); the result is (..., out).\n"
        "Types: integer, floating, complex. Result: the common type.\n"
        "Raises ValueError for shapes that do not fit.\n"
        "Source: PyTorch's torch.nn.functional.linear.",
    .flags = kFunction,
    .rewrite = rewrite_linear,
    .infer = infer_linear,
    .estimate = [](const Call& call) { return estimate_product(call, call.in[0], call.in[1]); },
    .body = linear_body,
    .vjp = [](Vjp& v) { give_linear(v, v.g()); },
    .reads = {{.inputs = 2}, {.inputs = 1}},
    .autocast = Autocast::narrow,
    .shapes = kOfStacks | 1};
constexpr OpRecord kLinearRelu = {
    .name = "linear_relu",
    .signature = "(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor",
    .help = "relu(linear(x, weight, bias)) as one product.",
    .infer = infer_linear,
    .estimate = [](const Call& call) { return estimate_product(call, call.in[0], call.in[1]); },
    .body = linear_body,
    .vjp = [](Vjp& v) { give_linear(v, gradient_of(PointwiseOp::relu, 0, v.g(), {v.out()})); },
    .reads = {{.inputs = 2, .results = 1}, {.inputs = 1, .results = 1}, {.results = 1}},
    .autocast = Autocast::narrow,
    .shapes = kOfStacks | 1};
constexpr OpRecord kAddmm = {
    .name = "addmm",
    .signature =
        "(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = "
        "1.0) -> Tensor",
    .help =
        "beta * input + alpha * (mat1 @ mat2), for floating types; mat1 is (m, k), mat2 (k, n), "
        "input broadcasts to (m, n) and is not read where beta is 0. Raises ValueError for shapes "
        "that do not fit.\n"
        "Shapes: input broadcasts to (m, n), mat1 (m, k), mat2 (k, n); the result is (m, n).\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.addmm.",
    .flags = kFunction,
    .rewrite = rewrite_addmm,
    .infer = infer_addmm,
    .estimate = [](const Call& call) { return estimate_product(call, call.in[1], call.in[2]); },
    .body = addmm_body,
    .vjp = addmm_vjp,
    .reads = {{}, {.inputs = 4}, {.inputs = 2}},
    .autocast = Autocast::narrow,
    .shapes = 1};
constexpr OpRecord kMatmulInto = {
    .name = "matmul_into",
    .signature =
        "(target: Tensor, mat1: Tensor, mat2: Tensor, beta: float, alpha: float) -> Tensor",
    .help = "beta * target + alpha * (mat1 @ mat2), in the memory of the target.",
    .infer = infer_addmm,
    .estimate = [](const Call& call) { return estimate_product(call, call.in[1], call.in[2]); }};

Tensor matmul(const Tensor& a, const Tensor& b) { return apply(kMatmul, {a, b}); }

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool with_relu) {
  return apply(kLinear, {x, weight, bias ? Operand(bias) : Operand::none()},
               AttributeList(1).set(0, with_relu ? 0 : kNone));
}

void addmm_in_place(Tensor& x, const Tensor& a_in, const Tensor& b_in, double beta, double alpha) {
  check_addmm(x, a_in, b_in, "addmm_");
  if (!(x.shape() == Shape{a_in.size(0), b_in.size(1)}))
    fail(ErrorKind::value, "addmm_: a product of shape ", Shape{a_in.size(0), b_in.size(1)},
         " cannot be added in place to ", x.shape());
  if (a_in.dtype() != x.dtype() || b_in.dtype() != x.dtype())
    fail(ErrorKind::type, "addmm_: needs matrices of ", name_of(x.dtype()), ", got ",
         name_of(a_in.dtype()), " and ", name_of(b_in.dtype()));
  const InPlaceChange change("addmm_", x, a_in, b_in);
  const Operand operands[] = {x, change.before(a_in), change.before(b_in)};
  AttributeList attributes(2);
  attributes.set(0, attribute_of(beta)).set(1, attribute_of(alpha));
  Ref<NodeBase> node;
  if (change.recorded()) node = OpNode::create(kAddmm, operands, 3, attributes, x);
  {
    const GradModeGuard off(false);
    const DType wide = sums_dtype(x);
    const Tensor sums = astype(x, wide);
    const Tensor a = astype(operands[1].tensor, wide), b = astype(operands[2].tensor, wide);
    add_product(sums, a, b, beta, alpha);
    if (!sums.is(x)) copy_into(x, sums);
    change.begin();
  }
  if (!node) return;
  change.join_graph(x, [&](const Tensor& y) {
    OpNode* const made = static_cast<OpNode*>(node.get());
    made->save(operands, &y);
    attach(y, made);
  });
}

void matmul_in_place(Tensor& x, const Tensor& b) {
  const InPlaceChange change("matmul", x, b);
  // The product's gradients read what it is about to overwrite.
  const bool saves_x = change.recorded() && b.requires_grad();
  const Tensor product = matmul(saves_x ? copy(x) : x, change.recorded() ? change.before(b) : b);
  if (!(product.shape() == x.shape()))
    fail(ErrorKind::value, "matmul: a product of shape ", product.shape(),
         " cannot be written in place into ", x.shape());
  check_kind_in_place("matmul", product.dtype(), x);
  assign(x, product);
}

}  // namespace tw
