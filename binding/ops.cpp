// Functions of the ops that are not pointwise rows.
#include "binding/module.h"
#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/ops/clip.h"
#include "core/ops/copy.h"
#include "core/ops/create.h"
#include "core/ops/join.h"
#include "core/ops/loss.h"
#include "core/ops/matmul.h"
#include "core/ops/pointwise.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/ops/softmax.h"
#include "core/ops/view.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

template <class F> Tensor created(nb::handle device, bool requires_grad, F make) {
  check_device(device);
  Tensor y = make();
  if (requires_grad && !is_floating(y.dtype()))
    fail(ErrorKind::type, "only floating-point tensors can require grad, got ", name_of(y.dtype()));
  set_requires_grad(y, requires_grad);
  return y;
}

void bind_creation(nb::module_& m) {
  const auto dtype_default = "dtype"_a = nb::none();
  const auto or_default = [](std::optional<DType> dtype) { return dtype.value_or(DType::float32); };
  m.def(
      "empty",
      [=](const Shape& shape, std::optional<DType> dtype, nb::handle device, bool requires_grad) {
        for (std::int64_t extent : shape)
          if (extent < 0) fail(ErrorKind::value, "empty: shape ", shape, " has a negative extent");
        return created(device, requires_grad,
                       [&] { return Tensor::empty(shape, or_default(dtype)); });
      },
      "shape"_a, dtype_default, "device"_a = nb::none(), "requires_grad"_a = false,
      "A tensor with unspecified contents.");
  m.def(
      "zeros",
      [=](const Shape& shape, std::optional<DType> dtype, nb::handle device, bool requires_grad) {
        return created(device, requires_grad, [&] { return zeros(shape, or_default(dtype)); });
      },
      "shape"_a, dtype_default, "device"_a = nb::none(), "requires_grad"_a = false,
      "A tensor of zeros.");
  m.def(
      "ones",
      [=](const Shape& shape, std::optional<DType> dtype, nb::handle device, bool requires_grad) {
        return created(device, requires_grad, [&] { return full(shape, 1, or_default(dtype)); });
      },
      "shape"_a, dtype_default, "device"_a = nb::none(), "requires_grad"_a = false,
      "A tensor of ones.");
  m.def(
      "full",
      [](const Shape& shape, const Scalar& value, std::optional<DType> dtype, nb::handle device,
         bool requires_grad) {
        return created(device, requires_grad,
                       [&] { return full(shape, value, dtype.value_or(value.natural_dtype())); });
      },
      "shape"_a, "fill_value"_a, "dtype"_a = nb::none(), "device"_a = nb::none(),
      "requires_grad"_a = false, "A tensor of one value.");
  m.def(
      "empty_like",
      [](const Tensor& x, std::optional<DType> dtype, nb::handle device) {
        return created(device, false,
                       [&] { return Tensor::empty(x.shape(), dtype.value_or(x.dtype())); });
      },
      "x"_a, "dtype"_a = nb::none(), "device"_a = nb::none(),
      "Like empty, shape and dtype from x.");
  m.def(
      "zeros_like",
      [](const Tensor& x, std::optional<DType> dtype, nb::handle device) {
        return created(device, false, [&] { return zeros(x.shape(), dtype.value_or(x.dtype())); });
      },
      "x"_a, "dtype"_a = nb::none(), "device"_a = nb::none(),
      "Like zeros, shape and dtype from x.");
  m.def(
      "ones_like",
      [](const Tensor& x, std::optional<DType> dtype, nb::handle device) {
        return created(device, false,
                       [&] { return full(x.shape(), 1, dtype.value_or(x.dtype())); });
      },
      "x"_a, "dtype"_a = nb::none(), "device"_a = nb::none(), "Like ones, shape and dtype from x.");
  m.def(
      "full_like",
      [](const Tensor& x, const Scalar& value, std::optional<DType> dtype, nb::handle device) {
        return created(device, false,
                       [&] { return full(x.shape(), value, dtype.value_or(x.dtype())); });
      },
      "x"_a, "fill_value"_a, "dtype"_a = nb::none(), "device"_a = nb::none(),
      "Like full, shape and dtype from x.");
  m.def(
      "arange",
      [](const Scalar& start, std::optional<Scalar> stop, const Scalar& step,
         std::optional<DType> dtype, nb::handle device, bool requires_grad) {
        const Scalar first = stop ? start : Scalar(0), last = stop ? *stop : start;
        const bool whole = first.kind <= Scalar::Kind::integer &&
                           last.kind <= Scalar::Kind::integer && step.kind <= Scalar::Kind::integer;
        return created(device, requires_grad, [&] {
          return arange(first, last, step, dtype.value_or(whole ? DType::int64 : DType::float32));
        });
      },
      "start"_a, "stop"_a = nb::none(), "step"_a = 1, "dtype"_a = nb::none(),
      "device"_a = nb::none(), "requires_grad"_a = false,
      "start, start + step, ... up to but without stop.");
  m.def(
      "linspace",
      [=](double start, double stop, std::int64_t num, std::optional<DType> dtype,
          nb::handle device, bool endpoint) {
        return created(device, false,
                       [&] { return linspace(start, stop, num, endpoint, or_default(dtype)); });
      },
      "start"_a, "stop"_a, "num"_a, dtype_default, "device"_a = nb::none(), "endpoint"_a = true,
      "num evenly spaced numbers from start to stop.");
  m.def(
      "eye",
      [=](std::int64_t rows, std::optional<std::int64_t> columns, std::int64_t k,
          std::optional<DType> dtype, nb::handle device) {
        return created(device, false,
                       [&] { return eye(rows, columns.value_or(rows), k, or_default(dtype)); });
      },
      "n_rows"_a, "n_cols"_a = nb::none(), "k"_a = 0, dtype_default, "device"_a = nb::none(),
      "Ones on the k-th diagonal, zeros elsewhere.");
  m.def("tril", tril, "x"_a, "k"_a = 0, "The part of the last two axes on and below diagonal k.");
  m.def("triu", triu, "x"_a, "k"_a = 0, "The part of the last two axes on and above diagonal k.");
}

