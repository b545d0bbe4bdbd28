// Modules of the stand-in driver are shared libraries; a launch is work on a stream.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "image.h"
#include "state.h"

using namespace emulated;

namespace {

struct Module {
  void* library;
  ModuleState* state;
};
struct Function {
  Module* module;
  void (*kernel)(const void*);
  std::size_t parameter_bytes;
  unsigned threads;
  std::string name;
  unsigned shared_limit = 48 << 10;
};

// Whether this run of a kernel is the one that is planted to fail.
bool is_planted(const std::string& name) {
  static const std::string planted = [] {
    const char* const text = std::getenv("TW_EMULATED_FAULT");
    return std::string(text ? text : "");
  }();
  if (planted.empty()) return false;
  static int runs = 0;
  const std::size_t colon = planted.find(':');
  if (planted.substr(0, colon) != name) return false;
  return ++runs == (colon == std::string::npos ? 1 : std::atoi(planted.c_str() + colon + 1));
}

}  // namespace

extern "C" {

Result cuModuleLoadData(void** out, const void* image) {
  if (std::memcmp(image, kMagic, sizeof kMagic)) return kBadImage;
  std::uint64_t size;
  std::memcpy(&size, static_cast<const char*>(image) + sizeof kMagic, sizeof size);
  char path[] = "/tmp/tilewright-emulated-XXXXXX";
  const int file = mkstemp(path);
  const char* bytes = static_cast<const char*>(image) + sizeof kMagic + sizeof size;
  const bool written = file >= 0 && write(file, bytes, size) == static_cast<ssize_t>(size);
  close(file);
  // Kernels are linked with no library: what they call of C's is the process's own.
  [[maybe_unused]] static const void* const functions = dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL);
  void* const library = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(path);
  if (!library) return kBadImage;
  auto* state = static_cast<ModuleState*>(dlsym(library, "tw_module"));
  *out = new Module{library, state};
  return state ? kSuccess : kBadImage;
}
Result cuModuleGetFunction(void** out, void* module, const char* name) {
  auto* owner = static_cast<Module*>(module);
  void* const found = dlsym(owner->library, name);
  const auto number = [&](const char* what) {
    return static_cast<const unsigned*>(dlsym(owner->library, (std::string(name) + what).c_str()));
  };
  const unsigned *const bytes = number("_bytes"), *const threads = number("_threads");
  if (!found || !bytes || !threads) return kNotFound;
  *out =
      new Function{owner, reinterpret_cast<void (*)(const void*)>(found), *bytes, *threads, name};
  return kSuccess;
}
Result cuFuncGetAttribute(int* value, int, void*) { return *value = 0, kSuccess; }
Result cuFuncSetAttribute(void* function, int what, int value) {
  if (what == 8 && value > 227 << 10) return kInvalid;
  if (what == 8) static_cast<Function*>(function)->shared_limit = static_cast<unsigned>(value);
  return kSuccess;
}
Result cuLaunchKernelEx(const LaunchConfig* config, void* function, void** parameters, void**) {
  const std::lock_guard lock(mutex);
  const Function& kernel = *static_cast<Function*>(function);
  const unsigned threads = config->block[0] * config->block[1] * config->block[2];
  const unsigned blocks_in_grid = config->grid[0] * config->grid[1] * config->grid[2];
  // A driver refuses more threads than a kernel is bound to; with fewer, what the others would do
  // is left out.
  if (threads != kernel.threads || threads > kMostThreads || blocks_in_grid == 0 ||
      config->grid[1] > 65535 || config->grid[2] > 65535 ||
      config->shared_bytes > kernel.shared_limit)
    return kInvalid;
  if (lost) return lost;
  // The driver copies parameters when it is called.
  std::vector<char> parameter(kernel.parameter_bytes);
  std::memcpy(parameter.data(), parameters[0], kernel.parameter_bytes);
  enqueue(
      config->stream,
      [&kernel, config = *config, parameter = std::move(parameter)] {
        if (is_planted(kernel.name)) return kIllegalAddress;
        return run_grid(*kernel.module->state, kernel.kernel, config, parameter.data());
      },
      Kind::kernel);
  return kSuccess;
}

}  // extern "C"
