// Tensor methods that other libraries have and that are one of our ops, or a property, by another
// name. Names that only differ (clone, unsqueeze) stand in spellings.inc.
#include <cmath>

#include "binding/tensor/attach.h"
#include "binding/tensor/casters.h"
#include "binding/calls/documentation.h"
#include "binding/calls/spellings.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"
#include "binding/tensor/text.h"
#include "core/base/error.h"
#include "core/ops/copy/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/shape/view.h"
#include "core/runtime/device.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

// A method that is a function of the module on `self`.
void forward(const char* name, const char* function, const char* help) {
  method(
      name,
      [function](nb::object self) {
        return nb::module_::import_("tilewright._core").attr(function)(self);
      },
      help);
}

void bind_casts() {
  for (const auto& [name, dtype] : casts()) {
    const std::string help = std::string("As ") + name_of(dtype) + "; itself where it is one.";
    method(name, [dtype = dtype](const Tensor& x) { return astype(x, dtype); }, help.c_str());
  }
  method(
      "type_as", [](const Tensor& x, const Itself& other) { return astype(x, other.dtype()); },
      "other"_a, "In the dtype of another tensor; itself where it has it.");
  method(
      "type", [](const Tensor& x, Annotated<"dtype | None"> dtype)->Annotated<"Tensor | dtype"> {
        if (dtype.is_none()) return nb::steal(wrap_dtype(x.dtype()));
        DType type;
        if (!require_dtype(dtype.ptr(), type))
          fail(ErrorKind::type, "type: dtype must be a dtype or its name, got ",
               shown(dtype.ptr()));
        return nb::steal(wrap(astype(x, type)));
      },
      "dtype"_a = nb::none(), "In another dtype; its own dtype without one.");
  method(
      "cpu", [](const Tensor& x, bool non_blocking) { return to_device(x, nullptr, non_blocking); },
      "non_blocking"_a = false,
      "In the CPU's memory; itself where it is there. With non_blocking=True in pinned memory, "
      "and\n"
      "before the copy is done: ops on it wait for it, NumPy's views of it do not.");
  method(
      "cuda",
      [](const Tensor& x, AnnotatedDevice device, bool non_blocking) {
        const Device* place = find_device("cuda");
        std::int64_t number;
        if (read_integer(device.ptr(), number))
          place = find_device("cuda:" + std::to_string(number));
        else
          read_device(device, place);
        return to_device(x, place, non_blocking);
      },
      "device"_a = nb::none(), "non_blocking"_a = false,
      "On a GPU, the first one unless device says another; itself where it is there.");
  method(
      "to_device",
      [](const Tensor& x, AnnotatedDevice device, nb::handle stream) {
        const Device* place = x.device();
        if (!read_device(device, place))
          fail(ErrorKind::type, "to_device: device must be a name such as 'cpu', got None");
        if (!stream.is_none()) fail(ErrorKind::value, "to_device: no device here has streams");
        return to_device(x, place);
      },
      "device"_a, nb::kw_only(), "stream"_a = nb::none(),
      "On another device; itself where it is there.");
  method(
      "to",
      [](const Tensor& x, Annotated<"Tensor | dtype"> target, std::optional<DType> dtype,
         AnnotatedDevice device, bool always_copy, bool non_blocking) {
        DType type = dtype.value_or(x.dtype());
        DType named;
        const Device* place = x.device();
        if (is_tensor(target.ptr())) {
          type = dtype.value_or(raw_tensor(target.ptr()).dtype());
          place = raw_tensor(target.ptr()).device();
        } else if (!target.is_none() && read_dtype(target.ptr(), named)) {
          type = named;
        } else {
          if (!target.is_none() && !PyUnicode_Check(target.ptr()))
            fail(ErrorKind::type,
                 "to: target must be a dtype, the name of a device or a tensor, got ",
                 shown(target.ptr()));
          read_device(target, place);
        }
        read_device(device, place);
        const bool moves = place != x.device();
        return to_device(astype(x, type, always_copy && !moves), place, non_blocking);
      },
      "target"_a = nb::none(), "dtype"_a = nb::none(), "device"_a = nb::none(), "copy"_a = false,
      "non_blocking"_a = false,
      "In another dtype, on another device, or both as another tensor has them; itself where "
      "nothing\n"
      "changes. With non_blocking=True copies between a GPU and pinned memory go on when it "
      "returns; "
      "ops\n"
      "wait for them where they use the memory.");
  forward("pin_memory", "_pin_memory",
          "A copy in pinned memory of the host, from and to which GPUs "
          "copy beside other work; itself where it is there. Raises RuntimeError without a GPU.");
  forward("is_pinned", "_is_pinned", "Whether its memory is pinned.");
  method(
      "record_stream",
      [](nb::object self, nb::object stream) {
        if (!nb::hasattr(stream, "_stream"))
          fail(ErrorKind::type, "record_stream: stream must be a tw.cuda.Stream, got ",
               Py_TYPE(stream.ptr())->tp_name);
        nb::module_::import_("tilewright._core")
            .attr("_gpu_record_stream")(self, stream.attr("_stream"));
      },
      "stream"_a,
      "Says that another library uses its memory on a tw.cuda.Stream: it serves again after that. "
      "Ops\nsay so themselves.");
}

