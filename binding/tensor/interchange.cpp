// Exchange of memory with the rest of Python.
#include "binding/tensor/interchange.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "binding/tensor/casters.h"
#include "binding/tensor/gpu_interchange.h"
#include "binding/tensor/nested_lists.h"
#include "binding/tensor/text.h"
#include "core/autograd/capture.h"
#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/base/float_environment.h"
#include "core/cpu/copy/convert.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/copy/read.h"
#include "core/runtime/device.h"
#include "core/tensor/access.h"

namespace tw::binding {

namespace {

// The type behind a buffer's format letter, by kind and size, so that 'l' means int64 or int32 as
// the platform has it.
DType dtype_of_format(const char* format, Py_ssize_t item_bytes, const char* op) {
  std::string_view text = format ? format : "B";
  if (!text.empty() && (text[0] == '<' || text[0] == '=' || text[0] == '@' || text[0] == '|'))
    text.remove_prefix(1);
  if (text == "Zf" || text == "F") return DType::complex64;
  if (text == "Zd" || text == "D") return DType::complex128;
  if (text.size() == 1) {
    const char c = text[0];
    for (int i = 0; i < kDTypes; ++i) {
      const DType type = static_cast<DType>(i);
      if (size_of(type) != static_cast<std::size_t>(item_bytes)) continue;
      if (c == '?' && is_bool(type)) return type;
      if (std::strchr("bhilqn", c) && is_signed_int(type)) return type;
      if (std::strchr("BHILQNc", c) && is_unsigned_int(type)) return type;
      if (std::strchr("efd", c) && is_floating(type) && type != DType::bfloat16) return type;
    }
  }
  fail(ErrorKind::type, op, ": no dtype for buffer format '", format ? format : "",
       "' (byte order must be native); convert the array first");
}

void release_view(void* owner) {
  if (!Py_IsInitialized()) return;
  nb::gil_scoped_acquire lock;
  auto* view = static_cast<Py_buffer*>(owner);
  PyBuffer_Release(view);
  delete view;
}

struct BufferView {
  std::unique_ptr<Py_buffer> view = std::make_unique<Py_buffer>();
  bool held = false;
  explicit BufferView(PyObject* object) {
    if (PyObject_GetBuffer(object, view.get(), PyBUF_FULL_RO) < 0) throw nb::python_error();
    held = true;
  }
  BufferView(BufferView&& other) noexcept
      : view(std::move(other.view)), held(std::exchange(other.held, false)) {}
  ~BufferView() {
    if (held) PyBuffer_Release(view.get());
  }
  Ref<Storage> into_storage() {
    held = false;
    Py_buffer* raw = view.release();
    return Storage::borrow(raw->buf, static_cast<std::size_t>(raw->len), !raw->readonly, raw,
                           release_view);
  }
};

[[noreturn]] void refuse_dtype(PyObject* object, const char* op) {
  fail(ErrorKind::type, op, ": no dtype for ",
       nb::str(nb::object(nb::handle(object).attr("dtype"))).c_str(), " of ",
       Py_TYPE(object)->tp_name, "; convert it first");
}

// NumPy's letter of what an array or scalar holds; empty for what has none.
std::string kind_letter(PyObject* object) {
  const nb::object dtype = nb::getattr(nb::handle(object), "dtype", nb::none());
  const nb::object kind = nb::getattr(dtype, "kind", nb::none());
  return std::string(nb::isinstance<nb::str>(kind) ? utf8_of(kind.ptr()) : "");
}

// NumPy has no buffers of arrays of dates, and shows scalars of them as bytes.
BufferView typed_buffer(PyObject* object, const char* op) {
  try {
    BufferView buffer(object);
    const char* const format = buffer.view->format;
    const std::string letter = !format || !std::strcmp(format, "B") ? kind_letter(object) : "";
    if (!letter.empty() && letter != "u") refuse_dtype(object, op);
    return buffer;
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ValueError) || kind_letter(object).empty()) throw;
  }
  refuse_dtype(object, op);
}

