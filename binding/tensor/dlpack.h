// The C structs of DLPack 1.0 (https://dmlc.github.io/dlpack/latest/c_api.html), declared as far as
// the engine uses them.
#pragma once
#include <cstdint>

namespace tw::dlpack {

struct Version {
  std::uint32_t major, minor;
};
struct Device {
  std::int32_t type;  // 1: CPU
  std::int32_t id;
};
inline constexpr std::int32_t kCpu = 1;
struct DataType {
  std::uint8_t code;  // see Code
  std::uint8_t bits;
  std::uint16_t lanes;
};
enum Code : std::uint8_t {
  code_int = 0,
  code_uint = 1,
  code_float = 2,
  code_bfloat = 4,
  code_complex = 5,
  code_bool = 6
};

struct TensorView {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null for row-major
  std::uint64_t byte_offset;
};
struct Managed {  // capsule "dltensor"
  TensorView tensor;
  void* manager;
  void (*deleter)(Managed*);
};
struct ManagedVersioned {  // capsule "dltensor_versioned"
  Version version;
  void* manager;
  void (*deleter)(ManagedVersioned*);
  std::uint64_t flags;
  TensorView tensor;
};
inline constexpr std::uint64_t kReadOnly = 1, kCopied = 2;

}  // namespace tw::dlpack
