// The list of devices and the one in use; the CPU's table.
#include "core/runtime/device.h"

#include <cstring>

#include "core/base/error.h"
#include "core/memory/pool.h"

namespace tw {

const Device cpu_device = {
    "cpu",
    pool_allocate,
    pool_release,
    [](void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); },
    [](void (*kernel)(void*), void* argument) { kernel(argument); },
    [] {},
};

namespace {

const Device* const devices[] = {&cpu_device, &null_device};

}  // namespace

void set_device(const std::string& name) {
  for (const Device* device : devices) {
    if (name != device->name) continue;
    modes.device = device == &cpu_device ? nullptr : device;
    return modes.update_plain();
  }
  fail(ErrorKind::value, "no device '", name, "'; this build has: cpu, null");
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const Device* device : devices) names.push_back(device->name);
  return names;
}

}  // namespace tw
