// What this device can do: each file's kernels, registered together.
#pragma once

namespace tw::cuda {

void register_pointwise_kernels();
void register_copy_kernels();
void register_reduce_kernels();
void register_softmax_kernels();
void register_gather_kernels();
void register_random_kernels();
void register_update_kernels();
void register_norm_kernels();
void register_matmul_kernels();
void register_convolution_kernels();
void register_window_kernels();
void register_scan_kernels();
void register_along_kernels();
void register_order_kernels();
void register_bin_kernels();
void register_attention_kernels();
void register_recurrent_kernels();
void register_resample_kernels();
void register_ctc_kernels();
void register_draw_kernels();
void register_complex_kernels();

}  // namespace tw::cuda

namespace tw {

// The GPUs and their kernels; nothing of CUDA is opened.
void register_cuda();

}  // namespace tw
