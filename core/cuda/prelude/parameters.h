// What lowerings and kernels both know of a launch: types of fixed width, and structs that the
// parameters of several families are made of. Each family's own are in a header of this kind beside
// its sources, *_parameters.h. The host includes these headers, and so do the texts of kernels,
// for NVRTC and for the emulator: they use nothing of the standard library.
#pragma once
#ifdef __CUDACC__  // NVRTC has no headers
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
using size_t = unsigned long;
#else
#include <cstddef>
#include <cstdint>
#endif

// What tensor cores multiply, in numbers that the preprocessor compares.
#define TW_KIND_BFLOAT16 0
#define TW_KIND_HALF 1
#define TW_KIND_TF32 2  // float, rounded

namespace tw::cuda {

// Threads of a block, of most kernels.
constexpr int kBlockThreads = 256;
// That exchange values, and that share a row of 32 elements or more.
constexpr int kWarpThreads = 32;

// Operands of several axes: an element's place follows from its number in row-major order.
constexpr int kMaxAxes = 8;
struct Extents {
  int32_t rank = 0;
  int64_t extent[kMaxAxes];
};
struct Strides {
  int64_t stride[kMaxAxes];
};

// What a kernel found wrong in its data, in host memory that GPUs write to.
struct Fault {
  int32_t code;  // 0: nothing is wrong; else a number from register_fault
  int32_t user;
  int64_t value, place, limit, axis;
};

// A tensor as the copy engine of 9.0 knows it, made by the driver (cuTensorMapEncodeTiled). The
// vendor's alignment differs by version; this one serves each.
struct alignas(128) TensorMap {
  uint64_t bits[16];
};

}  // namespace tw::cuda