// x + alpha * other, and the same with a minus.
Operand scaled(const Operand& other, const Scalar& alpha) {
  if (alpha.kind != Scalar::Kind::complex && alpha.re == 1) return other;
  if (other.is_tensor()) return multiply(other, alpha);
  const Scalar &a = alpha, &b = other.scalar;
  if (a.kind <= Scalar::Kind::integer && b.kind <= Scalar::Kind::integer) return Scalar(a.i * b.i);
  if (a.kind != Scalar::Kind::complex && b.kind != Scalar::Kind::complex)
    return Scalar(a.re * b.re);
  return Scalar(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}

void bind_arithmetic() {
  constexpr std::pair<const char*, PointwiseOp> kOps[] = {{"add", PointwiseOp::add},
                                                          {"subtract", PointwiseOp::subtract}};
  for (const auto& [name, op] : kOps) {
    const std::string help = std::string("The operator's result") + ", of alpha times the other.";
    method(
        name,
        [op = op](const Operand& x, const Operand& other, const Scalar& alpha) {
          const Operand operands[] = {x, scaled(other, alpha)};
          return pointwise(op, operands);
        },
        "other"_a, nb::kw_only(), "alpha"_a = 1, help.c_str());
    method((std::string(name) + "_").c_str(),
           [op = op](nb::object self, const Operand& other, const Scalar& alpha) {
             if (!is_tensor(self.ptr())) fail(ErrorKind::type, "expected a Tensor");
             Operand operands[] = {raw_tensor(self.ptr()), scaled(other, alpha)};
             pointwise_in_place(op, operands);
             return self;
           },
           "other"_a, nb::kw_only(), "alpha"_a = 1,
           (help + " Written in place." + errors_in_place(true)).c_str());
  }
}

enum class Rounding { none, floor, trunc };
Rounding rounding_of(const std::optional<std::string>& mode) {
  if (!mode) return Rounding::none;
  if (*mode == "floor") return Rounding::floor;
  if (*mode == "trunc") return Rounding::trunc;
  fail(ErrorKind::value, "divide: rounding_mode must be None, 'floor' or 'trunc', got '", *mode,
       "'");
}

bool is_floating_number(const Operand& x) {
  return x.is_tensor() ? is_floating(x.tensor.dtype()) : x.scalar.kind == Scalar::Kind::floating;
}
bool is_complex_number(const Operand& x) {
  return x.is_tensor() ? is_complex(x.tensor.dtype()) : x.scalar.kind == Scalar::Kind::complex;
}

// Whose quotients are of 16 bits: they are rounded to their type first, as in PyTorch.
bool have_16_bits(const Operand& x, const Operand& y) {
  const bool both = x.is_tensor() && y.is_tensor();
  const DType type =
      both ? promote(x.tensor.dtype(), y.tensor.dtype()) : (x.is_tensor() ? x : y).tensor.dtype();
  return is_floating(type) && size_of(type) == 2;
}

Tensor divided(const Operand& x, const Operand& y, Rounding rounding) {
  if (rounding == Rounding::none) return divide(x, y);
  if (rounding == Rounding::floor) return floor_divide(x, y);
  const bool is_real = !is_complex_number(x) && !is_complex_number(y);
  if (is_real && (is_floating_number(x) || is_floating_number(y)))
    return have_16_bits(x, y) ? trunc(divide(x, y)) : truncated_quotient(x, y);
  const Tensor rest = fmod(x, y);
  return floor_divide(x - rest, y);
}

void bind_division() {
  const std::string help =
      "The operator's result; with rounding_mode 'floor' or 'trunc' the whole number below it or "
      "towards zero, which of whole numbers is one of their type.";
  method(
      "divide",
      [](const Operand& x, const Operand& other, std::optional<std::string> rounding_mode) {
        return divided(x, other, rounding_of(rounding_mode));
      },
      "other"_a, nb::kw_only(), "rounding_mode"_a = nb::none(), help.c_str());
  method(
      "divide_",
      [](nb::object self, const Operand& other, std::optional<std::string> rounding_mode) {
        if (!is_tensor(self.ptr())) fail(ErrorKind::type, "expected a Tensor");
        const Rounding rounding = rounding_of(rounding_mode);
        Operand operands[] = {raw_tensor(self.ptr()), other};
        if (rounding == Rounding::trunc)
          return self.attr("copy_")(divided(operands[0], other, rounding));
        pointwise_in_place(
            rounding == Rounding::floor ? PointwiseOp::floor_divide : PointwiseOp::divide,
            operands);
        return self;
      },
      "other"_a, nb::kw_only(), "rounding_mode"_a = nb::none(),
      (help + " Written in place." + errors_in_place(true)).c_str());
}

// An extent of -1 keeps the axis, as in PyTorch.
Tensor expand(const Tensor& x, Shape shape) {
  const int lead = shape.rank() - x.rank();
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] == -1 && i >= lead) shape[i] = x.size(i - lead);
  return broadcast_to(x, shape);
}