Generator& stream(Generator* generator) { return generator ? *generator : default_generator(); }

void bind_random(nb::module_& m) {
  nb::class_<Generator>(m, "Generator", "A stream of random numbers: seed and position.")
      .def(
          "__init__", [](Generator* self, std::uint64_t seed) { new (self) Generator{seed}; },
          "seed"_a)
      .def(
          "manual_seed", [](Generator& g, std::uint64_t seed) { g = {seed}; }, "seed"_a,
          "Starts the stream of another seed.")
      .def("__repr__",
           [](const Generator& g) {
             return "<Generator: seed " + std::to_string(g.seed) + ", position " +
                    std::to_string(g.position) + ">";
           })
      .def_prop_ro("seed", [](const Generator& g) { return g.seed; })
      .def_rw("position", &Generator::position, "32-bit words already used, a multiple of 4.");
  m.def(
      "manual_seed", [](std::uint64_t seed) { default_generator() = {seed}; }, "seed"_a,
      "Seeds the default generator.");
  const auto size = "size"_a;
  const auto generator = "generator"_a = nb::none();
  const auto dtype_default = "dtype"_a = DType::float32;
  const auto device = "device"_a = nb::none();
  m.def(
      "uniform",
      [](double low, double high, const Shape& shape, DType dtype, Generator* g, bool rg,
         nb::handle device) {
        return created(device, rg, [&] { return uniform(stream(g), shape, low, high, dtype); });
      },
      "low"_a, "high"_a, size, dtype_default, generator, "requires_grad"_a = false, device,
      "Uniform numbers in [low, high).");
  m.def(
      "normal",
      [](double mean, double std, const Shape& shape, DType dtype, Generator* g, bool rg,
         nb::handle device) {
        return created(device, rg, [&] { return normal(stream(g), shape, mean, std, dtype); });
      },
      "mean"_a, "std"_a, size, dtype_default, generator, "requires_grad"_a = false, device,
      "Normally distributed numbers (Box and Muller, 1958).");
  const auto standard = [&](const char* name, auto draw, const char* help) {
    m.def(
        name,
        [draw](const Shape& shape, DType dtype, Generator* g, nb::handle device, bool rg) {
          return created(device, rg, [&] { return draw(stream(g), shape, 0, 1, dtype); });
        },
        "size"_a = nb::make_tuple(), nb::kw_only(), dtype_default, generator, device,
        "requires_grad"_a = false, help);
  };
  standard("rand", uniform, "Uniform numbers in [0, 1).");
  standard("randn", normal, "Normally distributed numbers of mean 0 and variance 1.");
  m.def(
      "randint",
      [](std::int64_t low, std::int64_t high, const Shape& shape, DType dtype, Generator* g,
         nb::handle device) {
        return created(device, false, [&] { return randint(stream(g), shape, low, high, dtype); });
      },
      "low"_a, "high"_a, size, "dtype"_a = DType::int64, generator, device,
      "Whole numbers in [low, high).");
  m.def(
      "randperm",
      [](std::int64_t n, Generator* g, nb::handle device) {
        return created(device, false, [&] { return randperm(stream(g), n); });
      },
      "n"_a, generator, device, "0 to n - 1 in random order.");
  m.def(
      "bernoulli",
      [](double p, const Shape& shape, DType dtype, Generator* g, nb::handle device) {
        return created(device, false, [&] { return bernoulli(stream(g), shape, p, dtype); });
      },
      "p"_a, size, dtype_default, generator, device, "1 with probability p, else 0.");
  m.def(
      "dropout",
      [](const Tensor& x, double p, bool training, Generator* g) {
        return training ? dropout(stream(g), x, p) : x;
      },
      "x"_a, "p"_a = 0.5, "training"_a = true, generator,
      "Zeroes elements with probability p and scales the rest by 1 / (1 - p), while training\n"
      "(Srivastava et al., 2014).");
}

