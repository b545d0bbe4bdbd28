// Properties and methods of Tensor that are not on a hot path.
#include <limits>

#include "binding/tensor/attach.h"
#include "binding/tensor/casters.h"
#include "binding/tensor/cycles.h"
#include "binding/tensor/gpu_interchange.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"
#include "core/autograd/backward.h"
#include "core/autograd/capture.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/pointwise/complex.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/random/draws.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/engine/records.h"
#include "core/ops/shape/view.h"
#include "core/runtime/device.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

Tensor transpose_last(const Tensor& x) {
  if (x.rank() < 2) fail(ErrorKind::value, "mT: needs at least 2 dimensions, got ", x.shape());
  return swap_axes(x, x.rank() - 2, x.rank() - 1);
}

void set_requires_grad(const Itself& x, bool value) {
  if (value && !is_differentiable(x.dtype()))
    fail(ErrorKind::type, "only floating-point and complex tensors can require grad, got ",
         name_of(x.dtype()));
  if (!x.is_leaf() && !value)
    fail(ErrorKind::runtime, "requires_grad of a result cannot be switched off; use detach()");
  if (value && !x.requires_grad() && x->is_view) {  // a leaf of its own from here on
    x->family.reset();
    x->recorded_seen = x->storage->recorded_changes;
  }
  if (value && !x.requires_grad() && x->storage->leaves < 254) ++x->storage->leaves;
  tw::set_requires_grad(x, value);
}

void set_grad(const Itself& x, std::optional<Tensor> grad) {
  if (grad && !(grad->shape() == x.shape()))
    fail(ErrorKind::value, "grad of shape ", grad->shape(), " for a tensor of shape ", x.shape());
  if (grad && grad->dtype() != x.dtype())
    fail(ErrorKind::type, "grad of type ", name_of(grad->dtype()), " for a tensor of type ",
         name_of(x.dtype()));
  if (grad && grad->device() != x.device())
    fail(ErrorKind::value, "grad ", describe(*grad),
         " for a tensor on another device: ", describe(x));
  if (modes.capture) modes.capture->note_gradient(*x.get());
  x.extras().grad = grad.value_or(Tensor());
  if (grad && !grad->is_leaf() && held_functions && x->wrapper)
    watch(static_cast<TensorObject*>(x->wrapper));
}

// A device's name as tilewright._engine.device_names.device, made once.
Annotated<"_Device"> device_name(const Device* device) {
  static std::vector<std::pair<const Device*, nb::handle>> names;
  for (const auto& [known, name] : names)
    if (known == device) return nb::borrow(name);
  const nb::object type = nb::module_::import_("tilewright._engine.device_names").attr("device");
  const nb::object name = type(device ? device->name : cpu_device.name);
  names.emplace_back(device, nb::object(name).release());
  return name;
}

// A tilewright._engine.element_count.ElementCount, made without a call of Python.
nb::object element_count(const Tensor& x) {
  // No guarded static: an import lets go of Python's lock, which other threads wait for there.
  static nb::handle type;
  if (!type.is_valid())
    type = nb::object(nb::module_::import_("tilewright._engine.element_count").attr("ElementCount"))
               .release();
  const nb::tuple number = nb::make_tuple(x.count());
  auto* made =
      PyLong_Type.tp_new(reinterpret_cast<PyTypeObject*>(type.ptr()), number.ptr(), nullptr);
  if (!made) throw nb::python_error();
  nb::object count = nb::steal(made);
  count.attr("shape") = x.shape();
  return count;
}

