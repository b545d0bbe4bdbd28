#include "core/base/dtype.h"

#include "core/base/error.h"

namespace tw {

const char* name_of(DType t) {
  static constexpr const char* kNames[] = {
#define TW_ROW(type, id, text) text,
      TW_DTYPES(TW_ROW)
#undef TW_ROW
  };
  return kNames[index_of(t)];
}

namespace {

DType signed_of_size(std::size_t bytes) {
  return bytes == 1   ? DType::int8
         : bytes == 2 ? DType::int16
         : bytes == 4 ? DType::int32
                      : DType::int64;
}

DType promote_integers(DType a, DType b) {
  if (is_signed_int(a) == is_signed_int(b)) return size_of(a) >= size_of(b) ? a : b;
  const DType s = is_signed_int(a) ? a : b, u = is_signed_int(a) ? b : a;
  if (size_of(s) > size_of(u)) return s;
  if (u == DType::uint64)
    fail(ErrorKind::type, "no common type for uint64 and ", name_of(s),
         "; convert one of them with astype first");
  return signed_of_size(2 * size_of(u));
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_bool(a)) return b;
  if (is_bool(b)) return a;
  if (is_complex(a) || is_complex(b)) {
    const bool wide = part_dtype(a) == DType::float64 || part_dtype(b) == DType::float64;
    return wide ? DType::complex128 : DType::complex64;
  }
  if (is_integer(a) && is_integer(b)) return promote_integers(a, b);
  if (is_integer(a)) return b;
  if (is_integer(b)) return a;
  if (size_of(a) == size_of(b)) return DType::float32;  // float16 with bfloat16
  return size_of(a) > size_of(b) ? a : b;
}

}  // namespace tw
