#include "core/base/env.h"

#include <cstdlib>
#include <cstring>

#include "core/base/error.h"

namespace tw {

const std::vector<EnvVariable>& env_variables() {
  static const std::vector<EnvVariable> kVariables = {
      {"THREADS", "number of threads (default: processors this process may use)"},
      {"PIN_THREADS", "1: binds each worker thread to one processor (default: they roam)"},
      {"ISA", "instruction set of the kernels: scalar, avx2, avx512 or neon (default: best)"},
      {"DATA", "folder of data sets, such as the four MNIST files"},
      {"SPILL_DIR", "folder for the files of spilled blocks (default: for temporary files)"},
      {"NATIVE_RUNTIME",
       "0: scheduler in pure Python, pools compare their books with its (debugging)"},
      {"CACHE_DIR",
       "folder for downloads and the table of `tilewright tune` (default: the user's)"},
      {"TUNE", "0: ignores the table that `tilewright tune` has written"},
      {"OFF", "optimizations that are off, by name, separated by commas"},
      {"MATMUL", "forces one rung of the matmul ladder by name"},
      {"CUDA_DRIVER", "path of the CUDA driver's library (default: libcuda.so.1)"},
      {"NVRTC", "path of the CUDA compiler's library (default: a wheel's or a toolkit's)"},
      {"CUDA_SYNC", "1: waits for every kernel, so that errors name the op that failed"},
      {"BLAS_COUNT",
       "file in which the BLAS library counts calls (tilewright blas --count sets it)"},
  };
  return kVariables;
}

std::string env_text(const char* name) {
  bool listed = false;
  for (const EnvVariable& variable : env_variables()) listed |= !std::strcmp(variable.name, name);
  if (!listed) fail(ErrorKind::runtime, "environment variable ", name, " is not in the list");
  const char* value = std::getenv(("TILEWRIGHT_" + std::string(name)).c_str());
  return value ? value : "";
}

std::int64_t env_integer(const char* name, std::int64_t fallback) {
  const std::string text = env_text(name);
  if (text.empty()) return fallback;
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (*end) fail(ErrorKind::value, "TILEWRIGHT_", name, ": not a whole number: '", text, "'");
  return value;
}

std::string foreign_env_text(const char* name) {
  const char* const text = std::getenv(name);
  return text ? text : "";
}

}  // namespace tw