void bind_properties() {
  property("shape", [](const Itself& x) { return x.shape(); }, "Extents, a tuple of ints.");
  property(
      "strides", [](const Itself& x) { return x.strides(); },
      "Steps between elements, in elements.");
  property("dtype", [](const Itself& x) { return x.dtype(); }, "Element type.");
  property(
      "device", [](const Itself& x) { return device_name(x.device()); },
      "Name of the device that the memory belongs to, with its `type` and `index`.");
  property("ndim", [](const Itself& x) { return x.rank(); }, "Number of dimensions.");
  property(
      "size", [](const Itself& x)->Annotated<"_ElementCount"> { return element_count(x); },
      "Number of elements; called, the shape or the extent of one axis.");
  property("itemsize", [](const Itself& x) { return x.item_bytes(); }, "Bytes an element.");
  property(
      "nbytes",
      [](const Itself& x) { return x.count() * static_cast<std::int64_t>(x.item_bytes()); },
      "Bytes of all elements.");
  property(
      "T",
      [](const Tensor& x) {
        if (x.rank() != 2)
          fail(ErrorKind::value, "T: needs 2 dimensions, got ", x.shape(),
               "; use mT or permute_dims");
        return transpose_last(x);
      },
      "The transpose of a matrix, as a view.");
  property("real", real, "The real part, a view; a real tensor itself.");
  property(
      "imag",
      [](const Tensor& x) {
        if (is_complex(x.dtype())) return imag(x);
        const DeviceGuard device(x.device());
        return broadcast_to(zeros({}, x.dtype()), x.shape());
      },
      "The imaginary part, a view; of real tensors zeros that cannot be written to.");
  property("mT", transpose_last, "The last two axes swapped, as a view.");
  property(
      "mH", [](const Itself& x) { return conj(transpose_last(x)); },
      "The conjugate of mT: a view of real numbers, a copy of complex ones.");
  property(
      "H",
      [](const Tensor& x) {
        if (x.rank() != 2)
          fail(ErrorKind::value, "H: needs 2 dimensions, got ", x.shape(), "; use mH");
        return conj(transpose_last(x));
      },
      "The conjugate transpose of a matrix.");
  property(
      "is_leaf", [](const Itself& x) { return x.is_leaf(); }, "Whether no recorded op made it.");
  property(
      "is_sparse", [](const Itself&) { return false; },
      "False: all elements are stored. As PyTorch's, which optimizers ask of gradients.");
  property(
      "is_contiguous", [](const Itself& x) { return x.contiguous(); },
      "Whether row-major without gaps.");
  property(
      "version", [](const Itself& x) { return x.version(); },
      "How often its memory was changed in place.");
  property(
      "data_ptr",
      [](const Itself& x) {
        refuse_in_capture("data_ptr is asked for");
        check_on_cpu(x, "data_ptr");
        x->storage->pin();  // for good: nobody tells when the address is no longer used
        return reinterpret_cast<std::uintptr_t>(x.pinned_bytes());
      },
      "Address of the first element.");
  for (const char* name : {"op", "grad_fn"})
    property(
        name,
        [](const Itself& x) -> std::optional<std::string> {
          if (x.is_leaf()) return std::nullopt;
          return static_cast<Node&>(*x->grad_fn).op;
        },
        "Name of the recorded op that made it, or None.");
  property(
      "requires_grad", [](const Itself& x) { return x.requires_grad(); }, set_requires_grad,
      "Whether ops on it are recorded.");
  property(
      "grad", [](const Itself& x)->Annotated<"Tensor | None"> { return nb::steal(wrap(x.grad())); },
      set_grad, "Gradient added up by backward, or None.");
  property(
      "name", [](const Itself& x) { return x->extras ? x->extras->name : std::string(); },
      [](const Itself& x, const std::string& name) { x.extras().name = name; },
      "Shown in error messages.");
}

