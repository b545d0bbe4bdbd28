// Complex numbers: parts, and what they are made of.
#pragma once
#include "core/tensor/tensor.h"

namespace tw {

// Views of the parts in the same memory. The real part of a real tensor is itself; it has no
// imaginary one: TypeError.
Tensor real(const Tensor& z);
Tensor imag(const Tensor& z);
// A real tensor is its own conjugate.
Tensor conj(const Tensor& z);
// From two real tensors of one type, which broadcast.
Tensor complex(const Tensor& re, const Tensor& im);
Tensor magnitude(const Tensor& z);
// z / |z|, and 0 where z is.
Tensor direction(const Tensor& z);

}  // namespace tw
