// What the kernels of attention are given. Settings: TW_IN (type in memory), TW_TYPE (what scores
// are computed in, and what a mask that is added is of), TW_MASK.
#include "prelude.cuh"
#include "attention_parameters.h"
using T = TW_TYPE;
using M = TW_IN;

#if TW_MASK == TW_MASK_BOOL
using Mask = uint8_t;
#else
using Mask = T;
#endif

// A head's matrix of an operand.
template <class E>
TW_DEVICE const E* matrix_of(const Attention& p, const void* all, WalkedOperand which,
                             int64_t head) {
  return static_cast<const E*>(all) + place(p.heads, p.strides[which], head);
}