void bind_shapes(nb::module_& m) {
  m.def(
      "reshape",
      [](const Tensor& x, const Shape& shape, std::optional<bool> copy_arg) {
        return reshape(copy_arg == true ? copy(x) : x, shape, copy_arg != false);
      },
      "x"_a, "shape"_a, nb::kw_only(), "copy"_a = nb::none(),
      "The same elements in another shape; one extent may be -1.");
  m.def(
      "permute_dims",
      [](const Tensor& x, const AxisArgument& axes) { return permute_dims(x, axes.axes); }, "x"_a,
      "axes"_a, "Axes in another order, as a view.");
  m.def("broadcast_to", broadcast_to, "x"_a, "shape"_a, "Axes of extent 1 repeated, as a view.");
  m.def("expand_dims", expand_dims, "x"_a, "axis"_a = 0, "A new axis of extent 1.");
  m.def(
      "squeeze", [](const Tensor& x, const AxisArgument& axes) { return squeeze(x, axes.axes); },
      "x"_a, "axis"_a, "Drops axes of extent 1.");
  m.def(
      "flip",
      [](const Tensor& x, const AxisArgument& axis) {
        std::vector<std::int64_t> axes = axis.axes;
        for (int i = 0; axis.none && i < x.rank(); ++i) axes.push_back(i);
        return flip(x, axes);
      },
      "x"_a, "axis"_a = nb::none(), "Order reversed along axes (all by default), as a view.");
  m.def(
      "concat",
      [](const std::vector<Tensor>& tensors, std::optional<std::int64_t> axis) {
        if (axis) return concat(tensors, *axis);
        std::vector<Tensor> flat;
        for (const Tensor& x : tensors) flat.push_back(reshape(x, {-1}));
        return concat(flat, 0);
      },
      "arrays"_a, "axis"_a = 0, "Tensors joined along an existing axis (None: flattened).");
  m.def("stack", stack, "arrays"_a, "axis"_a = 0, "Tensors joined along a new axis.");
  m.def(
      "astype",
      [](const Tensor& x, DType dtype, bool always_copy) { return astype(x, dtype, always_copy); },
      "x"_a, "dtype"_a, nb::kw_only(), "copy"_a = true, "x converted to another dtype.");
  m.def("take", take, "x"_a, "indices"_a, "axis"_a = 0,
        "Elements at integer indices along an axis.");
  m.def(
      "nonzero", [](const Tensor& x) { return nb::tuple(nb::cast(nonzero(x))); }, "x"_a,
      "Positions of the nonzero elements: one int64 tensor for each axis.");
  m.def(
      "one_hot", [](const Tensor& x, std::int64_t n, DType dtype) { return one_hot(x, n, dtype); },
      "indices"_a, "num_classes"_a, "dtype"_a = DType::float32,
      "1 at each index along a new last axis.");
  m.def(
      "broadcast_shapes",
      [](const std::vector<Shape>& shapes) {
        Shape out;
        for (const Shape& shape : shapes) {
          for (std::int64_t extent : shape)
            if (extent < 0)
              fail(ErrorKind::value, "broadcast_shapes: shape ", shape, " has a negative extent");
          out = broadcast_shapes(out, shape, "broadcast_shapes");
        }
        return out;
      },
      "shapes"_a, "The shape that all of `shapes` broadcast to.");
  m.def(
      "result_type",
      [](nb::args args) {
        std::optional<DType> type;
        std::vector<Scalar> scalars;
        for (nb::handle arg : args) {
          DType dtype;
          Scalar scalar(0);
          if (is_tensor(arg.ptr()))
            dtype = raw_tensor(arg.ptr()).dtype();
          else if (read_scalar(arg.ptr(), scalar)) {
            scalars.push_back(scalar);
            continue;
          } else if (!read_dtype(arg.ptr(), dtype))
            fail(ErrorKind::type, "result_type: expected tensors, dtypes or numbers");
          type = type ? promote(*type, dtype) : dtype;
        }
        for (const Scalar& s : scalars) type = type ? weak_promote(*type, s) : s.natural_dtype();
        if (!type) fail(ErrorKind::value, "result_type: no arguments");
        return *type;
      },
      "The common type of tensors, dtypes and (weak) numbers.");
}

