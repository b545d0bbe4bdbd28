// Matrix products: checks, shapes, types, choice of the kernel, gradients.
#include "core/ops/matmul.h"

#include <memory>

#include "core/autograd/op_node.h"
#include "core/cpu/isa.h"
#include "core/cpu/matmul.h"
#include "core/ops/copy.h"
#include "core/ops/in_place.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/view.h"
#include "core/runtime/profile.h"
#include "core/runtime/warning.h"
#include "core/tensor/access.h"

namespace tw {
namespace {

std::string problem_text(const MatmulProblem& p) {
  std::string text = std::string(name_of(p.dtype)) + " ";
  if (p.batch != 1) text += std::to_string(p.batch) + "x";
  text += std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k);
  if (p.beta != 0) text += " + c";
  if (p.epilogue.bias) text += " + bias";
  return p.epilogue.relu ? text + ", relu" : text;
}

// Types without a fast rung fall back to three plain loops, a hundred times slower than float32.
void warn_of_slow_path(const Kernel& kernel, DType dtype, double flops) {
  constexpr double kNoticeable = 2e7;  // about 10 ms
  if (modes.device || modes.dry_run) return;
  if (flops < kNoticeable || is_floating(dtype) || std::string_view(kernel.name) != "naive") return;
  warn_once(
      std::string("matmul ") + name_of(dtype),
      std::string("matmul: no fast kernel for ") + name_of(dtype) +
          ", the naive one runs; where the values allow, convert with astype(float32) or float64");
}

OpKernels* matmul_kernels() {
  static OpKernels* const kernels = find_op("matmul");
  return kernels;
}

const Kernel& choose(const MatmulProblem& p) {
  // On the heap: static TLS space is scarce for libraries that are loaded late (dlopen).
  thread_local std::unique_ptr<ChoiceCache<11>> cache;
  if (!cache) [[unlikely]]
    cache = std::make_unique<ChoiceCache<11>>();
  // All of a problem but its pointers and its batch, with which every estimate grows alike.
  const std::int64_t extras = (p.beta != 0) | (p.epilogue.bias != nullptr) << 1 |
                              int(p.epilogue.relu) << 2 | p.epilogue.row << 3;
  return cache->choose(matmul_kernels(), &p,
                       {static_cast<std::int64_t>(p.dtype), p.m, p.n, p.k, p.a_row, p.a_col,
                        p.b_row, p.b_col, p.c_row, p.c_col, extras});
}

void solve(const MatmulProblem& p) {
  const Kernel& kernel = choose(p);
  const double size = static_cast<double>(size_of(p.dtype));
  const double batch = static_cast<double>(p.batch), m = static_cast<double>(p.m),
               n = static_cast<double>(p.n), k = static_cast<double>(p.k);
  const double flops = 2 * batch * m * n * k;
  warn_of_slow_path(kernel, p.dtype, flops);
  // The lock is given away by work, not by bytes: about 20 us at 100 flops a nanosecond.
  Unlocked unlocked(flops > 2e6 ? 2e6 : 0);
  dispatch(
      flops, modes.observers ? batch * (m * k + k * n + (p.beta != 0 ? 2 : 1) * m * n) * size : 0,
      [&] { kernel.run(&p); },
      [&](Observation& seen) {
        seen.op = "matmul";
        seen.kernel = kernel.name;
        seen.isa = name_of(active_isa());
        seen.problem = problem_text(p);
        seen.candidates = candidates(matmul_kernels(), &p);
      });
}

// Batch axes of a, b and c merged into one stride each where possible; the rest is walked.
struct Batches {
  Shape shape;
  Strides a, b, c;