void bind_shapes() {
  method(
      "where",
      [](const Tensor& x, const Operand& condition, const Operand& other) {
        const Operand operands[] = {condition, x, other};
        return pointwise(PointwiseOp::where, operands);
      },
      "condition"_a, "other"_a, "Itself where the condition holds, else the other.");
  method(
      "view",
      [](const Tensor& x, Annotated<"int | Sequence[int] | dtype"> shape) {
        Shape extents;
        if (read_shape(shape.ptr(), extents)) return reshape(x, extents, false);
        DType dtype;
        if (!read_dtype(shape.ptr(), dtype))
          fail(ErrorKind::type, "view: shape must be an int, a sequence of ints or a dtype, got ",
               shown(shape.ptr()));
        return view_dtype(x, dtype);
      },
      "shape"_a,
      "The same memory in another shape; ValueError where that takes a copy. Of a dtype: the same "
      "bits as\n"
      "elements of it, outside the graph; of another size where the last axis has no gaps, which "
      "then has\n"
      "another extent. Raises TypeError for bool, whose bytes are 0 and 1 alone.\n"
      "Source: PyTorch's torch.Tensor.view.");
  method(
      "unfold", windows_along, "dimension"_a, "size"_a, "step"_a,
      "Windows of size elements along a dimension, each step behind the one before, as a view.\n"
      "Shapes: x of any shape; the result has the number of windows in the dimension's place and "
      "a last axis of size elements.\n"
      "Types: all. Result: the same type.\n"
      "Raises ValueError for windows longer than the dimension and for a step below 1, "
      "IndexError for a dimension out of range.\n"
      "Source: PyTorch's torch.Tensor.unfold.");
  method(
      "view_as",
      [](const Tensor& x, const Itself& other) { return reshape(x, other.shape(), false); },
      "other"_a, "The same memory in the shape of another tensor.");
  method(
      "reshape_as", [](const Tensor& x, const Itself& other) { return reshape(x, other.shape()); },
      "other"_a, "The same elements in the shape of another tensor.");
  method("expand", expand, "shape"_a,
         "Axes of extent 1 repeated, as a view; -1 keeps an axis as it is.");
  method(
      "expand_as",
      [](const Tensor& x, const Itself& other) { return broadcast_to(x, other.shape()); },
      "other"_a, "Axes of extent 1 repeated to the shape of another tensor, as a view.");
  method(
      "t",
      [](const Tensor& x) {
        if (x.rank() > 2) fail(ErrorKind::value, "t: needs at most 2 dimensions, got ", x.shape());
        return x.rank() < 2 ? x : swap_axes(x, 0, 1);
      },
      "The transpose of a matrix, as a view; itself below 2 dimensions.\nShapes: x (m, n) gives "
      "(n, m).\nTypes: all. Result: the same type.\nRaises ValueError above 2 dimensions.\nSource: "
      "PyTorch's torch.t.");
}