Axes axes_of(const AxisArgument& axis) { return axis.none ? Axes() : Axes(axis.axes); }

template <class F>
void bind_reduction(nb::module_& m, const char* name, F function, const char* doc) {
  const auto call = [function](const Tensor& x, const AxisArgument& axis, bool keepdims) {
    return function(x, axes_of(axis), keepdims);
  };
  m.def(name, call, "x"_a, "axis"_a = nb::none(), "keepdims"_a = false, doc);
  method(name, call, "axis"_a = nb::none(), "keepdims"_a = false, doc);
}

template <class F> void bind_sum(nb::module_& m, const char* name, F function, const char* doc) {
  const auto call = [function](const Tensor& x, const AxisArgument& axis, bool keepdims,
                               std::optional<DType> dtype) {
    return function(x, axes_of(axis), keepdims, dtype);
  };
  m.def(name, call, "x"_a, "axis"_a = nb::none(), "keepdims"_a = false, "dtype"_a = nb::none(),
        doc);
  method(name, call, "axis"_a = nb::none(), "keepdims"_a = false, "dtype"_a = nb::none(), doc);
}

template <class F> void bind_arg(nb::module_& m, const char* name, F function, const char* doc) {
  m.def(name, function, "x"_a, "axis"_a = nb::none(), "keepdims"_a = false, doc);
  method(name, function, "axis"_a = nb::none(), "keepdims"_a = false, doc);
}

void bind_reductions(nb::module_& m) {
  bind_sum(m, "sum", sum, "Sum over all or some axes; of integers in 64 bits.");
  bind_sum(m, "prod", prod, "Product over all or some axes; of integers in 64 bits.");
  bind_reduction(m, "mean", mean, "Mean over all or some axes, in x's floating type.");
  bind_reduction(m, "max", max, "Largest element; NaN where there is one.");
  bind_reduction(m, "min", min, "Smallest element; NaN where there is one.");
  bind_reduction(m, "any", any, "Whether any element is nonzero.");
  bind_reduction(m, "all", all, "Whether all elements are nonzero.");
  bind_reduction(m, "logsumexp", logsumexp, "log(sum(exp(x))) without overflow.");
  bind_arg(m, "argmax", argmax,
           "Index of the first largest element (of the flattened x by default).");
  bind_arg(m, "argmin", argmin,
           "Index of the first smallest element (of the flattened x by default).");
  const auto variance = [](const Tensor& x, const AxisArgument& axis, double correction,
                           bool keepdims) { return var(x, axes_of(axis), correction, keepdims); };
  const auto deviation = [](const Tensor& x, const AxisArgument& axis, double correction,
                            bool keepdims) {
    return standard_deviation(x, axes_of(axis), correction, keepdims);
  };
  m.def("var", variance, "x"_a, "axis"_a = nb::none(), "correction"_a = 0.0, "keepdims"_a = false,
        "Variance; correction is taken off the number of elements.");
  m.def("std", deviation, "x"_a, "axis"_a = nb::none(), "correction"_a = 0.0, "keepdims"_a = false,
        "Standard deviation; correction is taken off the number of elements.");
  method("var", variance, "axis"_a = nb::none(), "correction"_a = 0.0, "keepdims"_a = false,
         "Variance.");
  method("std", deviation, "axis"_a = nb::none(), "correction"_a = 0.0, "keepdims"_a = false,
         "Standard deviation.");
}