void bind_conversions() {
  method(
      "item", [](const Itself& x) { return nb::steal(item_of(x)); },
      "The only element as a number.");
  method(
      "__complex__", [](const Itself& x)->Annotated<"complex"> {
        if (x.count() != 1)
          fail(ErrorKind::type, "complex: a tensor of shape ", x.shape(),
               " is not a single number");
        return nb::handle(reinterpret_cast<PyObject*>(&PyComplex_Type))(nb::steal(item_of(x)));
      });
  method(
      "__array_namespace__",
      [](const Itself&, Annotated<"str"> api_version) {
        return nb::module_::import_("tilewright._compat.array_api").attr("namespace")(api_version);
      },
      nb::kw_only(), "api_version"_a = nb::none());
  method(
      "tolist", [](const Itself& x) { return nb::steal(list_of(x)); }, "Nested lists of numbers.");
  method(
      "astype", [](const Tensor& x, DType dtype) { return astype(x, dtype); }, "dtype"_a,
      "Converted to another dtype; itself where it has it.");
  method(
      "numpy",
      [](nb::object self, bool force) {
        if (force) self = self.attr("detach")().attr("to")("cpu");
        refuse_graph(raw_tensor(self.ptr()), "numpy");
        return nb::module_::import_("numpy").attr("asarray")(nb::memoryview(self));
      },
      nb::kw_only(), "force"_a = false,
      "A NumPy array over the same memory; with force also of a tensor in the graph, detached, and "
      "of one on another device, copied.");
  method(
      "__array__",
      [](nb::object self, nb::object dtype, nb::object copy_arg) {
        refuse_graph(raw_tensor(self.ptr()), "numpy");
        const nb::object numpy = nb::module_::import_("numpy");
        const bool copies = copy_arg.is(nb::handle(Py_True));
        return numpy.attr(copies ? "array" : "asarray")(nb::memoryview(self), dtype);
      },
      "dtype"_a = nb::none(), "copy"_a = nb::none());
  method(
      "__dlpack__",
      [](nb::object self, nb::object stream, nb::object version, nb::object device,
         nb::object copy_arg) {
        return nb::module_::import_("tilewright._core")
            .attr("_to_dlpack")(self, stream, version, device, copy_arg);
      },
      nb::kw_only(), "stream"_a = nb::none(), "max_version"_a = nb::none(),
      "dl_device"_a = nb::none(), "copy"_a = nb::none());
  method("__dlpack_device__", [](const Itself& x) { return dlpack_place(x); });
  property(
      "__cuda_array_interface__", [](const Itself& x) { return cuda_array_interface(x); },
      "How other libraries find the memory of a tensor on a GPU (version 3).");
  method(
      "__reduce_ex__",
      [](nb::object self, Annotated<"typing.SupportsIndex"> protocol)
          ->Annotated<"tuple[typing.Any, ...]"> {
            return nb::module_::import_("tilewright._engine.pickling")
                .attr("reduce")(self, protocol);
          },
      "protocol"_a);
  method(
      "__array_ufunc__",
      [](nb::object, nb::object function, nb::str kind, nb::args inputs, nb::kwargs options) {
        return nb::module_::import_("tilewright._compat.numpy_functions")
            .attr("call")(function, kind, inputs, options);
      },
      "function"_a, "kind"_a, "inputs"_a, "options"_a);
}

// Runs an in-place change on the tensor behind `self`.
template <class F> nb::object changed(nb::object self, F change) {
  if (!is_tensor(self.ptr())) fail(ErrorKind::type, "expected a Tensor");
  Tensor x = raw_tensor(self.ptr());
  change(x);
  return self;
}

void bind_in_place() {
  method(
      "copy_",
      [](nb::object self, const Operand& value) {
        return changed(self, [&](Tensor& x) {
          const Tensor& from = value.tensor;
          assign(x, from ? Operand(to_device(from, x.device())) : value);
        });
      },
      "value"_a,
      "Overwritten with another tensor's values, broadcast, converted and from any device.");
  method(
      "fill_",
      [](nb::object self, const Scalar& value) {
        return changed(self, [&](Tensor& x) { assign(x, value); });
      },
      "value"_a, "Every element set to one number.");
  method(
      "zero_", [](nb::object self) { return changed(self, [&](Tensor& x) { assign(x, 0); }); },
      "Every element set to 0.");
  method(
      "addmm_",
      [](nb::object self, const Tensor& a, const Tensor& b, double beta, double alpha) {
        return changed(self, [&](Tensor& x) { addmm_in_place(x, a, b, beta, alpha); });
      },
      "mat1"_a, "mat2"_a, nb::kw_only(), "beta"_a = 1.0, "alpha"_a = 1.0,
      "beta * self + alpha * (mat1 @ mat2), written in place.");
}

