#include "binding/tensor/gpu_interchange.h"

#include <utility>

#include "binding/tensor/casters.h"
#include "binding/tensor/interchange.h"
#include "binding/tensor/text.h"
#include "core/autograd/capture.h"
#include "core/base/error.h"
#include "core/cuda/gpu/external_memory.h"
#include "core/cuda/gpu/gpu.h"
#include "core/runtime/device.h"

namespace tw::binding {

namespace {

cuda::Gpu* gpu_of(const Tensor& x) {
  const Device* const device = x.device();
  return device && device->kernels == KernelSet::cuda
             ? static_cast<cuda::Gpu*>(const_cast<Device*>(device))
             : nullptr;
}

[[noreturn]] void fail_attribute(const std::string& text) {
  PyErr_SetString(PyExc_AttributeError, text.c_str());
  throw nb::python_error();
}

// Type strings of NumPy's, in the order of DType; bfloat16 has none.
constexpr const char* kTypeStrings[kDTypes] = {"|b1",   "|i1", "<i2", "<i4", "<i8",
                                               "|u1",   "<u2", "<u4", "<u8", "<f2",
                                               nullptr, "<f4", "<f8", "<c8", "<c16"};

DType dtype_of_type_string(const std::string& text) {
  for (int i = 0; i < kDTypes; ++i)
    if (kTypeStrings[i] && !text.empty() && text.substr(1) == kTypeStrings[i] + 1 && text[0] != '>')
      return static_cast<DType>(i);
  fail(ErrorKind::type, "asarray: no dtype for the type string '", text,
       "' of __cuda_array_interface__");
}

}  // namespace

std::pair<std::int32_t, std::int32_t> dlpack_place(const Tensor& x) {
  if (!x->elsewhere) return {1, 0};
  const cuda::Gpu* const gpu = gpu_of(x);
  if (!gpu) check_on_cpu(x, "__dlpack__");
  return {kDlCuda, gpu->number};
}

// ---- a consumer's stream ----

ForeignUse::ForeignUse(const Tensor& x, nb::handle stream) {
  cuda::Gpu* const gpu = gpu_of(x);
  std::int64_t number = cuda::kLegacyStream;
  if (!stream.is_none() && !read_integer(stream.ptr(), number))
    fail(ErrorKind::type, "__dlpack__: stream must be a whole number or None, got ",
         shown(stream.ptr()));
  if (!gpu) {
    if (!stream.is_none())
      fail(ErrorKind::buffer, "__dlpack__: the CPU has no streams, so stream must be None, got ",
           number);
    return;
  }
  if (number == 0 || number < -1)
    fail(ErrorKind::buffer, "__dlpack__: stream ", number,
         " does not say which; 1 and 2 are the driver's own, -1 none");
  if (number == -1) return;
  cuda::lead_foreign(*gpu, x->storage->block, static_cast<std::uint64_t>(number));
  device_ = gpu;
  block_ = x->storage->block;
  stream_ = static_cast<std::uint64_t>(number);
}

ForeignUse::ForeignUse(ForeignUse&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)),
      block_(other.block_),
      stream_(other.stream_) {}

ForeignUse::~ForeignUse() {
  if (device_)
    cuda::take_back_from_foreign(static_cast<cuda::Gpu&>(const_cast<Device&>(*device_)), block_,
                                 stream_);
}

const Device* gpu_device(int number) { return &cuda::Gpu::at(number); }

nb::object stream_for_producer(int gpu) {
  return nb::int_(cuda::name_of_stream(cuda::Gpu::at(gpu)));
}

void finish_use_of_import(const Device* device) noexcept {
  if (!device) return;
  try {
    auto& gpu = static_cast<cuda::Gpu&>(const_cast<Device&>(*device));
    gpu.wait_for_all();
  } catch (const Error&) {  // told when the program waits
  }
}

// ---- the CUDA array interface ----

nb::dict cuda_array_interface(const Tensor& x) {
  cuda::Gpu* const gpu = gpu_of(x);
  if (!gpu)
    fail_attribute("__cuda_array_interface__: the tensor is on '" +
                   std::string(x->elsewhere ? x.device()->name : "cpu") + "', not on a GPU");
  const char* const type = kTypeStrings[static_cast<int>(x.dtype())];
  if (!type) fail_attribute("__cuda_array_interface__: bfloat16 has no type string; use DLPack");
  refuse_graph(x, "__cuda_array_interface__");
  refuse_in_capture("another library gets at the memory");
  x->storage->pin();  // for good: nobody tells when the address is no longer used
  const auto item = static_cast<std::int64_t>(x.item_bytes());
  nb::list shape, strides;
  for (int i = 0; i < x.rank(); ++i) {
    shape.append(x.size(i));
    strides.append(x.strides()[i] * item);
  }
  nb::dict out;
  out["shape"] = nb::tuple(shape);
  out["typestr"] = type;
  const auto address = x.count() ? reinterpret_cast<std::uintptr_t>(x.pinned_bytes()) : 0;
  out["data"] = nb::make_tuple(address, !x->storage->writable);
  out["strides"] = x.contiguous() ? nb::object(nb::none()) : nb::object(nb::tuple(strides));
  out["stream"] = cuda::name_of_stream(*gpu);
  out["version"] = 3;
  return out;
}

