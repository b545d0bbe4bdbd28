#include "core/cpu/families.h"

namespace tw {

void register_cpu_kernels() {
  [[maybe_unused]] static const bool once = [] {
    register_pointwise_kernels();
    register_reduce_kernels();
    register_reduce_backward_kernels();
    register_scan_kernels();
    register_scatter_kernels();
    register_softmax_kernels();
    register_attention_kernels();
    register_norm_kernels();
    register_recurrent_kernels();
    register_convert_kernels();
    register_complex_kernels();
    register_gather_kernels();
    register_multinomial_kernels();
    register_nonzero_kernels();
    register_order_kernels();
    register_repeat_kernels();
    register_random_kernels();
    register_rejection_kernels();
    register_update_kernels();
    register_total_norm_kernels();
    register_matmul_kernels();
    register_matmul_lowerings();
    register_convolution_kernels();
    register_window_kernels();
    register_pooling_kernels();
    register_resample_kernels();
    register_ctc_kernels();
    return true;
  }();
}

}  // namespace tw