// What a record of random numbers gives, in the tensor's shape and type: `attributes` ends with
// size, dtype and generator.
nb::object drawn(nb::object self, const OpRecord& op, std::initializer_list<double> numbers,
                 Generator* generator) {
  return changed(self, [&](Tensor& x) {
    const int first = static_cast<int>(numbers.size());
    AttributeList attributes(first + 4);
    int i = 0;
    for (const double number : numbers) attributes.set(i++, attribute_of(number));
    attributes.set(first + 1, attribute_of(x.dtype())).set(first + 3, kNone);
    attributes.set(first + 2, generator ? reinterpret_cast<Attribute>(generator) : kNone);
    assign(x, apply(op, {}, attributes.set_list(first, x.shape())));
  });
}

// The whole numbers of a type: from 0 to the largest, or to the largest up to which it holds all.
std::int64_t past_numbers_of(DType dtype) {
  if (is_bool(dtype)) return 2;
  if (is_floating(dtype)) {
    const int digits = dtype == DType::float64    ? 53
                       : dtype == DType::float32  ? 24
                       : dtype == DType::bfloat16 ? 8
                                                  : 11;
    return (std::int64_t{1} << digits) + 1;
  }
  const int bits = 8 * static_cast<int>(size_of(dtype)) - is_signed_int(dtype);
  return bits > 62 ? std::numeric_limits<std::int64_t>::max() : std::int64_t{1} << bits;
}

void bind_random_in_place() {
  method(
      "uniform_",
      [](nb::object self, double low, double high, Generator* generator) {
        return drawn(self, kUniform, {low, high}, generator);
      },
      "low"_a = 0.0, "high"_a = 1.0, nb::kw_only(), "generator"_a.none() = nb::none(),
      "Overwritten with uniform numbers in [low, high).");
  method(
      "normal_",
      [](nb::object self, double mean, double std, Generator* generator) {
        return drawn(self, kNormal, {mean, std}, generator);
      },
      "mean"_a = 0.0, "std"_a = 1.0, nb::kw_only(), "generator"_a.none() = nb::none(),
      "Overwritten with normally distributed numbers.");
  method(
      "log_normal_",
      [](nb::object self, double mean, double std, Generator* generator) {
        return drawn(self, kLogNormal, {mean, std}, generator);
      },
      "mean"_a = 1.0, "std"_a = 2.0, nb::kw_only(), "generator"_a.none() = nb::none(),
      "Overwritten with numbers whose logarithms are normally distributed.");
  method(
      "exponential_",
      [](nb::object self, double lambd, Generator* generator) {
        return drawn(self, kExponential, {lambd}, generator);
      },
      "lambd"_a = 1.0, nb::kw_only(), "generator"_a.none() = nb::none(),
      "Overwritten with exponentially distributed numbers of mean 1 / lambd.");
  method(
      "cauchy_",
      [](nb::object self, double median, double sigma, Generator* generator) {
        return drawn(self, kCauchy, {median, sigma}, generator);
      },
      "median"_a = 0.0, "sigma"_a = 1.0, nb::kw_only(), "generator"_a.none() = nb::none(),
      "Overwritten with numbers of Cauchy's distribution.");
  method(
      "geometric_",
      [](nb::object self, double p, Generator* generator) {
        return drawn(self, kGeometric, {p}, generator);
      },
      "p"_a, nb::kw_only(), "generator"_a.none() = nb::none(),
      "Overwritten with numbers of trials until one succeeds with probability p.");
  method(
      "bernoulli_",
      [](nb::object self, const Operand& p, Generator* generator) {
        return changed(self, [&](Tensor& x) {
          check_chances(p, "bernoulli_");
          AttributeList made(6);
          made.set(0, attribute_of(0.0))
              .set(1, attribute_of(1.0))
              .set(3, attribute_of(DType::float32));
          made.set(4, generator ? reinterpret_cast<Attribute>(generator) : kNone).set(5, kNone);
          assign(x, less(apply(kUniform, {}, made.set_list(2, x.shape())), p));
        });
      },
      "p"_a = 0.5, nb::kw_only(), "generator"_a.none() = nb::none(),
      "Overwritten with 1 with probability p, else 0; p is a number or a tensor that broadcasts.");
  method(
      "random_",
      [](nb::object self, std::int64_t low, std::optional<std::int64_t> high,
         Generator* generator) {
        return changed(self, [&](Tensor& x) {
          const bool alone = !high && low != 0;  // one number is the end
          const std::int64_t past = high ? *high : alone ? low : past_numbers_of(x.dtype());
          AttributeList attributes(6);
          attributes.set(0, alone ? 0 : low).set(1, past).set(3, attribute_of(x.dtype()));
          attributes.set(4, generator ? reinterpret_cast<Attribute>(generator) : kNone)
              .set(5, kNone);
          assign(x, apply(kRandint, {}, attributes.set_list(2, x.shape())));
        });
      },
      "low"_a = 0, "high"_a = nb::none(), nb::kw_only(), "generator"_a.none() = nb::none(),
      "Overwritten with whole numbers in [low, high): one number alone is high, none are those of "
      "the type from 0 on.");
}