  // Appends an axis, merged with the one before where all three allow.
  void push(std::int64_t n, std::int64_t sa, std::int64_t sb, std::int64_t sc) {
    if (n == 1) return;
    const int last = shape.rank() - 1;
    if (last >= 0 && a[last] == n * sa && b[last] == n * sb && c[last] == n * sc) {
      shape[last] *= n;
      a[last] = sa;
      b[last] = sb;
      c[last] = sc;
      return;
    }
    shape.push_back(n);
    a.push_back(sa);
    b.push_back(sb);
    c.push_back(sc);
  }
};

std::int64_t batch_stride(const Tensor& x, int axis_from_end) {
  const int axis = x.rank() - 3 - axis_from_end;
  return axis < 0 || x.size(axis) == 1 ? 0 : x.strides()[axis];
}

// What a product is, besides its operands.
struct Extras {
  double alpha = 1, beta = 0;
  Tensor bias;  // contiguous, one or two axes that broadcast to the result's, or none
  bool relu = false;
  const InPlaceChange* change = nullptr;  // where what c held is the caller's own
};
MatmulEpilogue epilogue_of(Access& at, const Extras& extras) {
  const Tensor& bias = extras.bias;
  if (!bias) return {nullptr, 0, 0, extras.relu};
  const bool by_rows = bias.rank() == 2 && bias.size(0) > 1;
  return {at(bias), by_rows, bias.size(bias.rank() - 1) > 1, extras.relu};
}

void solve_batches(const Tensor& a, const Tensor& b, const Tensor& c, const Extras& extras) {
  const int rank = c.rank();
  MatmulProblem p;
  p.alpha = extras.alpha;
  p.beta = extras.beta;
  Access at;
  p.epilogue = epilogue_of(at, extras);
  p.dtype = c.dtype();
  p.m = a.size(a.rank() - 2);
  p.k = a.size(a.rank() - 1);
  p.n = b.size(b.rank() - 1);
  p.a_row = a.strides()[a.rank() - 2];
  p.a_col = a.strides()[a.rank() - 1];
  p.b_row = b.strides()[b.rank() - 2];
  p.b_col = b.strides()[b.rank() - 1];
  p.c_row = c.strides()[rank - 2];
  p.c_col = c.strides()[rank - 1];
  Batches batches;
  for (int axis = 0; axis < rank - 2; ++axis) {
    const int from_end = rank - 3 - axis;
    batches.push(c.size(axis), batch_stride(a, from_end), batch_stride(b, from_end),
                 c.strides()[axis]);
  }
  const int outer_axes = batches.shape.rank() - 1;
  p.batch = outer_axes >= 0 ? batches.shape[outer_axes] : 1;
  p.a_batch = outer_axes >= 0 ? batches.a[outer_axes] : 0;
  p.b_batch = outer_axes >= 0 ? batches.b[outer_axes] : 0;
  p.c_batch = outer_axes >= 0 ? batches.c[outer_axes] : 0;
  // A forced kernel that cannot read views gets copies; the free choice weighs layouts itself.
  if (!forced_kernel_accepts(matmul_kernels(), &p) && !(a.contiguous() && b.contiguous()))
    return solve_batches(contiguous(a), contiguous(b), c, extras);
  if (extras.change) {
    choose(p);  // a kernel that refuses does so before anything is changed
    extras.change->begin();
  }
  const char *const first_a = at(a), *const first_b = at(b);
  char* const first_c = at(c);
  std::int64_t outer = 1;
  for (int axis = 0; axis < outer_axes; ++axis) outer *= batches.shape[axis];
  const auto bytes = static_cast<std::int64_t>(c.item_bytes());
  for (std::int64_t index = 0; index < outer; ++index) {
    std::int64_t rest = index, at_a = 0, at_b = 0, at_c = 0;
    for (int axis = outer_axes - 1; axis >= 0; --axis) {
      const std::int64_t i = rest % batches.shape[axis];
      rest /= batches.shape[axis];
      at_a += i * batches.a[axis];
      at_b += i * batches.b[axis];
      at_c += i * batches.c[axis];
    }
    p.a = first_a + at_a * bytes;
    p.b = first_b + at_b * bytes;
    p.c = first_c + at_c * bytes;
    solve(p);
  }
}

// Whether a kernel multiplies bfloat16 as it is sooner than another one copies in float32. A forced
// kernel decides by what it accepts.
bool stays_bfloat16(const Tensor& a, const Tensor& b) {
  if (a.dtype() != DType::bfloat16 || a.count() == 0 || b.count() == 0) return false;
  const std::int64_t m = a.size(a.rank() - 2), k = a.size(a.rank() - 1), n = b.size(b.rank() - 1);
  MatmulProblem p{};
  p.dtype = DType::bfloat16;
  p.batch = 1;
  p.m = m, p.n = n, p.k = k;
  p.a_row = a.strides()[a.rank() - 2], p.a_col = a.strides()[a.rank() - 1];
  p.b_row = b.strides()[b.rank() - 2], p.b_col = b.strides()[b.rank() - 1];
  p.c_row = n, p.c_col = 1;
  OpKernels* const kernels = matmul_kernels();
  if (!forced_kernel_accepts(kernels, &p)) return false;
  const double narrow_ns = choose(p).cost_ns(&p);
  p.dtype = DType::float32;
  if (!forced_kernel_accepts(kernels, &p)) return true;
  constexpr double kNsPerCopy = 100, kNsPerElement = 0.15;
  const double copies_ns =
      3 * kNsPerCopy +
      kNsPerElement * (double(m) * double(k) + double(k) * double(n) + double(m) * double(n));
  return narrow_ns < choose(p).cost_ns(&p) + copies_ns;
}

// Half types are computed in float32 unless bfloat16 has a kernel; everything else in its own type.
DType compute_dtype(const Tensor& a, const Tensor& b) {
  const DType dtype = a.dtype();
  if (is_bool(dtype))
    fail(ErrorKind::type, "matmul: no product of bool matrices; convert with astype");
  if (stays_bfloat16(a, b)) return dtype;
  return is_floating(dtype) && size_of(dtype) == 2 ? DType::float32 : dtype;
}

// Whether kernels of this type add a bias and take a relu themselves.
bool is_fused(DType dtype) { return dtype == DType::float32 || dtype == DType::float64; }

// After a product whose kernel has no epilogue: of bfloat16 that is multiplied as it is.
void apply_epilogue_apart(Tensor& c, const Extras& extras) {
  if (extras.bias) {
    Operand operands[] = {c, extras.bias};
    pointwise_in_place(PointwiseOp::add, operands);
  }
  if (extras.relu) {
    Operand operand = c;
    pointwise_in_place(PointwiseOp::relu, &operand);
  }
}

// Both of rank 2 or more and of one type, which is that of a bias.
Tensor multiply_matrices(const Tensor& a, const Tensor& b, const Extras& extras = {}) {
  Shape shape, batch_a, batch_b;
  for (int i = 0; i < a.rank() - 2; ++i) batch_a.push_back(a.size(i));
  for (int i = 0; i < b.rank() - 2; ++i) batch_b.push_back(b.size(i));
  shape = batch_a == batch_b ? batch_a : broadcast_shapes(batch_a, batch_b, "matmul");
  shape.push_back(a.size(a.rank() - 2));
  shape.push_back(b.size(b.rank() - 1));
  const DType wide = compute_dtype(a, b);
  Tensor c = Tensor::empty(shape, wide);
  if (c.count() == 0) return astype(c, a.dtype());
  const bool fused = is_fused(wide);
  Extras used = extras;
  if (!fused) {
    used.bias = Tensor();
    used.relu = false;
  } else if (used.bias) {
    used.bias = contiguous(astype(used.bias, wide));
  }
  solve_batches(with_lines(astype(a, wide)), with_lines(astype(b, wide)), c, used);
  if (!fused) apply_epilogue_apart(c, extras);
  return astype(c, a.dtype());
}

// c = beta * c + alpha * a @ b for matrices of one floating type, in the memory of c, which holds
// neither a nor b. `change`: where c is the caller's own.
void add_product(Tensor& c, const Tensor& a, const Tensor& b, double beta, double alpha,
                 const InPlaceChange* change) {
  if (c.count() == 0) return;
  const DType wide = compute_dtype(a, b) == DType::float64 ? DType::float64 : DType::float32;
  const bool direct = wide == c.dtype();
  Tensor sums = astype(c, wide);
  solve_batches(with_lines(astype(a, wide)), with_lines(astype(b, wide)), sums,
                {alpha, beta, Tensor(), false, direct ? change : nullptr});
  if (!direct) assign(c, sums);
}

Tensor transposed(const Tensor& x) { return swap_axes(x, x.rank() - 2, x.rank() - 1); }

Tensor recorded_product(const Tensor& a, const Tensor& b) {
  Tensor c;
  {
    GradModeGuard off(false);
    c = multiply_matrices(a, b);
  }
  if (!should_record(a, b) || !is_floating(c.dtype())) return c;
  const bool needs_a = b.requires_grad(), needs_b = a.requires_grad();
  record_saving(
      c, "matmul",
      with_saved(
          [shape_a = a.shape(), shape_b = b.shape()](Node& node, const Tensor& g, Tensor* dx,
                                                     const SavedTensor& a, const SavedTensor& b) {
            if (node.wants(0))
              dx[0] = sum_to(matmul(g, transposed(b.get(node, "second input"))), shape_a);
            if (node.wants(1))
              dx[1] = sum_to(matmul(transposed(a.get(node, "first input")), g), shape_b);
          },
          needs_a ? SavedTensor(a) : SavedTensor(), needs_b ? SavedTensor(b) : SavedTensor()),
      a, b);
  return c;
}

// A stack of matrices as one of all their rows.
Tensor as_rows(const Tensor& x) {
  if (x.rank() == 2) return x;
  std::int64_t rows = 1;
  for (int i = 0; i < x.rank() - 1; ++i) rows *= x.size(i);
  return reshape(x, {rows, x.size(x.rank() - 1)});
}
// The same for a fresh result, the other way: a tensor of its own, not a view.
Tensor as_stack(const Tensor& rows, const Shape& like) {
  if (like.rank() == 2) return rows;
  Shape shape = like;
  shape[shape.rank() - 1] = rows.size(1);
  const Tensor view = reshape(rows, shape);
  return Tensor::over(view->storage, view->offset_bytes, shape, view.strides(), view.dtype());
}

// One tall product instead of a batch of them.
Tensor recorded_stack(const Tensor& a, const Tensor& b) {
  Tensor c;
  {
    GradModeGuard off(false);
    c = as_stack(multiply_matrices(as_rows(a), b), a.shape());
  }
  if (!should_record(a, b) || !is_floating(c.dtype())) return c;
  const bool needs_a = b.requires_grad(), needs_b = a.requires_grad();
  record_saving(
      c, "matmul",
      with_saved(
          [shape = a.shape()](Node& node, const Tensor& g_in, Tensor* dx, const SavedTensor& a,
                              const SavedTensor& b) {
            const Tensor g = as_rows(g_in);
            if (node.wants(0))
              dx[0] = reshape(matmul(g, transposed(b.get(node, "second input"))), shape);
            if (node.wants(1)) dx[1] = matmul(transposed(as_rows(a.get(node, "first input"))), g);
          },
          needs_a ? SavedTensor(a) : SavedTensor(), needs_b ? SavedTensor(b) : SavedTensor()),
      a, b);
  return c;
}

void check(const Tensor& a, const Tensor& b) {
  if (a.rank() == 0 || b.rank() == 0)
    fail(ErrorKind::value, "matmul: needs at least 1 dimension: ", a.shape(), " @ ", b.shape(),
         "; use * for numbers");
  const std::int64_t inner_b = b.rank() == 1 ? b.size(0) : b.size(b.rank() - 2);
  if (a.size(a.rank() - 1) != inner_b)
    fail(ErrorKind::value, "matmul: inner sizes differ: ", a.shape(), " @ ", b.shape());
}

}  // namespace

