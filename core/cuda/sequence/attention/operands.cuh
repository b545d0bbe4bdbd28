// What the kernels of attention are given. Settings: TW_IN (type in memory), TW_TYPE (what scores
// are computed in), TW_MASK (0: none, 1: bool, 2: added, of TW_TYPE).
#include "prelude.cuh"
using T = TW_TYPE;
using M = TW_IN;

struct Attention {
  int64_t queries, keys, size, value_size;
  int64_t q_row, k_row, v_row, g_row, mask_row, mask_column;
  double scale;
  int64_t causal;
  Extents heads;  // the axes in front of the matrices
  Strides q_heads, k_heads, v_heads, g_heads, mask_heads;
  const void *q, *k, *v, *mask, *out, *log_sums, *g;
  void *y, *y_log_sums, *dq, *dk, *dv;
  float* slopes;  // of tensor cores' kernels: what the queries' pass tells that of keys
};
#if TW_MASK == 1
using Mask = uint8_t;
#else
using Mask = T;
#endif

// A head's matrix of an operand.
template <class E>
TW_DEVICE const E* matrix_of(const Attention& p, const void* all, const Strides& heads,
                             int64_t head) {
  return static_cast<const E*>(all) + place(p.heads, heads, head);
}
