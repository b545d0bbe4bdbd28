// DLPack both ways: capsules over tensors, and tensors over capsules.
#include "binding/tensor/dlpack.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

#include "binding/tensor/casters.h"
#include "binding/tensor/gpu_interchange.h"
#include "binding/tensor/interchange.h"
#include "binding/tensor/text.h"
#include "core/autograd/capture.h"
#include "core/base/error.h"
#include "core/ops/copy/copy.h"
#include "core/runtime/device.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

dlpack::DataType dlpack_type(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * size_of(dtype));
  if (is_bool(dtype)) return {dlpack::code_bool, bits, 1};
  if (is_signed_int(dtype)) return {dlpack::code_int, bits, 1};
  if (is_unsigned_int(dtype)) return {dlpack::code_uint, bits, 1};
  if (is_complex(dtype)) return {dlpack::code_complex, bits, 1};
  return {dtype == DType::bfloat16 ? dlpack::code_bfloat : dlpack::code_float, bits, 1};
}

DType dtype_of_dlpack(dlpack::DataType type) {
  for (int i = 0; i < kDTypes; ++i) {
    const dlpack::DataType ours = dlpack_type(static_cast<DType>(i));
    if (ours.code == type.code && ours.bits == type.bits && type.lanes == 1)
      return static_cast<DType>(i);
  }
  fail(ErrorKind::buffer, "from_dlpack: no dtype for DLPack type code ", int(type.code), " with ",
       int(type.bits), " bits and ", type.lanes, " lanes");
}

// What an exported tensor keeps alive.
template <class M> struct Export {
  M managed;
  Tensor tensor;
  Lent lent;
  Shape shape;
  Strides strides;
  ForeignUse use;
};

// Some consumers end the process where a stride is negative.
bool steps_backwards(const Tensor& x) {
  for (int i = 0; i < x.rank(); ++i)
    if (x.strides()[i] < 0 && x.shape()[i] > 1 && x.count() > 0) return true;
  return false;
}
// Of a tensor that does not: the stride of an axis of one element may be negative, which means
// nothing.
Strides forward_strides(const Tensor& x) {
  Strides strides = x.strides();
  for (int i = 0; i < x.rank(); ++i) strides[i] = std::abs(strides[i]);
  return strides;
}

template <class M>
PyObject* export_capsule(const Tensor& x, bool copied, const char* name, nb::handle stream) {
  refuse_in_capture("another library gets at the memory");
  const auto [kind, number] = dlpack_place(x);
  auto* out =
      new Export<M>{{}, x, Lent(x->storage), x.shape(), forward_strides(x), ForeignUse(x, stream)};
  out->managed.tensor = {x.pinned_bytes(),
                         {kind, number},
                         x.rank(),
                         dlpack_type(x.dtype()),
                         const_cast<std::int64_t*>(out->shape.begin()),
                         const_cast<std::int64_t*>(out->strides.begin()),
                         0};
  out->managed.manager = out;
  out->managed.deleter = [](M* managed) {
    if (!Py_IsInitialized()) return;  // the process ends, and with it the memory
    nb::gil_scoped_acquire lock;      // the consumer may be on any thread
    delete static_cast<Export<M>*>(managed->manager);
  };
  if constexpr (std::is_same_v<M, dlpack::ManagedVersioned>) {
    out->managed.version = {1, 0};
    out->managed.flags = (x->storage->writable && !shares_elements(x) ? 0 : dlpack::kReadOnly) |
                         (copied ? dlpack::kCopied : 0);
  }
  // A capsule that nobody consumed still has its own name and frees the export.
  return PyCapsule_New(&out->managed, name, [](PyObject* capsule) {
    const char* current = PyCapsule_GetName(capsule);
    if (!current || std::strncmp(current, "dltensor", 8) != 0) return;
    auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, current));
    managed->deleter(managed);
  });
}

// Two whole numbers in a tuple, as DLPack has devices and versions.
struct Pair {
  bool given = false;
  std::int64_t first = 0, second = 0;
};
Pair read_pair(nb::handle object) {
  Pair pair;
  if (!PyTuple_Check(object.ptr()) || PyTuple_GET_SIZE(object.ptr()) != 2) return pair;
  pair.given = read_integer(PyTuple_GET_ITEM(object.ptr(), 0), pair.first) &&
               read_integer(PyTuple_GET_ITEM(object.ptr(), 1), pair.second);
  return pair;
}