Reduction read_reduction(const std::string& name, const char* op) {
  if (name == "mean") return Reduction::mean;
  if (name == "sum") return Reduction::sum;
  if (name == "none") return Reduction::none;
  fail(ErrorKind::value, op, ": reduction must be 'mean', 'sum' or 'none', got '", name, "'");
}

void bind_network(nb::module_& m) {
  m.def("matmul", matmul, "a"_a, "b"_a,
        "Matrix product; 1-D operands are vectors, leading axes are broadcast batches.");
  m.def(
      "linear",
      [](const Tensor& x, const Tensor& w, std::optional<Tensor> bias,
         const nb::object& activation) {
        const bool relu = !activation.is_none();
        if (relu &&
            !(nb::isinstance<nb::str>(activation) && nb::cast<std::string>(activation) == "relu"))
          fail(ErrorKind::value, "linear: activation must be None or 'relu', got ",
               nb::cast<std::string>(nb::repr(activation)));
        return linear(x, w, bias.value_or(Tensor()), relu);
      },
      "x"_a, "weight"_a, "bias"_a = nb::none(), nb::kw_only(), "activation"_a = nb::none(),
      "x @ weight.T + bias for x (..., in), weight (out, in), bias (out,); with activation='relu' "
      "what is negative becomes 0 as the product is stored.");
  m.def("addmm", addmm, "input"_a, "mat1"_a, "mat2"_a, nb::kw_only(), "beta"_a = 1.0,
        "alpha"_a = 1.0,
        "beta * input + alpha * (mat1 @ mat2), for floating types; mat1 is (m, k), mat2 (k, n), "
        "input broadcasts to (m, n) and is not read where beta is 0. Raises ValueError for shapes "
        "that do not fit, TypeError for other types.");
  m.def(
      "cross_entropy",
      [](const Tensor& logits, const Tensor& targets, const std::string& reduction,
         std::int64_t ignore_index) {
        return cross_entropy(logits, targets, read_reduction(reduction, "cross_entropy"),
                             ignore_index);
      },
      "logits"_a, "targets"_a, "reduction"_a = "mean", "ignore_index"_a = -100,
      "Negative log-likelihood of integer targets (n,) under logits (n, classes).");
  m.def(
      "mse_loss",
      [](const Tensor& x, const Tensor& y, const std::string& reduction) {
        const Reduction how = read_reduction(reduction, "mse_loss");
        return mse_loss(x, y, how);
      },
      "x"_a, "y"_a, "reduction"_a = "mean", "Squared differences, averaged by default.");
  nb::delattr(m, "clip");  // the table's row, which this one adds optional bounds to
  const auto limited = [](const Tensor& x, std::optional<Operand> low,
                          std::optional<Operand> high) { return clip_between(x, low, high); };
  m.def("clip", limited, "x"_a, "min"_a = nb::none(), "max"_a = nb::none(),
        "x limited to the range from min to max.");
  method("clip", limited, "min"_a = nb::none(), "max"_a = nb::none(),
         "Limited to the range from min to max.");
}

}  // namespace

void bind_ops(nb::module_& m) {
  bind_creation(m);
  bind_random(m);
  bind_shapes(m);
  bind_reductions(m);
  bind_network(m);
}

}  // namespace tw::binding