Tensor tensor_over_buffer(PyObject* object, const char* op, bool copy_allowed) {
  BufferView buffer = typed_buffer(object, op);
  const Py_buffer& view = *buffer.view;
  const DType dtype = dtype_of_format(view.format, view.itemsize, op);
  Shape shape;
  Strides strides;
  bool whole = true;
  for (int i = 0; i < view.ndim; ++i) {
    shape.push_back(view.shape[i]);
    const Py_ssize_t step = view.strides ? view.strides[i] : 0;
    whole &= step % view.itemsize == 0;
    strides.push_back(step / view.itemsize);
  }
  if (!view.strides) strides = contiguous_strides(shape);
  if (view.suboffsets || !whole)
    fail(ErrorKind::buffer, op, ": the array's strides are not whole elements; copy it first");
  check_claims({view.buf, 0, shape, strides, dtype}, object, op);
  return adopted(sharing(Tensor::over(buffer.into_storage(), 0, shape, strides, dtype)),
                 copy_allowed);
}

// ---- elements as Python objects ----

PyObject* python_number(DType dtype, const void* item) {
  switch (dtype) {
    case DType::bool_: return PyBool_FromLong(*static_cast<const bool*>(item));
    case DType::uint64:
      return PyLong_FromUnsignedLongLong(*static_cast<const std::uint64_t*>(item));
    case DType::complex64: {
      const auto& z = *static_cast<const Complex64*>(item);
      return PyComplex_FromDoubles(z.re, z.im);
    }
    case DType::complex128: {
      const auto& z = *static_cast<const Complex128*>(item);
      return PyComplex_FromDoubles(z.re, z.im);
    }
    default: break;
  }
  if (is_integer(dtype)) {
    std::int64_t value;
    convert_elements(dtype, DType::int64, 1, item, 0, &value, 0);
    return PyLong_FromLongLong(value);
  }
  double value;
  convert_elements(dtype, DType::float64, 1, item, 0, &value, 0);
  return PyFloat_FromDouble(value);
}

PyObject* list_from(const Tensor& x, int axis, const char* at) {
  if (axis == x.rank()) return python_number(x.dtype(), at);
  PyObject* list = PyList_New(x.size(axis));
  if (!list) throw nb::python_error();
  const std::int64_t step = x.strides()[axis] * static_cast<std::int64_t>(x.item_bytes());
  for (std::int64_t i = 0; i < x.size(axis); ++i)
    PyList_SET_ITEM(list, i, list_from(x, axis + 1, at + i * step));
  return list;
}

}  // namespace

namespace {

// The bytes that elements reach, from the first one on. False where they do not fit 64 bits.
bool find_reach(const ForeignView& view, std::int64_t& low, std::int64_t& high) {
  low = 0;
  high = static_cast<std::int64_t>(size_of(view.dtype));
  std::int64_t count = high;
  for (int i = 0; i < view.shape.rank(); ++i) {
    std::int64_t reach;
    std::int64_t& end = view.strides[i] < 0 ? low : high;
    if (__builtin_mul_overflow(count, view.shape[i], &count) ||
        __builtin_mul_overflow(view.shape[i] - 1, view.strides[i], &reach) ||
        __builtin_mul_overflow(reach, static_cast<std::int64_t>(size_of(view.dtype)), &reach) ||
        __builtin_add_overflow(end, reach, &end))
      return false;
  }
  return true;
}

}  // namespace