// Where a consumer wants a tensor: where it is, or on the CPU.
Tensor on_dlpack_device(const Tensor& x, nb::handle device, std::optional<bool> copy_arg) {
  if (device.is_none()) return x;
  const auto [kind, number] = dlpack_place(x);
  const Pair wanted = read_pair(device);
  if (!wanted.given)
    fail(ErrorKind::type, "__dlpack__: dl_device must be (device type, number), got ",
         shown(device.ptr()));
  if (wanted.first == kind && (kind == dlpack::kCpu || wanted.second == number)) return x;
  if (wanted.first != dlpack::kCpu)
    fail(ErrorKind::buffer, "__dlpack__: a tensor on '", x->elsewhere ? x.device()->name : "cpu",
         "' is not exported to device (", wanted.first, ", ", wanted.second,
         x->elsewhere ? ")" : "): only CPU memory is", "; move it there first");
  if (copy_arg == false)
    fail(ErrorKind::buffer, "__dlpack__: the CPU needs a copy, but copy=False was given");
  return to_device(x, nullptr);
}

PyObject* to_dlpack(const Tensor& x_in, nb::handle stream, nb::handle max_version,
                    nb::handle device, std::optional<bool> copy_arg) {
  refuse_graph(x_in, "__dlpack__");
  const Tensor moved = on_dlpack_device(x_in, device, copy_arg);
  const bool backwards = steps_backwards(moved);
  if (backwards && copy_arg == false)
    fail(ErrorKind::buffer,
         "__dlpack__: a view that steps backwards through memory needs a copy, but copy=False was "
         "given");
  const bool copied = copy_arg == true || backwards || !moved.is(x_in);
  const Tensor x = copied && moved.is(x_in) ? copy(x_in) : moved;
  const nb::handle consumer = moved.is(x_in) ? stream : nb::handle(Py_None);
  const Pair version = read_pair(max_version);
  if (!max_version.is_none() && !version.given)
    fail(ErrorKind::type, "__dlpack__: max_version must be (major, minor), got ",
         shown(max_version.ptr()));
  if (version.first >= 1)
    return export_capsule<dlpack::ManagedVersioned>(x, copied, "dltensor_versioned", consumer);
  if (!x->storage->writable)
    fail(ErrorKind::buffer, "__dlpack__: read-only memory needs a consumer of DLPack 1.0");
  return export_capsule<dlpack::Managed>(x, copied, "dltensor", consumer);
}

// Null for the CPU's memory, pinned memory included.
const Device* device_of_dlpack(const dlpack::Device& device) {
  if (device.type == dlpack::kCpu || device.type == kDlCudaHost) return nullptr;
  if (device.type == kDlCuda || device.type == kDlCudaManaged) return gpu_device(device.id);
  fail(ErrorKind::buffer, "from_dlpack: memory of device type ", device.type,
       " is neither on the CPU nor on a CUDA GPU; move it there first");
}

// Where the first element is, extents and strides; raises for what cannot be.
ForeignView view_of(const dlpack::TensorView& given, PyObject* producer) {
  const char* const who = Py_TYPE(producer)->tp_name;
  if (given.ndim < 0)
    fail(ErrorKind::buffer, "from_dlpack: ", who, " says ndim ", given.ndim, ", which is negative");
  if (given.ndim > kMaxRank)
    fail(ErrorKind::value, "from_dlpack: ", who, ": a tensor has at most ", kMaxRank,
         " dimensions, got ", given.ndim);
  if (given.ndim > 0 && !given.shape)
    fail(ErrorKind::buffer, "from_dlpack: ", who, " says ndim ", given.ndim, ", but has no shape");
  ForeignView view{given.data, given.byte_offset, Shape(), Strides(given.ndim, 0),
                   dtype_of_dlpack(given.dtype)};
  for (int i = 0; i < given.ndim; ++i) view.shape.push_back(given.shape[i]);
  check_claims(view, producer, "from_dlpack");  // extents first: strides are made of them
  if (!given.strides) view.strides = contiguous_strides(view.shape);
  for (int i = 0; given.strides && i < given.ndim; ++i) view.strides[i] = given.strides[i];
  check_claims(view, producer, "from_dlpack");
  return view;
}

// Memory whose producer gets it back when the last tensor over it goes.
template <class M> Ref<Storage> borrowed_from(M* managed, const Device* device, bool writable) {
  struct Owner {
    M* managed;
    const Device* device;
  };
  const dlpack::TensorView& view = managed->tensor;
  auto owner = std::make_unique<Owner>(managed, device);
  Ref<Storage> storage = Storage::borrow(
      static_cast<char*>(view.data) + view.byte_offset, 0, writable, owner.get(), [](void* held) {
        if (!Py_IsInitialized()) return;
        const std::unique_ptr<Owner> owner(static_cast<Owner*>(held));
        finish_use_of_import(owner->device);
        if (owner->managed->deleter) owner->managed->deleter(owner->managed);
      });
  static_cast<void>(owner.release());
  storage->device = device;
  return storage;
}