Tensor matmul(const Tensor& a_in, const Tensor& b_in) {
  check(a_in, b_in);
  Tensor a = a_in, b = b_in;
  if (a.dtype() != b.dtype()) {
    const DType common = promote(a.dtype(), b.dtype());
    a = astype(a, common);
    b = astype(b, common);
  }
  if (a_in.rank() == 1) a = expand_dims(a, 0);
  if (b_in.rank() == 1) b = expand_dims(b, 1);
  const bool tall =
      a.rank() > 2 && b.rank() == 2 && a.count() > 0 && can_view_as(a, {-1, a.size(a.rank() - 1)});
  Tensor c = tall ? recorded_stack(a, b) : recorded_product(a, b);
  if (b_in.rank() == 1) c = owned(squeeze(c, {c.rank() - 1}));
  if (a_in.rank() == 1) c = owned(squeeze(c, {b_in.rank() == 1 ? c.rank() - 1 : c.rank() - 2}));
  return c;
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool with_relu) {
  if (weight.rank() != 2 || x.rank() == 0 || x.size(x.rank() - 1) != weight.size(1))
    fail(ErrorKind::value, "linear: input ", x.shape(), " does not fit weight ", weight.shape(),
         "; the last extents must agree");
  if (bias && !(bias.shape() == Shape{weight.size(0)}))
    fail(ErrorKind::value, "linear: bias ", bias.shape(), " does not fit weight ", weight.shape());
  if (x.dtype() != weight.dtype() || (bias && bias.dtype() != x.dtype()) ||
      !is_floating(x.dtype()) || x.rank() == 1) {
    const Tensor product = matmul(x, transposed(weight));
    const Tensor y = bias ? add(product, bias) : product;
    return with_relu ? relu(y) : y;
  }
  Tensor y;
  {
    GradModeGuard off(false);
    y = as_stack(multiply_matrices(as_rows(x), transposed(weight), {1, 0, bias, with_relu}),
                 x.shape());
  }
  if (!should_record(x, weight, bias)) return y;
  // Two nodes for one product: what the relu's gradient reads is its result, so the sum before it,
  // which never was in memory, only has a place in the graph.
  const Tensor sum_before = with_relu ? detach(y) : y;
  const bool needs_x = weight.requires_grad(), needs_weight = x.requires_grad();
  record_saving(sum_before, "linear",
                with_saved(
                    [shape = x.shape()](Node& node, const Tensor& g_in, Tensor* dx,
                                        const SavedTensor& x, const SavedTensor& w) {
                      const Tensor g = as_rows(g_in);
                      if (node.wants(0)) {
                        const Tensor rows = matmul(g, w.get(node, "weight"));
                        dx[0] = shape.rank() == 2 ? rows : reshape(rows, shape);
                      }
                      if (node.wants(1))
                        dx[1] = matmul(transposed(g), as_rows(x.get(node, "input")));
                      if (node.wants(2)) dx[2] = sum(g, {0}, false);
                    },
                    needs_x ? SavedTensor(x) : SavedTensor(),
                    needs_weight ? SavedTensor(weight) : SavedTensor()),
                x, weight, bias);
  if (with_relu) {
    const Operand operand = sum_before;
    OpNode::record_call(record_of(PointwiseOp::relu), &operand, 1, {}, &y);
  }
  return y;
}

