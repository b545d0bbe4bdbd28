// What a reduction computes with: how elements are joined, in which type, and from what on.
#pragma once
#include <cstdint>
#include <cstring>

#include "core/cpu/copy/convert.h"
#include "core/cpu/reduce/reduce.h"

namespace tw {

inline ReduceType type_of(ReduceOp op, DType in, DType out) {
  if (is_logic(op) || (is_bool(in) && !is_additive(op))) return ReduceType::truth;
  if (is_additive(op) && (in == DType::float64 || out == DType::float64)) return ReduceType::f64;
  if (in == DType::float64) return ReduceType::f64;
  if (is_floating(in)) return ReduceType::f32;
  if (is_additive(op) && is_floating(out)) return ReduceType::f64;
  if (join_of(op) == ReduceJoin::product)
    return is_unsigned_int(in) ? ReduceType::u64 : ReduceType::i64;
  switch (in) {
    case DType::int8: return ReduceType::i8;
    case DType::int16: return ReduceType::i16;
    case DType::int32: return ReduceType::i32;
    case DType::int64: return ReduceType::i64;
    case DType::uint16: return ReduceType::u16;
    case DType::uint32: return ReduceType::u32;
    case DType::uint64: return ReduceType::u64;
    default: return ReduceType::u8;
  }
}
// The dtype that the loops of a type read.
inline DType element_of(ReduceType type) {
  constexpr DType kElements[kReduceTypes] = {
      DType::float32, DType::float64, DType::int64, DType::uint64, DType::int32, DType::uint32,
      DType::int16,   DType::uint16,  DType::int8,  DType::uint8,  DType::bool_};
  return kElements[static_cast<int>(type)];
}
inline DType accumulator_of(ReduceOp op, ReduceType type) {
  const DType element = element_of(type);
  if (!is_additive(op)) return element;
  if (is_floating(element)) return DType::float64;
  return is_unsigned_int(element) ? DType::uint64 : DType::int64;
}

inline void fill_elements(DType dtype, std::int64_t n, void* acc, double value) {
  convert_elements(DType::float64, dtype, 1, &value, 0, acc, 0);
  if (n > 1)
    convert_elements(dtype, dtype, n - 1, acc, 0, static_cast<char*>(acc) + size_of(dtype),
                     size_of(dtype));
}
// Extrema start from the end of the type's range; that of floating types is an infinity.
inline void fill_identity(ReduceOp op, DType dtype, std::int64_t n, void* acc) {
  const ReduceJoin join = join_of(op);
  if (join == ReduceJoin::sum) {
    std::memset(acc, 0, static_cast<std::size_t>(n) * size_of(dtype));
    return;
  }
  if (join == ReduceJoin::product) return fill_elements(dtype, n, acc, 1);
  const bool largest = takes_larger(op);
  if (is_floating(dtype))
    return fill_elements(dtype, n, acc, largest ? -__builtin_inf() : __builtin_inf());
  if (is_bool(dtype)) return fill_elements(dtype, n, acc, largest ? 0 : 1);
  const std::int64_t top = std::int64_t{1}
                           << (8 * size_of(dtype) - 2);  // the highest bit but the sign
  std::int64_t edge = largest ? -2 * top : top - 1 + top;
  if (is_unsigned_int(dtype)) edge = largest ? 0 : -1;
  convert_elements(dtype, dtype, n, &edge, 0, acc, size_of(dtype));
}

}  // namespace tw
