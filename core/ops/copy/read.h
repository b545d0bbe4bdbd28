// The one way in which ops and methods read values of tensors for the program that calls them.
// Whole memory is shared by another: NumPy, DLPack, buffers (binding/tensor/interchange.cpp).
#pragma once
#include "core/tensor/tensor.h"

namespace tw {

// The elements of `x` while it lives, copied to the CPU where they are elsewhere: from a device
// that computes nothing they come back as zeros. Raises RuntimeError in a capture, which says
// `what` reads.
class HostValues {
 public:
  HostValues(const Tensor& x, const char* what);
  const Tensor& tensor() const { return x_; }
  template <class T> const T* as() const { return reinterpret_cast<const T*>(x_.pinned_bytes()); }

 private:
  const Tensor x_;
  const Pinned pinned_;
};

// Whether one may look at values for nothing: on the CPU, where they are, and not in a recording,
// which a replay repeats on others.
bool shows_values(const Tensor& x);
// Whether one of some bools is true; `op` reads whether its operands are in range.
bool holds_any(const Tensor& mask, const char* op);

}  // namespace tw
