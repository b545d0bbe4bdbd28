#include "core/cuda/driver/driver.h"

#include <dlfcn.h>
#include <glob.h>

#include <filesystem>
#include <vector>

#include "core/base/env.h"
#include "core/base/error.h"
#include "core/cuda/driver/async_errors.h"

namespace tw::cuda {

namespace {

struct Row {
  const char* symbol;
  std::size_t place;
};
constexpr Row kDriverRows[] = {
#define TW_DRIVER(name, symbol, ...) {#symbol, offsetof(Driver, name)},
#define TW_COMPILER(name, symbol, ...)
#include "core/cuda/driver/driver.inc"
#undef TW_DRIVER
#undef TW_COMPILER
};
constexpr Row kCompilerRows[] = {
#define TW_DRIVER(name, symbol, ...)
#define TW_COMPILER(name, symbol, ...) {#symbol, offsetof(Compiler, name)},
#include "core/cuda/driver/driver.inc"
#undef TW_DRIVER
#undef TW_COMPILER
};

// Never closed: kernels may run until the process ends.
void* open(const std::string& path) { return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); }

template <class Table, std::size_t n>
std::string bind(void* library, const Row (&rows)[n], Table& table) {
  for (const Row& row : rows) {
    void* const found = dlsym(library, row.symbol);
    if (!found) return std::string("it lacks ") + row.symbol;
    *reinterpret_cast<void**>(reinterpret_cast<char*>(&table) + row.place) = found;
  }
  return "";
}

std::vector<std::string> matches(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (std::size_t i = found.gl_pathc; i-- > 0;) paths.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  return paths;
}

// Wheels lie beside this package, toolkits where they are installed.
std::vector<std::string> compiler_folders() {
  std::vector<std::string> folders;
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(compiler_folders), &self) && self.dli_fname) {
    const auto packages =
        std::filesystem::path(self.dli_fname).parent_path().parent_path() / "nvidia";
    for (const char* wheel : {"cu13/lib", "cuda_nvrtc/lib"})
      folders.push_back((packages / wheel).string());
  }
  folders.emplace_back("/usr/local/cuda/lib64");
  return folders;
}

// NVRTC of a wheel does not find its own companion, which therefore is opened first.
void* open_compiler() {
  if (const std::string named = env_text("NVRTC"); !named.empty()) return open(named);
  for (const std::string& folder : compiler_folders()) {
    for (const std::string& path : matches(folder + "/libnvrtc.so.1[2-9]*")) {
      for (const std::string& part : matches(folder + "/libnvrtc-builtins.so.1*")) open(part);
      if (void* const library = open(path)) return library;
    }
  }
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12"})
    if (void* const library = open(name)) return library;
  return nullptr;
}

constexpr char kDriverRemedy[] =
    "; a GPU needs NVIDIA's driver, which `nvidia-smi` shows where it is installed";
constexpr char kCompilerRemedy[] =
    "; `pip install nvidia-cuda-nvrtc` brings it (12.9 or newer), as does a CUDA toolkit";

// Older ones take ten seconds for what this takes less than one for.
constexpr int kOldestCompiler[] = {12, 9};

template <class Table> struct Loaded {
  Table table{};
  std::string fault;
};

const Loaded<Driver>& load_driver() {
  static const auto* const loaded = [] {
    auto* const made = new Loaded<Driver>;
    const std::string named = env_text("CUDA_DRIVER");
    void* const library = open(named.empty() ? "libcuda.so.1" : named);
    if (!library) {
      made->fault = std::string("the CUDA driver (libcuda.so.1) is not there") + kDriverRemedy;
    } else if (std::string fault = bind(library, kDriverRows, made->table); !fault.empty()) {
      made->fault = "the CUDA driver is too old: " + fault + kDriverRemedy;
    } else if (const Result result = made->table.init(0)) {
      const char* text = "unknown error";
      made->table.error_text(result, &text);
      made->fault = std::string("the CUDA driver does not start: ") + text;
    }
    return made;
  }();
  return *loaded;
}

const Loaded<Compiler>& load_compiler() {
  static const auto* const loaded = [] {
    auto* const made = new Loaded<Compiler>;
    void* const library = open_compiler();
    int version[2] = {};
    if (!library) {
      made->fault = std::string("the CUDA compiler (NVRTC) is not there") + kCompilerRemedy;
    } else if (std::string fault = bind(library, kCompilerRows, made->table); !fault.empty()) {
      made->fault = "the CUDA compiler (NVRTC) is too old: " + fault + kCompilerRemedy;
    } else if (made->table.version(&version[0], &version[1]);
               version[0] * 100 + version[1] < kOldestCompiler[0] * 100 + kOldestCompiler[1]) {
      made->fault = "the CUDA compiler (NVRTC) is version " + std::to_string(version[0]) + "." +
                    std::to_string(version[1]) + kCompilerRemedy;
    }
    return made;
  }();
  return *loaded;
}

template <class Table> const Table& usable(const Loaded<Table>& loaded) {
  if (!loaded.fault.empty()) [[unlikely]]
    fail(ErrorKind::runtime, "device 'cuda': ", loaded.fault);
  return loaded.table;
}

}  // namespace

const Driver& driver() { return usable(load_driver()); }
const Compiler& compiler() { return usable(load_compiler()); }
std::string driver_fault() { return load_driver().fault; }
std::string compiler_fault() { return load_compiler().fault; }

void fail_driver(Result result, const char* what) {
  const char *name = "unknown", *text = "unknown error";
  driver().error_name(result, &name);
  driver().error_text(result, &text);
  fail(result == kOutOfMemory ? ErrorKind::memory : ErrorKind::runtime, "device 'cuda': ", what,
       ": ", text, " (", name, ")", is_late(result) ? suspects() : std::string());
}

void check(Result result, const char* what) {
  if (result) [[unlikely]]
    fail_driver(result, what);
}

}  // namespace tw::cuda
