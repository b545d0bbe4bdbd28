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

const Device* find_device(const std::string& name) {
  for (const Device* device : devices)
    if (name == device->name) return device == &cpu_device ? nullptr : device;
  fail(ErrorKind::value, "no device '", name, "'; this build has 'cpu' and 'null'");
}

std::int64_t word_of(const Device* device) {
  std::int64_t word = 0;
  while (device && devices[word] != device) ++word;
  return word;
}
const Device* device_of_word(std::int64_t word) { return word == 0 ? nullptr : devices[word]; }

void set_device(const std::string& name) {
  modes.device = find_device(name);
  modes.update_plain();
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const Device* device : devices) names.push_back(device->name);
  return names;
}

}  // namespace tw
