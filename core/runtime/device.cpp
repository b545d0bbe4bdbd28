// The list of devices and the one in use; the CPU's table.
#include "core/runtime/device.h"

#include <charconv>
#include <cstring>

#include "core/base/error.h"
#include "core/memory/pool.h"

namespace tw {

const Device cpu_device = {
    "cpu",
    KernelSet::cpu,
    true,
    [](const Device&, std::size_t bytes) { return pool_allocate(bytes); },
    [](const Device&, void* block, std::size_t bytes) noexcept { pool_release(block, bytes); },
    [](const Device&, void* to, const void* from, std::size_t bytes) {
      std::memcpy(to, from, bytes);
    },
    [](const Device&) {},
};

namespace {

// As attributes: these, then the GPUs by number.
const Device* const devices[] = {&cpu_device, &null_device};
constexpr std::int64_t kFirstGpu = 2;

int (*count_gpus)() = [] { return 0; };
DeviceFinder find_gpu = nullptr;

// -1: not the name of a GPU. "cuda" alone is the first.
int gpu_number(std::string_view name) {
  if (!name.starts_with("cuda")) return -1;
  name.remove_prefix(4);
  if (name.empty()) return 0;
  int number = -1;
  if (name[0] != ':' || name.size() == 1) return -1;
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? number : -1;
}

}  // namespace

void install_gpus(int (*count)(), DeviceFinder find) {
  count_gpus = count;
  find_gpu = find;
}

const Device* find_device(const std::string& name) {
  for (const Device* device : devices)
    if (name == device->name) return device == &cpu_device ? nullptr : device;
  if (const int number = gpu_number(name); number >= 0 && find_gpu) return &find_gpu(number);
  fail(ErrorKind::value, "no device '", name,
       "'; there are 'cpu', 'null', and 'cuda' or 'cuda:1' for GPUs");
}

bool is_device_name(const std::string& name) {
  for (const Device* device : devices)
    if (name == device->name) return true;
  return gpu_number(name) >= 0;
}

std::int64_t attribute_of(const Device* device) {
  if (!device) return 0;
  for (std::int64_t attribute = 1; attribute < kFirstGpu; ++attribute)
    if (devices[attribute] == device) return attribute;
  std::int64_t attribute = kFirstGpu;
  while (&find_gpu(static_cast<int>(attribute - kFirstGpu)) != device) ++attribute;
  return attribute;
}
const Device* device_of_attribute(std::int64_t attribute) {
  if (attribute == 0) return nullptr;
  return attribute < kFirstGpu ? devices[attribute]
                               : &find_gpu(static_cast<int>(attribute - kFirstGpu));
}

void set_device(const std::string& name) {
  modes.device = find_device(name);
  modes.update_plain();
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const Device* device : devices) names.push_back(device->name);
  for (int gpu = 0; gpu < count_gpus(); ++gpu) names.push_back("cuda:" + std::to_string(gpu));
  return names;
}

}  // namespace tw
