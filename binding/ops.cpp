// Functions of the ops that are not pointwise rows.
#include "binding/module.h"
#include "core/autograd/node.h"
#include "core/base/error.h"
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
}

void bind_shapes(nb::module_& m) {
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

Reduction read_reduction(const std::string& name, const char* op) {
  if (name == "mean") return Reduction::mean;
  if (name == "sum") return Reduction::sum;
  if (name == "none") return Reduction::none;
  fail(ErrorKind::value, op, ": reduction must be 'mean', 'sum' or 'none', got '", name, "'");
}

void bind_network(nb::module_& m) {
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
}

}  // namespace

void bind_ops(nb::module_& m) {
  bind_random(m);
  bind_shapes(m);
  bind_network(m);
}

}  // namespace tw::binding