// Adds to the grads of `inputs` alone.
void backward_to(const Tensor& x, const Tensor& gradient, bool retain_graph, bool create_graph,
                 nb::object inputs, bool plan) {
  if (plan) fail(ErrorKind::value, "backward: a plan is for all leaves; leave out plan or inputs");
  nb::module_::import_("tilewright.autograd")
      .attr("backward")(nb::steal(wrap(x)), nb::steal(wrap(gradient)), retain_graph, create_graph,
                        inputs);
}

void bind_graph() {
  method(
      "detach", [](const Itself& x) { return x.detached(); },
      "The same memory outside the graph.\nShapes: any; the result has it.\nTypes: all. Result: "
      "the same type.\nSource: PyTorch's torch.Tensor.detach.");
  method(
      "requires_grad_",
      [](nb::object self, bool value) {
        if (!is_tensor(self.ptr())) fail(ErrorKind::type, "expected a Tensor");
        set_requires_grad({current_tensor(self.ptr())}, value);
        return self;
      },
      "requires_grad"_a = true, "Sets requires_grad and returns the tensor.");
  method(
      "retain_grad", [](const Itself& x) { retain_grad(x); },
      "Keeps the gradient of a result in its grad.");
  method(
      "backward",
      [](const Itself& x, std::optional<Tensor> gradient, bool retain_graph, bool create_graph,
         Annotated<"Tensor | collections.abc.Sequence[Tensor]"> inputs, bool plan) {
        if (!inputs.is_none())
          return backward_to(x, gradient.value_or(Tensor()), retain_graph, create_graph, inputs,
                             plan);
        backward({x}, gradient ? std::vector<Tensor>{*gradient} : std::vector<Tensor>{},
                 {retain_graph, create_graph, plan});
        if (create_graph) end_recorded_pass({x});
      },
      "gradient"_a = nb::none(), "retain_graph"_a = false, "create_graph"_a = false,
      "inputs"_a = nb::none(), "plan"_a = false,
      "Adds the gradient of this tensor to the grad of every leaf it was computed from, or of "
      "`inputs` alone; with plan its memory is one arena, laid out beforehand.");
  method("matmul", matmul, "other"_a, "Matrix product.");
  method("dot", matmul, "other"_a, "Matrix product.");
}

}  // namespace

void bind_tensor_methods(nb::module_&) {
  bind_properties();
  bind_conversions();
  bind_in_place();
  bind_random_in_place();
  bind_graph();
}

}  // namespace tw::binding