namespace {

void check_addmm(const Tensor& input, const Tensor& a, const Tensor& b, const char* op) {
  if (a.rank() != 2 || b.rank() != 2 || a.size(1) != b.size(0))
    fail(ErrorKind::value, op, ": needs two matrices whose inner sizes agree: ", a.shape(), " @ ",
         b.shape());
  for (const Tensor* x : {&input, &a, &b})
    if (!is_floating(x->dtype()))
      fail(ErrorKind::type, op, ": floating point only, got ", name_of(x->dtype()),
           "; write beta * input + alpha * (mat1 @ mat2)");
}

// The gradients of beta * input + alpha * a @ b.
void record_addmm(const Tensor& y, const char* op, const Tensor& input, const Tensor& a,
                  const Tensor& b, double beta, double alpha) {
  const auto scaled = [](const Tensor& x, double factor) {
    return factor == 1 ? x : multiply(x, Scalar(factor));
  };
  record_saving(
      y, op,
      with_saved(
          [shape = input.shape(), beta, alpha, scaled](Node& node, const Tensor& g, Tensor* dx,
                                                       const SavedTensor& a, const SavedTensor& b) {
            if (node.wants(0)) dx[0] = scaled(sum_to(g, shape), beta);
            if (node.wants(1)) dx[1] = scaled(matmul(g, transposed(b.get(node, "mat2"))), alpha);
            if (node.wants(2)) dx[2] = scaled(matmul(transposed(a.get(node, "mat1")), g), alpha);
          },
          b.requires_grad() ? SavedTensor(a) : SavedTensor(),
          a.requires_grad() ? SavedTensor(b) : SavedTensor()),
      input, a, b);
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

// One value for each column or for each row: the kernel adds it as it stores the result.
bool is_bias(const Tensor& x, std::int64_t m, std::int64_t n) {
  return x.shape() == Shape{n} || x.shape() == Shape{1, n} || x.shape() == Shape{m, 1};
}

}  // namespace

Tensor addmm(const Tensor& input_in, const Tensor& a_in, const Tensor& b_in, double beta,
             double alpha) {
  check_addmm(input_in, a_in, b_in, "addmm");
  const DType dtype = promote(input_in.dtype(), promote(a_in.dtype(), b_in.dtype()));
  const Tensor input = astype(input_in, dtype), a = astype(a_in, dtype), b = astype(b_in, dtype);
  const Shape shape{a.size(0), b.size(1)};
  if (!fits_into(input.shape(), shape))
    fail(ErrorKind::value, "addmm: input ", input.shape(), " does not fit the product ", shape);
  Tensor y;
  {
    GradModeGuard off(false);
    if (beta == 1 && is_bias(input, shape[0], shape[1]) && is_fused(compute_dtype(a, b))) {
      y = multiply_matrices(a, b, {alpha, 0, input, false});
    } else {
      y = Tensor::empty(shape, dtype);
      if (beta != 0) assign(y, input);
      add_product(y, a, b, beta, alpha, nullptr);
    }
  }
  if (should_record(input, a, b)) record_addmm(y, "addmm", input, a, b, beta, alpha);
  return y;
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
  const Tensor a = change.before(a_in), b = change.before(b_in);
  {
    GradModeGuard off(false);
    add_product(x, a, b, beta, alpha, &change);
  }
  if (!change.recorded()) return;
  change.join_graph(x, [&](const Tensor& y) { record_addmm(y, "addmm_", x, a, b, beta, alpha); });
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
