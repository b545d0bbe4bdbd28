// What every kernel stands on: names for the types of elements, and conversions between them. There
// are no headers of CUDA's: a kernel compiles in milliseconds. The emulator (core/cuda/emulator) brings
// its own meaning of what is marked TW_EMULATED.
#include "core/cuda/prelude/parameters.h"
using namespace tw::cuda;

#ifndef TW_EMULATED
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
template <class Part> struct alignas(2 * sizeof(Part)) Complex {
  Part re, im;
  Complex() = default;
  TW_DEVICE Complex(Part re, Part im = Part(0)) : re(re), im(im) {}
};
using complex64 = Complex<float>;
using complex128 = Complex<double>;
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
template <class Part, class From> struct Convert<Complex<Part>, From> {
  static TW_DEVICE Complex<Part> from(From x) { return static_cast<Part>(x); }
};
template <class Part> struct Convert<Complex<Part>, half> {
  static TW_DEVICE Complex<Part> from(half x) { return static_cast<Part>(to_float(x)); }
};
template <class Part> struct Convert<Complex<Part>, bfloat16> {
  static TW_DEVICE Complex<Part> from(bfloat16 x) { return static_cast<Part>(to_float(x)); }
};
template <class To, class From> struct Convert<Complex<To>, Complex<From>> {
  static TW_DEVICE Complex<To> from(Complex<From> x) { return {To(x.re), To(x.im)}; }
};
template <> struct Convert<bytes16, bytes16> {
  static TW_DEVICE bytes16 from(bytes16 x) { return x; }
};
template <class To, class From> TW_DEVICE To convert(From x) { return Convert<To, From>::from(x); }
template <class From> TW_DEVICE bool is_true(From x) { return x != 0; }
TW_DEVICE bool is_true(half x) { return (x.bits & 0x7fff) != 0; }
TW_DEVICE bool is_true(bfloat16 x) { return (x.bits & 0x7fff) != 0; }
template <class Part> TW_DEVICE bool is_true(Complex<Part> x) { return x.re != 0 || x.im != 0; }

// Arithmetic of complex numbers.
#define TW_COMPLEX template <class Part> TW_DEVICE Complex<Part>
TW_COMPLEX operator+(Complex<Part> a, Complex<Part> b) { return {a.re + b.re, a.im + b.im}; }
TW_COMPLEX operator-(Complex<Part> a, Complex<Part> b) { return {a.re - b.re, a.im - b.im}; }
TW_COMPLEX operator-(Complex<Part> a) { return {-a.re, -a.im}; }
TW_COMPLEX& operator+=(Complex<Part>& a, Complex<Part> b) { return a = a + b; }
// In double, where the products of floats are exact and nothing of theirs overflows.
TW_COMPLEX operator*(Complex<Part> a, Complex<Part> b) {
  const double ar = a.re, ai = a.im, br = b.re, bi = b.im;
  return {Part(ar * br - ai * bi), Part(ar * bi + ai * br)};
}
// By the smaller of b's parts over the larger (R. Smith, 1962): no square overflows.
TW_COMPLEX operator/(Complex<Part> a, Complex<Part> b) {
  if (b.re == 0 && b.im == 0) return {a.re / b.re, a.im / b.re};
  const double ar = a.re, ai = a.im, br = b.re, bi = b.im;
  if (::fabs(br) >= ::fabs(bi)) {
    const double ratio = bi / br, size = br + bi * ratio;
    return {Part((ar + ai * ratio) / size), Part((ai - ar * ratio) / size)};
  }
  const double ratio = br / bi, size = br * ratio + bi;
  return {Part((ar * ratio + ai) / size), Part((ai * ratio - ar) / size)};
}
#undef TW_COMPLEX
// In the type of the sums: complex numbers multiply without the double of their operator.
template <class V> TW_DEVICE void add_product(V& sum, V a, V b) { sum += a * b; }
template <class Part>
TW_DEVICE void add_product(Complex<Part>& sum, Complex<Part> a, Complex<Part> b) {
  sum.re += a.re * b.re;
  sum.im += a.re * b.im;
  sum.re -= a.im * b.im;
  sum.im += a.im * b.re;
}
template <class Part> TW_DEVICE bool operator==(Complex<Part> a, Complex<Part> b) {
  return a.re == b.re && a.im == b.im;
}
template <class Part> TW_DEVICE bool operator!=(Complex<Part> a, Complex<Part> b) {
  return !(a == b);
}

TW_DEVICE int64_t place(const Extents& e, const Strides& s, int64_t element) {
  int64_t at = 0;
  for (int axis = e.rank - 1; axis > 0; --axis) {
    const int64_t rest = element / e.extent[axis];
    at += (element - rest * e.extent[axis]) * s.stride[axis];
    element = rest;
  }
  return at + element * s.stride[0];
}

// Tells what a kernel found wrong; the first thread to say so is kept.
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
