// The CUDA driver and its run-time compiler (NVRTC), opened at first use: nothing of CUDA is needed
// to build, import or run the rest. Types have the layout of the vendor's headers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

using Result = int;  // 0: success
using Address = unsigned long long;
using Context = struct ContextHandle*;
using Stream = struct StreamHandle*;
using Event = struct EventHandle*;
using Module = struct ModuleHandle*;
using Function = struct FunctionHandle*;
using Graph = struct GraphHandle*;
using GraphExec = struct GraphExecHandle*;  // ready to launch
using Program = struct ProgramHandle*;

struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  Stream stream;
  void* attributes;
  unsigned attribute_count;
};

// Numbers of the vendor's enumerations.
namespace attribute {
inline constexpr int multiprocessors = 16, shared_bytes_per_block = 97, capability_major = 75,
                     capability_minor = 76, l2_bytes = 38;
inline constexpr int function_registers = 4, function_local_bytes = 3, function_shared_limit = 8;
}  // namespace attribute
namespace tensor_map {
inline constexpr int float16 = 6, bfloat16 = 9;  // types of elements
inline constexpr int rows_of_128_turned = 3, fetch_256 = 3;
}  // namespace tensor_map
inline constexpr Result kOutOfMemory = 2, kNotReady = 600;
// Of a capture: the thread may do what would be refused on the stream, such as loading a kernel.
inline constexpr int kRelaxedCapture = 2;
inline constexpr unsigned kHostIsPortable = 1, kHostIsMapped = 2, kNonBlocking = 1, kUntimed = 2;
inline constexpr int kPointerKind = 2, kPointerDevice = 9;

struct Driver {
#define TW_DRIVER(name, symbol, ...) std::add_pointer_t<__VA_ARGS__> name;
#define TW_COMPILER(name, symbol, ...)
#include "core/cuda/driver/driver.inc"
#undef TW_DRIVER
#undef TW_COMPILER
};
struct Compiler {
#define TW_DRIVER(name, symbol, ...)
#define TW_COMPILER(name, symbol, ...) std::add_pointer_t<__VA_ARGS__> name;
#include "core/cuda/driver/driver.inc"
#undef TW_DRIVER
#undef TW_COMPILER
};

// The driver, initialised. Raises RuntimeError that says what is missing and what to do.
const Driver& driver();
const Compiler& compiler();
// The same without raising: why it cannot be used, or "".
std::string driver_fault();
std::string compiler_fault();

// Raises MemoryError or RuntimeError where a call of the driver failed: `what` failed, and why.
void check(Result result, const char* what);
[[noreturn]] void fail_driver(Result result, const char* what);

}  // namespace tw::cuda
