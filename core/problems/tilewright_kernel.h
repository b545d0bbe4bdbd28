/* What a kernel of one's own is given by Tilewright: a C interface, the same for all compilers.
 *
 * A shared library exports
 *
 *     const tw_kernels *tilewright_kernels(void);
 *
 * and `tw.kernels.load(path)` makes its kernels rungs of the ladders of their ops: explained,
 * forced, validated and benchmarked like those that Tilewright has. `tilewright kernel new` writes
 * a first one. A library whose abi is not TW_KERNEL_ABI is refused. */
#ifndef TILEWRIGHT_KERNEL_H
#define TILEWRIGHT_KERNEL_H
#include <stdint.h>

#define TW_KERNEL_ABI 1

#ifdef __cplusplus
extern "C" {
#endif

/* Element types. float16 and bfloat16 are 16 bits, complex numbers two parts one after the other.
 */
enum tw_dtype {
  TW_BOOL,
  TW_INT8,
  TW_INT16,
  TW_INT32,
  TW_INT64,
  TW_UINT8,
  TW_UINT16,
  TW_UINT32,
  TW_UINT64,
  TW_FLOAT16,
  TW_BFLOAT16,
  TW_FLOAT32,
  TW_FLOAT64,
  TW_COMPLEX64,
  TW_COMPLEX128
};

/* The engine's threads. parallel() calls body(context, i) for each i in [0, count), on up to
 * `threads` threads at a time, and returns when all have ended. */
typedef struct tw_engine {
  int32_t threads;
  void (*parallel)(int64_t count, void (*body)(void* context, int64_t i), void* context);
} tw_engine;

/* Of "matmul": C[i] = epilogue(alpha * A[i] @ B[i] + beta * C[i]) for i in [0, batch). Strides are
 * in elements, from matrix to matrix, row to row and column to column; they may be negative, and 0
 * in A and B. Where beta is 0, C holds nothing yet. The epilogue, of float32 and float64: bias
 * (unless it is null) at [row * bias_row + column * bias_column] is added, then negative numbers
 * become 0 if relu is not 0. The result overlaps no operand. */
typedef struct tw_matmul {
  const tw_engine* engine;
  int32_t dtype;
  int32_t relu;
  int64_t batch, m, n, k;
  const void* a; /* m x k */
  int64_t a_batch, a_row, a_column;
  const void* b; /* k x n */
  int64_t b_batch, b_row, b_column;
  void* c; /* m x n */
  int64_t c_batch, c_row, c_column;
  double alpha, beta;
  const void* bias;
  int64_t bias_row, bias_column;
} tw_matmul;

/* Of "convolution", "convolution_input_gradient" and "convolution_weight_gradient":
 * cross-correlation along three axes, of which missing ones come first and have size 1. Arrays are
 * row-major: x (batch, in, x[0], x[1], x[2]), w (out, in / groups, kernel[0..2]), y (batch, out,
 * y[0..2]). The input that element i of y meets tap t of w with, along an axis, is i * stride -
 * before + t * dilation; outside of x it is 0. Padding behind x follows from y. */
typedef struct tw_convolution {
  const tw_engine* engine;
  int32_t dtype; /* TW_FLOAT32 or TW_FLOAT64 */
  int64_t batch, groups, in, out;
  int64_t x[3], kernel[3], y[3];
  int64_t stride[3], dilation[3], before[3];
  const void* a;    /* x; of the input's gradient, that of y */
  const void* b;    /* w; of the weight's gradient, that of y */
  const void* bias; /* of "convolution" alone: a number for each channel of y, or null */
  void* result;     /* y; of gradients, that of x or of w */
} tw_convolution;

/* `problem` is the struct of the op. */
typedef struct tw_kernel {
  const char *op, *name, *help;
  /* Whether the kernel can solve a problem, whose addresses may be null; where not, `*reason` is
   * set to a few words. Null: any problem. */
  int (*accepts)(const void* problem, const char** reason);
  /* An estimate in nanoseconds, by which kernels are chosen. Null: the kernel runs where it is
   * forced alone. */
  double (*cost_ns)(const void* problem);
  /* 0, or a number of your own for an error, which becomes a RuntimeError. */
  int (*run)(const void* problem);
} tw_kernel;

typedef struct tw_kernels {
  int32_t abi; /* TW_KERNEL_ABI */
  int32_t count;
  const tw_kernel* kernels;
} tw_kernels;

#ifdef __cplusplus
}
#endif
#endif
