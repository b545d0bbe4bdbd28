// What the kernels of steps.cuh and step_factors.cuh are given.
#pragma once
#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

constexpr int kMostFactors = 10;    // that a row of updates.inc makes: kMaxFactors
constexpr int kMostStates = 3;      // of a row
constexpr int kMostSlices = 64;     // parameters of a launch
constexpr int kMostAttributes = 8;  // of a call

// Of M, the parameters' type, T, that of their states, and Number, that of a number that is a
// tensor; void on the host.
template <class M, class T> struct SliceOf {
  int64_t n;
  M* param;
  const M* grad;
  T* states[kMostStates];
};
template <class M, class T, class Number> struct UpdateOf {
  double factors[kMostFactors];
  const double* made;    // the factors, where a kernel made them
  const Number* number;  // of a change, where it is a tensor: the first factor
  SliceOf<M, T> slices[kMostSlices];
};

// The attributes of a call, as reals and as they are.
struct UpdateAttributes {
  double reals[kMostAttributes];
  int64_t numbers[kMostAttributes];
};
template <class Step, class Rate> struct FactorsOf {
  const Step* step;  // null: the number
  const Rate* rate;
  double step_number, rate_number;
  UpdateAttributes attributes;
  double* f;
};

}  // namespace tw::cuda