void check_claims(const ForeignView& view, PyObject* producer, const char* op) {
  constexpr auto kPastMemory = static_cast<std::int64_t>(std::uint64_t{1} << 57);  // of addresses
  const char* const who = Py_TYPE(producer)->tp_name;
  bool empty = false, uncountable = false;
  std::int64_t count = 1;
  for (const std::int64_t extent : view.shape) {
    if (extent < 0)
      fail(ErrorKind::buffer, op, ": ", who, " says shape ", view.shape,
           ", which has a negative extent");
    empty |= extent == 0;
    uncountable |= __builtin_mul_overflow(count, extent == 0 ? 1 : extent, &count);
  }
  if (uncountable)
    fail(ErrorKind::buffer, op, ": ", who, " says shape ", view.shape,
         ", which has more elements than 64 bits can count");
  if (empty) return;
  if (!view.data)
    fail(ErrorKind::buffer, op, ": ", who, " says shape ", view.shape, ", but has no memory");
  std::int64_t low, high, first;
  if (__builtin_add_overflow(reinterpret_cast<std::uintptr_t>(view.data), view.offset_bytes,
                             &first) ||
      !find_reach(view, low, high) || first > kPastMemory || first + low < 0 ||
      high > kPastMemory - first)
    fail(ErrorKind::buffer, op, ": ", who, " says shape ", view.shape, ", strides ", view.strides,
         " and offset ", view.offset_bytes, ", which lead out of memory");
}

Tensor adopted(const Tensor& x, bool copy_allowed) {
  if (!is_bool(x.dtype())) return x;
  const Tensor y = with_truth_values(x);
  if (!y.is(x) && !copy_allowed)
    fail(ErrorKind::value,
         "bool bytes other than 0 and 1 need a copy, but copy=False was given; use x != 0 first");
  return y;
}

Tensor sharing(const Tensor& x) {
  const ByteRange range = byte_range(x);
  const char* data = static_cast<const char*>(x->storage->data);
  x->storage->share(data + range.low, data + range.high);
  return x;
}

void refuse_graph(const Tensor& x, const char* what) {
  if (x.requires_grad())
    fail(ErrorKind::runtime, what, ": the tensor requires grad; use detach() first");
}

namespace {

// Python's own lists and numbers share no memory: to ask for attributes that they lack takes ten
// times as long as to make a tensor of a few elements.
bool is_plain(PyObject* object) {
  return PyList_CheckExact(object) || PyTuple_CheckExact(object) || PyLong_CheckExact(object) ||
         PyFloat_CheckExact(object) || PyBool_Check(object) || PyComplex_CheckExact(object);
}

}  // namespace

bool is_array(PyObject* object) {
  if (is_plain(object)) return false;
  if (PyObject_CheckBuffer(object)) return !PyBytes_Check(object) && !PyByteArray_Check(object);
  return PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__dlpack__") ||
         (!PyList_Check(object) && !PyTuple_Check(object) && has_cuda_array_interface(object));
}

static nb::object array_of(PyObject* object) {
  nb::object array = nb::handle(object).attr("__array__")();
  if (!PyObject_CheckBuffer(array.ptr()))
    fail(ErrorKind::type, Py_TYPE(object)->tp_name, ".__array__() must give an array, got ",
         shown(array.ptr()));
  return array;
}

