// A device is a table of functions: what the floors above need of the place where data lives and
// kernels run.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "core/base/modes.h"

namespace tw {

struct Device {
  const char* name;
  void* (*allocate)(std::size_t bytes);
  void (*release)(void* block, std::size_t bytes) noexcept;
  void (*copy)(void* to, const void* from, std::size_t bytes);
  // Runs kernel(argument), at once or in order behind earlier launches.
  void (*launch)(void (*kernel)(void* argument), void* argument);
  void (*synchronize)();  // returns when all launches are done
};

extern const Device cpu_device;
// Computes nothing: memory is real, results are unspecified. What remains is the engine's own
// overhead.
extern const Device null_device;

// Where this thread's ops launch their kernels.
inline const Device& active_device() { return modes.device ? *modes.device : cpu_device; }
// For this thread. Raises ValueError for an unknown name.
void set_device(const std::string& name);
std::vector<std::string> device_names();

}  // namespace tw
