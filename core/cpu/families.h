// What each kernel family puts into the registry. Listed by hand: an object file that only
// registers itself would be dropped from a static library.
#pragma once

namespace tw {

void register_pointwise_kernels();
void register_reduce_kernels();
void register_reduce_backward_kernels();
void register_scan_kernels();
void register_scatter_kernels();
void register_softmax_kernels();
void register_attention_kernels();
void register_norm_kernels();
void register_recurrent_kernels();
void register_convert_kernels();
void register_complex_kernels();
void register_gather_kernels();
void register_multinomial_kernels();
void register_nonzero_kernels();
void register_order_kernels();
void register_repeat_kernels();
void register_random_kernels();
void register_rejection_kernels();
void register_update_kernels();
void register_total_norm_kernels();
// The ladder of matrix products: naive, tiled, simd, packed, direct, strassen, and the three of
// rung split (bf16x6, bf16x3, bf16); and the ops whose calls it solves.
void register_matmul_kernels();
void register_matmul_lowerings();
void register_convolution_kernels();
void register_window_kernels();
void register_pooling_kernels();
void register_resample_kernels();
void register_ctc_kernels();

// All of them, once: a frontend calls this before ops run.
void register_cpu_kernels();

}  // namespace tw