void bind_facts() {
  for (const char* name : {"numel", "nelement"})
    method(name, [](const Itself& x) { return x.count(); }, "Number of elements, as `size`.");
  for (const char* name : {"dim", "ndimension"})
    method(name, [](const Itself& x) { return x.rank(); }, "Number of dimensions, as `ndim`.");
  method("element_size", [](const Itself& x) { return x.item_bytes(); }, "Bytes an element.");
  method(
      "is_floating_point", [](const Itself& x) { return is_floating(x.dtype()); },
      "Whether its dtype is a floating one.");
  method(
      "is_complex", [](const Itself& x) { return is_complex(x.dtype()); },
      "Whether its dtype is a complex one.");
  method(
      "is_signed",
      [](const Itself& x) {
        return !is_bool(x.dtype()) && (!is_integer(x.dtype()) || is_signed_int(x.dtype()));
      },
      "Whether its dtype has negative numbers.");
  method(
      "storage_offset",
      [](const Itself& x) { return x->offset_bytes / static_cast<std::int64_t>(x.item_bytes()); },
      "Where its first element lies in the memory that its views share, in elements.");
  method(
      "get_device",
      [](const Itself& x) -> std::int64_t {
        if (!x.device()) return -1;
        const std::string_view name = x.device()->name;
        const std::size_t colon = name.find(':');
        return colon == name.npos ? 0 : std::stoll(std::string(name.substr(colon + 1)));
      },
      "The number of its GPU; -1 on the CPU.");
  property("is_cpu", [](const Itself& x) { return !x.device(); }, "Whether it is on the CPU.");
  property(
      "is_cuda",
      [](const Itself& x) { return x.device() && x.device()->kernels == KernelSet::cuda; },
      "Whether it is on a GPU.");
  property(
      "retains_grad",
      [](const Itself& x) { return !x.is_leaf() && place_of(*x.get()).retainer == x.get(); },
      "Whether it is a result that keeps its gradient: retain_grad was called.");
  method(
      "stride", [](const Itself& x) { return x.strides(); },
      "Steps between elements, in elements, as `strides`.");
}

// To so many digits behind the point, or before it where they are negative.
Tensor rounded(const Tensor& x, std::int64_t digits) {
  if (digits == 0 || (is_integer(x.dtype()) && digits > 0)) return round(x);
  const double scale = std::pow(10.0, std::abs(static_cast<double>(digits)));
  if (is_integer(x.dtype()))
    fail(ErrorKind::value, "round: ", digits, " digits of ", name_of(x.dtype()),
         "; convert with astype to a floating type first");
  return digits > 0 ? round(x * scale) / scale : round(x / scale) * scale;
}

// format(x, ".2f"), round(x, 2): what Python's own functions ask for.
void bind_python() {
  method(
      "__format__",
      [](nb::handle self, nb::str specification) {
        if (nb::len(specification) == 0) return nb::str(self);
        const Tensor x = raw_tensor(self.ptr());
        if (x.rank() > 0)
          fail(ErrorKind::type, "format: '", specification.c_str(), "' formats a number, got ",
               describe(x), "; format its item() or tolist()");
        return nb::steal<nb::str>(
            PyObject_Format(nb::steal(item_of(x)).ptr(), specification.ptr()));
      },
      "specification"_a);
  method(
      "__round__",
      [](const Tensor& x, std::optional<std::int64_t> digits) {
        return rounded(x, digits.value_or(0));
      },
      "ndigits"_a = nb::none());
  method(
      "round", [](const Tensor& x, std::int64_t digits) { return rounded(x, digits); },
      nb::kw_only(), "decimals"_a = 0,
      "Nearest whole number, halves to even; or to so many decimals, of tens for negative ones.");
  method(
      "round_",
      [](nb::object self, std::int64_t digits) {
        const Tensor x = raw_tensor(self.ptr());
        if (digits) return self.attr("copy_")(rounded(x, digits));
        Operand operand = x;
        pointwise_in_place(PointwiseOp::round, &operand);
        return self;
      },
      nb::kw_only(), "decimals"_a = 0,
      (std::string("`round`, written in place.") + errors_in_place(true)).c_str());
  method(
      "nonzero",
      [](nb::object x, bool as_tuple) -> nb::object {
        if (as_tuple) return nb::module_::import_("tilewright._core").attr("nonzero")(x);
        return nb::module_::import_("tilewright._arrays.positions").attr("argwhere")(x);
      },
      nb::kw_only(), "as_tuple"_a = true,
      "The indices of the elements that are not 0, a tensor for each axis; with as_tuple=False as "
      "the rows of one.");
}

}  // namespace

void bind_tensor_spellings(nb::module_&) {
  bind_casts();
  bind_arithmetic();
  bind_division();
  bind_shapes();
  bind_facts();
  bind_python();
}

}  // namespace tw::binding