// Before it is marked as used a capsule gives its memory back itself.
template <class M>
Tensor import_capsule(PyObject* capsule, PyObject* producer, const char* name, const char* used) {
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
  if (!managed) throw nb::python_error();
  constexpr bool versioned = std::is_same_v<M, dlpack::ManagedVersioned>;
  if constexpr (versioned)
    if (managed->version.major != 1)
      fail(ErrorKind::buffer, "from_dlpack: ", Py_TYPE(producer)->tp_name, " gave DLPack ",
           managed->version.major, ".", managed->version.minor, ", but was asked for 1.0 at most");
  const Device* const device = device_of_dlpack(managed->tensor.device);
  // Before 1.0 nothing could say that memory is read-only: as in NumPy, that of the host is.
  bool writable = device != nullptr;
  if constexpr (versioned) writable = !(managed->flags & dlpack::kReadOnly);
  const ForeignView view = view_of(managed->tensor, producer);
  Ref<Storage> storage = borrowed_from(managed, device, writable);
  PyCapsule_SetName(capsule, used);
  return sharing(Tensor::over(std::move(storage), 0, view.shape, view.strides, view.dtype));
}

// On a GPU, the stream that its producer shall be in order with.
void ask_for_stream(nb::handle object, nb::dict& options) {
  if (!nb::hasattr(object, "__dlpack_device__")) return;
  const nb::object place = object.attr("__dlpack_device__")();
  const Pair pair = read_pair(place);
  if (!pair.given)
    fail(ErrorKind::type, "from_dlpack: ", Py_TYPE(object.ptr())->tp_name,
         ".__dlpack_device__() must give (device type, number), got ", shown(place.ptr()));
  if (pair.first == kDlCuda)
    options["stream"] = stream_for_producer(static_cast<int>(
        std::clamp<std::int64_t>(pair.second, -1, std::numeric_limits<int>::max())));
}

// What a producer gives, asked as its version of DLPack can be.
nb::object capsule_of(nb::handle object, std::optional<bool> copy_arg) {
  nb::dict options;
  ask_for_stream(object, options);
  nb::dict newer;
  newer.update(options);
  newer["max_version"] = nb::make_tuple(1, 0);
  if (copy_arg) newer["copy"] = *copy_arg;
  try {
    return object.attr("__dlpack__")(**newer);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;  // a producer older than DLPack 1.0
    return object.attr("__dlpack__")(**options);
  }
}

Tensor tensor_of_capsule(PyObject* capsule, PyObject* producer, std::optional<bool> copy_arg) {
  const bool copy_allowed = copy_arg != false;
  if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
    return adopted(import_capsule<dlpack::ManagedVersioned>(capsule, producer, "dltensor_versioned",
                                                            "used_dltensor_versioned"),
                   copy_allowed);
  if (!PyCapsule_IsValid(capsule, "dltensor"))
    fail(ErrorKind::type, "from_dlpack: ", Py_TYPE(producer)->tp_name,
         ".__dlpack__() must give an unused capsule named 'dltensor' or 'dltensor_versioned', got ",
         shown(capsule));
  const Tensor given =
      import_capsule<dlpack::Managed>(capsule, producer, "dltensor", "used_dltensor");
  return adopted(copy_arg == true ? copy(given) : given, copy_allowed);
}

}  // namespace

Tensor from_dlpack(nb::handle object, nb::handle device, std::optional<bool> copy_arg) {
  const Device* to = nullptr;
  const bool moves = read_device(device, to);
  if (!nb::hasattr(object, "__dlpack__"))
    fail(ErrorKind::type, "from_dlpack: x must have __dlpack__, got ", shown(object.ptr()));
  const nb::object capsule = capsule_of(object, copy_arg);
  const Tensor x = tensor_of_capsule(capsule.ptr(), object.ptr(), copy_arg);
  if (!moves || x.device() == to) return x;
  if (copy_arg == false)
    fail(ErrorKind::value, "from_dlpack: another device needs a copy, but copy=False was given");
  return to_device(x, to);
}

void bind_dlpack(nb::module_& m) {
  m.def(
      "from_dlpack",
      [](nb::handle x, AnnotatedDevice device, std::optional<bool> copy_arg) {
        return from_dlpack(x, device, copy_arg);
      },
      "x"_a, nb::kw_only(), "device"_a = nb::none(), "copy"_a = nb::none(),
      "A tensor over the memory of an object with __dlpack__. The host's memory is read-only where "
      "the object is older than DLPack 1.0, which first could say so.\nShapes: the "
      "object's.\nTypes: all. "
      "Result: the object's type.\nRaises BufferError for types and devices that tensors do not "
      "have and for what cannot be of what the object says, TypeError for what is no such object, "
      "ValueError where another device needs a copy and copy is False.\nSource: Array API "
      "standard 2024.12.");
  m.def(
      "_to_dlpack",
      [](const Tensor& x, nb::object stream, nb::object version, nb::object device,
         std::optional<bool> copy_arg) {
        return nb::steal(to_dlpack(x, stream, version, device, copy_arg));
      },
      "x"_a, "stream"_a.none(), "max_version"_a.none(), "dl_device"_a.none(), "copy"_a.none());
}

}  // namespace tw::binding
