// What the kernel of conj.cuh is given.
#pragma once
#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

// Of T, the elements' type; void on the host.
template <class T> struct ConjugateOf {
  int64_t count;
  const T* x;
  T* y;
};

}  // namespace tw::cuda
