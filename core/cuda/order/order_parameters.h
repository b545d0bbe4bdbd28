// What the kernels of order.cuh are given.
#pragma once
#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

// Of T, the elements' type; void on the host.
template <class T> struct SortedRowsOf {
  int64_t rows, n, run;
  int64_t descending;
  const T* x;
  const T* from;  // a merge: values and places, sorted in runs
  const int64_t* from_places;
  T* y;
  int64_t* places;  // of y
};

// What is picked of sorted rows.
enum Picked : int64_t { kFirstOfRow, kOneOfRow, kMedian, kMedianOfNumbers };
template <class T> struct PicksOf {
  int64_t rows, n, k, which;
  const T* from;
  const int64_t* from_places;
  T* y;
  int64_t* places;
};

template <class T> struct SearchOf {
  int64_t rows, n, queries, right;
  const T *x, *values;
  int64_t* y;
};

}  // namespace tw::cuda