bool has_cuda_array_interface(PyObject* object) {
  return PyObject_HasAttrString(object, "__cuda_array_interface__");
}

namespace {

// What an array says of itself, read without trust.
class CudaInterface {
 public:
  explicit CudaInterface(PyObject* object)
      : owner_(object), interface_(nb::handle(object).attr("__cuda_array_interface__")) {
    if (!PyDict_Check(interface_.ptr()))
      fail(ErrorKind::type, "asarray: __cuda_array_interface__ of ", Py_TYPE(object)->tp_name,
           " must be a dict, got ", shown(interface_.ptr()));
  }
  // None for what is left out.
  nb::object get(const char* key) const {
    PyObject* const value = PyDict_GetItemString(interface_.ptr(), key);
    return value ? nb::borrow(value) : nb::none();
  }
  [[noreturn]] void refuse(const char* key, const char* wanted) const {
    fail(ErrorKind::type, "asarray: '", key, "' in __cuda_array_interface__ of ",
         Py_TYPE(owner_)->tp_name, " must be ", wanted, ", got ", shown(get(key).ptr()));
  }
  Dims numbers(const char* key) const {
    const nb::object given = get(key);
    if (!PyTuple_Check(given.ptr())) refuse(key, "a tuple of ints");
    Dims out;
    if (!read_shape(given.ptr(), out)) refuse(key, "a tuple of ints");
    return out;
  }
  DType dtype() const {
    const nb::object text = get("typestr");
    if (!nb::isinstance<nb::str>(text)) refuse("typestr", "a str");
    return dtype_of_type_string(std::string(utf8_of(text.ptr())));
  }
  // In elements; row-major ones where none are given.
  Strides strides(const ForeignView& view) const {
    if (get("strides").is_none()) return contiguous_strides(view.shape);
    Strides strides = numbers("strides");
    const auto item = static_cast<std::int64_t>(size_of(view.dtype));
    if (strides.rank() != view.shape.rank()) refuse("strides", "as long as the shape");
    for (int i = 0; i < strides.rank(); ++i) {
      if (strides[i] % item)
        fail(ErrorKind::buffer, "asarray: the GPU array's strides are not whole elements");
      strides[i] /= item;
    }
    return strides;
  }
  ForeignView view() const {
    ForeignView view{address(), 0, numbers("shape"), Strides(), dtype()};
    view.strides = Strides(view.shape.rank(), 0);
    check_claims(view, owner_, "asarray");  // extents first: strides are made of them
    view.strides = strides(view);
    check_claims(view, owner_, "asarray");
    return view;
  }
  bool read_only() const { return PyObject_IsTrue(nb::object(data()[1]).ptr()) != 0; }
  // 0: none to wait for.
  std::uint64_t stream() const {
    const nb::object stream = get("stream");
    if (stream.is_none()) return 0;
    std::uint64_t number;
    if (!read_unsigned(stream, number) || number == 0)
      refuse("stream", "None or the number of a stream, which 0 is not");
    return number;
  }

 private:
  nb::tuple data() const {
    const nb::object data = get("data");
    if (!PyTuple_Check(data.ptr()) || PyTuple_GET_SIZE(data.ptr()) != 2)
      refuse("data", "(address, read-only)");
    return nb::borrow<nb::tuple>(data);
  }
  void* address() const {
    std::uint64_t address;
    if (!read_unsigned(data()[0], address)) refuse("data", "(address, read-only)");
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
  }
  // False for what is no whole number from 0 to 2^64 - 1.
  static bool read_unsigned(const nb::object& number, std::uint64_t& out) {
    const nb::object whole = nb::steal(PyNumber_Index(number.ptr()));
    out = whole.is_valid() ? PyLong_AsUnsignedLongLong(whole.ptr()) : 0;
    const bool failed = PyErr_Occurred();
    PyErr_Clear();
    return !failed;
  }

  PyObject* const owner_;
  const nb::object interface_;
};

}  // namespace

Tensor tensor_over_cuda_array(PyObject* object) {
  const CudaInterface array(object);
  if (!array.get("mask").is_none())
    fail(ErrorKind::buffer, "asarray: masked GPU arrays are not read");
  const ForeignView view = array.view();
  void* const memory = const_cast<void*>(view.data);
  const bool read_only = array.read_only();
  cuda::Gpu& gpu = cuda::Gpu::at(memory ? cuda::gpu_of_address(memory, "asarray") : 0);
  if (const std::uint64_t stream = array.stream()) cuda::follow_foreign(gpu, stream);
  struct Owner {
    nb::object object;
    const Device* device;
  };
  auto* owner = new Owner{nb::borrow(object), &gpu};
  Ref<Storage> storage = Storage::borrow(memory, 0, !read_only, owner, [](void* held) {
    if (!Py_IsInitialized()) return;
    const nb::gil_scoped_acquire lock;
    const std::unique_ptr<Owner> owner(static_cast<Owner*>(held));
    finish_use_of_import(owner->device);
  });
  storage->device = &gpu;
  return sharing(Tensor::over(std::move(storage), 0, view.shape, view.strides, view.dtype));
}

}  // namespace tw::binding
