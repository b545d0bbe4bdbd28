#include "core/cuda/gpu/families.h"

#include "core/cuda/gpu/gpu.h"
#include "core/cuda/gpu/add_kernel.h"
#include "core/runtime/mode_changes.h"

namespace tw {

void register_cuda() {
  using cuda::Gpu;
  install_gpus(Gpu::count, [](int number) -> const Device& { return Gpu::at(number); });
  device_modes = {Gpu::take_streams, Gpu::put_streams};
  tell_late_events = [] {
    for (Gpu* gpu : Gpu::all()) gpu->copier.tell(true);
  };
  cuda::register_pointwise_kernels();
  cuda::register_copy_kernels();
  cuda::register_reduce_kernels();
  cuda::register_softmax_kernels();
  cuda::register_gather_kernels();
  cuda::register_random_kernels();
  cuda::register_update_kernels();
  cuda::register_norm_kernels();
  cuda::register_matmul_kernels();
  cuda::register_convolution_kernels();
  cuda::register_window_kernels();
  cuda::register_scan_kernels();
  cuda::register_along_kernels();
  cuda::register_order_kernels();
  cuda::register_bin_kernels();
  cuda::register_attention_kernels();
  cuda::register_recurrent_kernels();
  cuda::register_resample_kernels();
  cuda::register_ctc_kernels();
  cuda::register_draw_kernels();
  cuda::register_complex_kernels();
}

namespace cuda {

const char* type_name(DType dtype) {
  switch (dtype) {
    case DType::bool_:
    case DType::uint8: return "uint8_t";
    case DType::int8: return "int8_t";
    case DType::int16: return "int16_t";
    case DType::uint16: return "uint16_t";
    case DType::int32: return "int32_t";
    case DType::uint32: return "uint32_t";
    case DType::int64: return "int64_t";
    case DType::uint64: return "uint64_t";
    case DType::float16: return "half";
    case DType::bfloat16: return "bfloat16";
    case DType::float32: return "float";
    case DType::float64: return "double";
    case DType::complex64: return "complex64";
    case DType::complex128: return "complex128";
  }
  __builtin_unreachable();
}

DType compute_dtype(DType dtype) {
  switch (dtype) {
    case DType::int8:
    case DType::int16:
    case DType::uint16: return DType::int32;
    case DType::uint32: return DType::int64;
    case DType::float16:
    case DType::bfloat16: return DType::float32;
    default: return dtype;
  }
}

}  // namespace cuda
}  // namespace tw
