// What benchmarks ask of a GPU: a plain copy within its memory to compare with, versions.
#include "binding/tensor/casters.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"
#include "core/base/error.h"
#include "core/cuda/driver/driver.h"
#include "core/runtime/device.h"
#include "core/tensor/access.h"

namespace tw::binding {

using namespace nb::literals;
using cuda::driver;

namespace {

void copy_bytes(const Tensor& to, const Tensor& from) {
  const Device* device = to.device();
  if (!device || device != from.device() || !device->copy_within || !to.contiguous() ||
      !from.contiguous() || to.count() != from.count() || to.dtype() != from.dtype())
    fail(ErrorKind::value,
         "_gpu_copy: two row-major tensors of one shape and type on one GPU, got ", placed(to),
         " and ", placed(from));
  Access at;
  device->copy_within(*device, at(to), at(from),
                      static_cast<std::size_t>(to.count()) * to.item_bytes());
}

nb::tuple versions() {
  int driver_version = 0, compiler[2] = {};
  driver().driver_version(&driver_version);
  cuda::compiler().version(&compiler[0], &compiler[1]);
  return nb::make_tuple(nb::make_tuple(driver_version / 1000, driver_version % 1000 / 10),
                        nb::make_tuple(compiler[0], compiler[1]));
}

}  // namespace

void bind_gpu_comparison(nb::module_& m) {
  m.def("_gpu_copy", copy_bytes, "to"_a, "source"_a,
        "Copies by the driver, in the order of launches.");
  m.def("_gpu_versions", versions,
        "Major and minor of the CUDA that the driver has, and of NVRTC.");
}

}  // namespace tw::binding
