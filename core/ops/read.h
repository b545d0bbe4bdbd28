// The one way in which ops and methods read values of tensors for the program that calls them.
// Whole memory is shared by another: NumPy, DLPack, buffers (binding/interchange.cpp).
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

}  // namespace tw
