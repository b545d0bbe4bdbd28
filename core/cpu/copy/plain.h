// What definitions have in common: a wider type for their sums, every place of a shape, and one
// element as another type.
#pragma once
#include <cstdint>

#include "core/base/shape.h"
#include "core/cpu/copy/convert.h"
#include "core/cpu/isa/isa.h"

namespace tw {

// float in double, double in long double: rounding is that of the result alone.
template <class T> struct WiderOf {
  using type = double;
};
template <> struct WiderOf<double> {
  using type = long double;
};
template <class T> using Wider = typename WiderOf<T>::type;

// Calls f(offset) for each place of a shape, row-major; strides and offset in elements.
template <class F> void each_place(const PlainDims& shape, const PlainDims& strides, F&& f,
                                   int axis = 0, std::int64_t offset = 0) {
  if (axis == shape.rank()) return f(offset);
  if (axis + 1 == shape.rank()) {
    for (std::int64_t i = 0; i < shape[axis]; ++i) f(offset + i * strides[axis]);
    return;
  }
  for (std::int64_t i = 0; i < shape[axis]; ++i)
    each_place(shape, strides, f, axis + 1, offset + i * strides[axis]);
}

// Where the element of a number, row-major, lies.
inline std::int64_t offset_of(std::int64_t number, const PlainDims& shape,
                              const PlainDims& strides) {
  std::int64_t offset = 0;
  for (int axis = shape.rank() - 1; axis >= 0; number /= shape[axis--])
    offset += number % shape[axis] * strides[axis];
  return offset;
}

// One element.
inline void convert_plainly(DType from, const void* x, DType to, void* y) {
  scalar_kernels().convert->convert[index_of(from)][index_of(to)](1, x, 0, y, 0);
}

}  // namespace tw