Tensor tensor_of_array(PyObject* object, const char* op, bool copy_allowed) {
  if (is_plain(object) || PyBytes_Check(object) || PyByteArray_Check(object)) return Tensor();
  if (PyObject_CheckBuffer(object)) return tensor_over_buffer(object, op, copy_allowed);
  if (PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__dlpack__"))
    return from_dlpack(object, nb::none(), copy_allowed ? std::nullopt : std::optional(false));
  if (has_cuda_array_interface(object)) return tensor_over_cuda_array(object);
  if (PyObject_HasAttrString(object, "__array__"))
    return tensor_over_buffer(array_of(object).ptr(), op, copy_allowed);
  return Tensor();
}

Tensor as_tensor(PyObject* object, const char* op, bool copy_allowed) {
  if (is_tensor(object)) return unwrap(object);
  const Tensor x = tensor_of_array(object, op, copy_allowed);
  return x ? x : tensor_of_list(object, op);
}

Tensor from_buffer(nb::handle source, DType dtype, std::optional<Shape> shape,
                   std::int64_t offset) {
  if (!PyObject_CheckBuffer(source.ptr()))
    fail(ErrorKind::type,
         "frombuffer: buffer must be an object with the buffer protocol, as bytes has, got ",
         shown(source.ptr()));
  BufferView buffer(source.ptr());
  if (!PyBuffer_IsContiguous(buffer.view.get(), 'C'))
    fail(ErrorKind::value, "frombuffer: the buffer is not contiguous");
  if (offset < 0 || offset > buffer.view->len)
    fail(ErrorKind::value, "frombuffer: offset ", offset, " is outside a buffer of ",
         buffer.view->len, " bytes");
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const std::int64_t available = buffer.view->len - offset;
  const auto item = static_cast<std::int64_t>(size_of(dtype));
  if (!shape) {
    if (available % item)
      fail(ErrorKind::value, "frombuffer: ", available, " bytes are not a multiple of ", item,
           " bytes an element");
    shape = Shape{available / item};
  }
  for (std::int64_t extent : *shape)
    if (extent < 0) fail(ErrorKind::value, "frombuffer: shape ", *shape, " has a negative extent");
  if (element_count(*shape) > available / item)
    fail(ErrorKind::value, "frombuffer: shape ", *shape, " needs ",
         element_count(*shape) > kMost / item ? "more than 2**63"
                                              : std::to_string(element_count(*shape) * item),
         " bytes, the buffer has ", available);
  return adopted(sharing(Tensor::over(buffer.into_storage(), offset, *shape,
                                      contiguous_strides(*shape), dtype)),
                 true);
}

void check_on_cpu(const Tensor& x, const char* what) {
  if (x->elsewhere)
    fail(ErrorKind::buffer, what, ": the tensor is on device '", x.device()->name,
         "'; copy it to the CPU first: to('cpu')");
}

PyObject* item_of(const Tensor& x) {
  if (x.count() != 1)
    fail(ErrorKind::value, "item: a tensor of shape ", x.shape(), " is not a single number");
  const FloatEnvironment environment;
  const HostValues value(x, "item() reads a value");
  PyObject* number = python_number(x.dtype(), value.as<char>());
  if (!number) throw nb::python_error();
  return number;
}

PyObject* list_of(const Tensor& x) {
  const FloatEnvironment environment;
  const HostValues values(x, "tolist() reads values");
  return list_from(values.tensor(), 0, values.as<char>());
}

namespace {

[[noreturn]] void refuse_copy() {
  fail(ErrorKind::value, "asarray: a copy is needed here, but copy=False was given");
}

Tensor asarray_on_cpu(nb::object source, std::optional<DType> dtype, std::optional<bool> copy_arg) {
  const DeviceGuard on_cpu(nullptr);
  const Tensor x = is_tensor(source.ptr())
                       ? unwrap(source.ptr())
                       : tensor_of_array(source.ptr(), "asarray", copy_arg != false);
  const bool converts = dtype && (!x || *dtype != x.dtype());
  if (!x) {
    // Numbers go straight to the type asked for: a float64 keeps its digits.
    const Tensor y = tensor_of_list(source.ptr(), "asarray", dtype);
    if (copy_arg == false) refuse_copy();
    return y;
  }
  if (converts && copy_arg == false) refuse_copy();
  if (converts) return astype(x, *dtype);
  return copy_arg == true ? copy(x) : x;
}

Tensor asarray(nb::object source, std::optional<DType> dtype, AnnotatedDevice device,
               std::optional<bool> copy_arg) {
  const FloatEnvironment environment;
  const Device* to = is_tensor(source.ptr()) ? raw_tensor(source.ptr()).device() : modes.device;
  const bool moves = read_device(device, to);
  const Tensor x = asarray_on_cpu(source, dtype, copy_arg);
  if (!moves && x->elsewhere) return x;  // where another library has it
  if (copy_arg == false && x.device() != to)
    fail(ErrorKind::value, "asarray: another device needs a copy, but copy=False was given");
  return to_device(x, to);
}

}  // namespace

void bind_interchange(nb::module_& m) {
  using namespace nb::literals;
  m.def(
      "asarray", asarray, "obj"_a.none(), "dtype"_a = nb::none(), "device"_a = nb::none(),
      "copy"_a = nb::none(),
      "A tensor from nested lists, numbers, or anything with the buffer protocol or DLPack, whose\n"
      "memory is shared where no conversion is needed and copy is not True; bool bytes other than "
      "0\n"
      "and 1 need one.\nShapes: an axis for each level of lists, and those of the arrays in "
      "them.\nTypes: all. Result: dtype, by default that of the data: bool, int64, the default "
      "floating type or complex64 of Python's numbers, their own of tensors, arrays and NumPy's "
      "numbers, promoted where lists hold several.\nRaises TypeError for what is no data, "
      "ValueError for lists of different depths or "
      "lengths, for copy=False where one is needed and for a device that is not there, "
      "OverflowError for numbers that the type does not hold.\nSource: Array API standard "
      "2024.12.");
  m.def(
      "tensor",
      [](nb::object obj, std::optional<DType> dtype, AnnotatedDevice device, bool requires_grad) {
        const Tensor x = asarray(obj, dtype, device, true);
        // A tensor asked for is a leaf of its own, whatever it was made from.
        const Tensor y = x.requires_grad() ? x.detached() : x;
        if (requires_grad && !is_differentiable(y.dtype()))
          fail(ErrorKind::type, "only floating-point and complex tensors can require grad, got ",
               name_of(y.dtype()));
        if (requires_grad) set_requires_grad(y, true);
        return y;
      },
      "obj"_a.none(), "dtype"_a = nb::none(), "device"_a = nb::none(), "requires_grad"_a = false,
      "A tensor with its own copy of the data, as asarray(obj, copy=True), outside any "
      "graph.\nShapes: an axis for each level of lists, and those of the arrays in them.\nTypes: "
      "all. Result: dtype, by default as "
      "asarray.\nRaises TypeError for what is no data and for requires_grad of a type that has no "
      "gradients, ValueError for lists of different depths or lengths, OverflowError for numbers "
      "that the type does not hold.\nSource: PyTorch's torch.tensor.");
  m.def(
      "frombuffer",
      [](Annotated<"collections.abc.Buffer"> buffer, DType dtype, const std::optional<Shape>& shape,
         std::int64_t offset) { return from_buffer(buffer, dtype, shape, offset); },
      "buffer"_a, "dtype"_a, "shape"_a = nb::none(), "offset"_a = 0,
      "A tensor over the bytes of a buffer; offset in bytes. Without a copy, except that bool "
      "bytes\n"
      "other than 0 and 1 are copied, as 1.\nShapes: the result has the shape given, by default "
      "(elements,).\nTypes: all. Result: dtype.\nRaises ValueError for a shape or offset that the "
      "bytes do not fit.\nSource: PyTorch's torch.frombuffer.");
  m.def(
      "_is_read_only", [](const Itself& x) { return !x->storage->writable; }, "x"_a,
      "Whether a tensor's memory may not be written to.");
  m.def(
      "_as_bytes",
      [](const Itself& x) {
        if (!x.contiguous()) fail(ErrorKind::value, "_as_bytes: the tensor is not contiguous");
        const std::int64_t bytes = x.count() * static_cast<std::int64_t>(x.item_bytes());
        return Tensor::over(x->storage, x->offset_bytes, {bytes}, {1}, DType::uint8);
      },
      "x"_a, "The memory of a row-major tensor of any dtype as uint8.");
}

}  // namespace tw::binding
