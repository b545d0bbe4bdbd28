#include "binding/gpu_interchange.h"

#include <utility>

#include "binding/casters.h"
#include "binding/function.h"
#include "binding/interchange.h"
#include "core/autograd/capture.h"
#include "core/base/error.h"
#include "core/cuda/foreign.h"
#include "core/cuda/gpu.h"
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
    if (kTypeStrings[i] && text.substr(1) == kTypeStrings[i] + 1 && text[0] != '>')
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
         told(stream.ptr()));
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

Tensor tensor_over_cuda_array(PyObject* object) {
  const nb::object told_of = nb::handle(object).attr("__cuda_array_interface__");
  const nb::dict array = nb::cast<nb::dict>(told_of);
  if (array.contains("mask") && !array["mask"].is_none())
    fail(ErrorKind::buffer, "asarray: masked GPU arrays are not read");
  const DType dtype = dtype_of_type_string(nb::cast<std::string>(array["typestr"]));
  const auto item = static_cast<std::int64_t>(size_of(dtype));
  Shape shape;
  for (nb::handle extent : nb::cast<nb::tuple>(array["shape"]))
    shape.push_back(nb::cast<std::int64_t>(extent));
  Strides strides = contiguous_strides(shape);
  if (array.contains("strides") && !array["strides"].is_none()) {
    int axis = 0;
    for (nb::handle step : nb::cast<nb::tuple>(array["strides"])) {
      const auto bytes = nb::cast<std::int64_t>(step);
      if (bytes % item)
        fail(ErrorKind::buffer, "asarray: the GPU array's strides are not whole elements");
      if (axis < strides.rank()) strides[axis++] = bytes / item;
    }
  }
  const nb::tuple data = nb::cast<nb::tuple>(array["data"]);
  const auto address = nb::cast<std::uintptr_t>(data[0]);
  const bool read_only = nb::cast<bool>(data[1]);
  void* const memory = reinterpret_cast<void*>(address);
  const int number = memory ? cuda::gpu_of_address(memory, "asarray") : 0;
  cuda::Gpu& gpu = cuda::Gpu::at(number);
  if (array.contains("stream") && !array["stream"].is_none())
    cuda::follow_foreign(gpu, nb::cast<std::uint64_t>(array["stream"]));
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
  return sharing(Tensor::over(std::move(storage), 0, shape, strides, dtype));
}

}  // namespace tw::binding
