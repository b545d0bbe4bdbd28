#include "core/cuda/driver/nvtx.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/env.h"
#include "core/memory/events.h"
#include "core/runtime/warning.h"

namespace tw::cuda::nvtx {

namespace {

using Slot = void (*)();  // a function of the tool, of any type

// Functions by module and number, in the order of the headers; number 0 is none. The tool fills in
// those that it has.
constexpr int kCore = 1, kModules = 6;
constexpr unsigned kFunctions[kModules + 1] = {0, 16, 9, 15, 7, 16, 7};
constexpr int kMarkA = 2, kRangePushA = 9, kRangePop = 11;
// What the headers' functions return where nobody listens.
constexpr int kNoTool = -2;

constexpr unsigned kMost = 16;
Slot slots[kModules + 1][kMost];
Slot* tables[kModules + 1][kMost + 1];

int table_of(int module, Slot*** table, unsigned* size) {
  if (module < 1 || module > kModules) return 0;
  if (size) *size = kFunctions[module];
  if (table) *table = tables[module];
  return 1;
}

struct Callbacks {
  std::size_t bytes = sizeof(Callbacks);
  int (*table_of)(int module, Slot*** table, unsigned* size) = nvtx::table_of;
};
struct Version {
  std::size_t bytes = sizeof(Version);
  std::uint32_t version = 3, reserved = 0;
  void (*tell_tool)(std::uint32_t) = [](std::uint32_t) {};
};

const void* exported(std::uint32_t which) {
  static const Callbacks callbacks;
  static const Version version;
  return which == 1 ? static_cast<const void*>(&callbacks) : which == 3 ? &version : nullptr;
}

bool attach() {
  const std::string path = foreign_env_text("NVTX_INJECTION64_PATH");
  if (path.empty()) return false;
  for (int module = 1; module <= kModules; ++module)
    for (unsigned i = 1; i < kFunctions[module]; ++i) tables[module][i] = &slots[module][i];
  void* const library = dlopen(path.c_str(), RTLD_LAZY);
  using Initialize = int (*)(const void* (*)(std::uint32_t));
  const auto initialize =
      library ? reinterpret_cast<Initialize>(dlsym(library, "InitializeInjectionNvtx2")) : nullptr;
  if (initialize && initialize(exported)) return true;
  warn_once("nvtx", "nvtx: the tool that NVTX_INJECTION64_PATH names does not start: " + path +
                        "; ranges are not shown");
  return false;
}

// A tool's function of the core module; null where nobody listens.
template <class Function> Function tool(int number) {
  return is_attached() ? reinterpret_cast<Function>(slots[kCore][number]) : nullptr;
}

}  // namespace

bool is_attached() {
  static const bool attached = attach();
  return attached;
}

int push(const char* name) {
  const auto call = tool<int (*)(const char*)>(kRangePushA);
  return call ? call(name) : kNoTool;
}

int pop() {
  const auto call = tool<int (*)()>(kRangePop);
  return call ? call() : kNoTool;
}

void mark(const char* name) {
  if (const auto call = tool<void (*)(const char*)>(kMarkA)) call(name);
}

bool set_emitting(bool emits) {
  begin_op_range = [](const char* op) { push(op); };
  end_op_range = [] { pop(); };
  return set_op_ranges(emits && is_attached());
}

}  // namespace tw::cuda::nvtx
