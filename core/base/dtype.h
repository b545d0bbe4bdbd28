// Element types: names, sizes, kinds and the Array API's promotion rules.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tw {

// C++ type, name. The order is the promotion order within a kind.
#define TW_DTYPES(ROW)                   \
  ROW(bool, bool_, "bool")               \
  ROW(std::int8_t, int8, "int8")         \
  ROW(std::int16_t, int16, "int16")      \
  ROW(std::int32_t, int32, "int32")      \
  ROW(std::int64_t, int64, "int64")      \
  ROW(std::uint8_t, uint8, "uint8")      \
  ROW(std::uint16_t, uint16, "uint16")   \
  ROW(std::uint32_t, uint32, "uint32")   \
  ROW(std::uint64_t, uint64, "uint64")   \
  ROW(Half, float16, "float16")          \
  ROW(BFloat16, bfloat16, "bfloat16")    \
  ROW(float, float32, "float32")         \
  ROW(double, float64, "float64")        \
  ROW(Complex64, complex64, "complex64") \
  ROW(Complex128, complex128, "complex128")

// Storage types without arithmetic of their own; kernels widen them to float.
struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};
template <class Part> struct Complex {
  Part re, im;
};
using Complex64 = Complex<float>;
using Complex128 = Complex<double>;
template <class T> inline constexpr bool is_complex_number = false;
template <class Part> inline constexpr bool is_complex_number<Complex<Part>> = true;

enum class DType : std::uint8_t {
#define TW_ROW(type, id, text) id,
  TW_DTYPES(TW_ROW)
#undef TW_ROW
};
#define TW_ROW(type, id, text) +1
inline constexpr int kDTypes = 0 TW_DTYPES(TW_ROW);
#undef TW_ROW

inline constexpr std::uint8_t kDTypeSize[kDTypes] = {
#define TW_ROW(type, id, text) sizeof(type),
    TW_DTYPES(TW_ROW)
#undef TW_ROW
};

template <class T> struct DTypeOf;
#define TW_ROW(type, id, text)                \
  template <> struct DTypeOf<type> {          \
    static constexpr DType value = DType::id; \
  };
TW_DTYPES(TW_ROW)
#undef TW_ROW

constexpr int index_of(DType t) { return static_cast<int>(t); }
constexpr std::size_t size_of(DType t) { return kDTypeSize[index_of(t)]; }
const char* name_of(DType t);

constexpr bool is_bool(DType t) { return t == DType::bool_; }
constexpr bool is_signed_int(DType t) { return t >= DType::int8 && t <= DType::int64; }
constexpr bool is_unsigned_int(DType t) { return t >= DType::uint8 && t <= DType::uint64; }
constexpr bool is_integer(DType t) { return t >= DType::int8 && t <= DType::uint64; }
constexpr bool is_floating(DType t) { return t >= DType::float16 && t <= DType::float64; }
constexpr bool is_complex(DType t) { return t >= DType::complex64; }
// Of a complex type the type of its parts; of float32 and float64 the complex type of such parts.
// Others stay.
constexpr DType part_dtype(DType t) {
  return t == DType::complex64 ? DType::float32 : t == DType::complex128 ? DType::float64 : t;
}
constexpr DType complex_dtype(DType t) {
  return t == DType::float32 ? DType::complex64 : t == DType::float64 ? DType::complex128 : t;
}

// The Array API's table, extended where it is silent: integer with floating gives the floating
// or complex type, float16 with bfloat16 gives float32. uint64 with a signed integer has no common
// type: raises TypeError.
DType promote(DType a, DType b);

// What numbers with a fraction become where nothing else decides: float32, or float64 where the
// program chose that. Of the whole process.
inline std::atomic<DType> default_floating{DType::float32};
inline DType default_dtype() { return default_floating.load(std::memory_order_relaxed); }

// Calls `f` with a value-initialised object of the C++ type behind `t`.
template <class F> decltype(auto) visit(DType t, F&& f) {
  switch (t) {
#define TW_ROW(type, id, text) \
  case DType::id: return f(type{});
    TW_DTYPES(TW_ROW)
#undef TW_ROW
  }
  __builtin_unreachable();
}

}  // namespace tw
