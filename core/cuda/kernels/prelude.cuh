// What every kernel stands on: names for the types of elements, and conversions between them. There
// are no headers: a kernel compiles in milliseconds. The emulator (core/cuda/emulator) brings its own
// meaning of what is marked TW_EMULATED.
#ifndef TW_EMULATED
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
using size_t = unsigned long;
// A kernel takes one structure, which lies in constant memory.
#define TW_KERNEL(name, Parameters, threads) \
  extern "C" __global__ void __launch_bounds__(threads) name(const __grid_constant__ Parameters p)
#define TW_DEVICE __device__ __forceinline__
#define TW_DYNAMIC_SHARED(T, name) extern __shared__ __align__(1024) unsigned char tw_dynamic[]; \
  T* const name = reinterpret_cast<T*>(tw_dynamic)
#define TW_INFINITY (__int_as_float(0x7f800000))
#define TW_NAN (__int_as_float(0x7fc00000))
#endif

struct half { uint16_t bits; };
struct bfloat16 { uint16_t bits; };
struct alignas(8) complex64 { float re, im; };
struct alignas(16) complex128 { double re, im; };
struct alignas(16) bytes16 { uint64_t half[2]; };

#ifdef TW_EMULATED
TW_HALF_CONVERSIONS
#else
TW_DEVICE float to_float(half x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
TW_DEVICE half to_half(float x) {
  half y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
TW_DEVICE bfloat16 to_bfloat16(float x) {
  bfloat16 y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
TW_DEVICE float to_float(bfloat16 x) { return __uint_as_float(uint32_t(x.bits) << 16); }
#endif

// Values that kernels compute in (float, double, whole numbers), from and to what memory holds.
template <class To, class From> struct Convert {
  static TW_DEVICE To from(From x) { return static_cast<To>(x); }
};
template <class To> struct Convert<To, half> {
  static TW_DEVICE To from(half x) { return static_cast<To>(to_float(x)); }
};
template <class To> struct Convert<To, bfloat16> {
  static TW_DEVICE To from(bfloat16 x) { return static_cast<To>(to_float(x)); }
};
template <class From> struct Convert<half, From> {
  static TW_DEVICE half from(From x) { return to_half(static_cast<float>(x)); }
};
template <class From> struct Convert<bfloat16, From> {
  static TW_DEVICE bfloat16 from(From x) { return to_bfloat16(static_cast<float>(x)); }
};
template <> struct Convert<half, half> {
  static TW_DEVICE half from(half x) { return x; }
};
template <> struct Convert<bfloat16, bfloat16> {
  static TW_DEVICE bfloat16 from(bfloat16 x) { return x; }
};
template <> struct Convert<bfloat16, half> {
  static TW_DEVICE bfloat16 from(half x) { return to_bfloat16(to_float(x)); }
};
template <> struct Convert<half, bfloat16> {
  static TW_DEVICE half from(bfloat16 x) { return to_half(to_float(x)); }
};
template <class To, class Part, class From> struct ToComplex {
  static TW_DEVICE To from(From x) { return {convert_part<Part>(x), Part(0)}; }
  template <class P, class F> static TW_DEVICE P convert_part(F x) { return Convert<P, F>::from(x); }
};
template <class From> struct Convert<complex64, From> : ToComplex<complex64, float, From> {};
template <class From> struct Convert<complex128, From> : ToComplex<complex128, double, From> {};
template <> struct Convert<complex64, half> : ToComplex<complex64, float, half> {};
template <> struct Convert<complex64, bfloat16> : ToComplex<complex64, float, bfloat16> {};
template <> struct Convert<complex128, half> : ToComplex<complex128, double, half> {};
template <> struct Convert<complex128, bfloat16> : ToComplex<complex128, double, bfloat16> {};
template <> struct Convert<complex64, complex64> {
  static TW_DEVICE complex64 from(complex64 x) { return x; }
};
template <> struct Convert<complex128, complex128> {
  static TW_DEVICE complex128 from(complex128 x) { return x; }
};
template <> struct Convert<complex64, complex128> {
  static TW_DEVICE complex64 from(complex128 x) { return {float(x.re), float(x.im)}; }
};
template <> struct Convert<complex128, complex64> {
  static TW_DEVICE complex128 from(complex64 x) { return {x.re, x.im}; }
};
template <> struct Convert<bytes16, bytes16> {
  static TW_DEVICE bytes16 from(bytes16 x) { return x; }
};
template <class To, class From> TW_DEVICE To convert(From x) { return Convert<To, From>::from(x); }
template <class From> TW_DEVICE bool is_true(From x) { return x != 0; }
TW_DEVICE bool is_true(half x) { return (x.bits & 0x7fff) != 0; }
TW_DEVICE bool is_true(bfloat16 x) { return (x.bits & 0x7fff) != 0; }
template <class Complex> TW_DEVICE bool is_true_complex(Complex x) { return x.re != 0 || x.im != 0; }
TW_DEVICE bool is_true(complex64 x) { return is_true_complex(x); }
TW_DEVICE bool is_true(complex128 x) { return is_true_complex(x); }

// Operands of several axes: an element's place from its number in row-major order.
constexpr int kMaxAxes = 8;
struct Extents {
  int32_t rank;
  int64_t extent[kMaxAxes];
};
struct Strides {
  int64_t stride[kMaxAxes];
};
TW_DEVICE int64_t place(const Extents& e, const Strides& s, int64_t element) {
  int64_t at = 0;
  for (int axis = e.rank - 1; axis > 0; --axis) {
    const int64_t rest = element / e.extent[axis];
    at += (element - rest * e.extent[axis]) * s.stride[axis];
    element = rest;
  }
  return at + element * s.stride[0];
}

// What a kernel found wrong (core/cuda/gpu.h); the first thread to say so is heard.
struct Fault {
  int32_t code, user;
  int64_t value, place, limit, axis;
};
TW_DEVICE void report(Fault* fault, int32_t code, int32_t user, int64_t value, int64_t place,
                      int64_t limit, int64_t axis) {
  if (atomicCAS(&fault->code, 0, code) != 0) return;
  fault->user = user;
  fault->value = value;
  fault->place = place;
  fault->limit = limit;
  fault->axis = axis;
}

#define TW_ALL_LANES 0xffffffffu

// c += a b for 16 x 16 and 16 x 8 elements of 16 bits that a warp holds: of a, a thread has pairs at
// rows lane / 4 and 8 below, columns lane % 4 * 2 and 8 behind; of b at columns lane / 4; of c the
// rows of a and the columns lane % 4 * 2 and the next. From compute capability 8.0 on.
#ifndef TW_EMULATED
template <int is_half>
TW_DEVICE void multiply_16x8x16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (is_half)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif
