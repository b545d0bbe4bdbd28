// A device is a table of functions: what the floors above need of the place where data lives and
// kernels run.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/modes.h"
#include "core/runtime/op.h"

namespace tw {

class BlockSource;
struct Block;

// Bytes on a device or on the CPU, and the block that they are part of, null for memory of others.
struct Place {
  void* data;
  Block* block;
  const Device* on_device;  // null: the CPU
};

// Launches that were recorded, to run again as one.
class LaunchGraph {
 public:
  virtual ~LaunchGraph() = default;
  virtual void launch() = 0;  // in the order of this thread's launches
  virtual std::size_t launches() const = 0;
};

struct Device {
  const char* name;
  KernelSet kernels;
  bool computes;  // else launches are accepted and dropped
  // Of devices that are no block source.
  void* (*allocate)(const Device& self, std::size_t bytes);
  void (*release)(const Device& self, void* block, std::size_t bytes) noexcept;
  // To or from the CPU, or within the device; done when it returns, after all launches before it.
  void (*copy)(const Device& self, void* to, const void* from, std::size_t bytes);
  void (*synchronize)(const Device& self);  // returns when all launches are done
  BlockSource* source = nullptr;            // of its memory, where it looks after each use
  // A copy beside other work, where the device can do that: as copy(), and with `waits` false also
  // before it is done. Memory for what it fills: on the device, and on the host.
  void (*move)(const Device& self, const Place& to, const Place& from, std::size_t bytes,
               bool waits) = nullptr;
  BlockSource *arrivals = nullptr, *pinned = nullptr;
  // What `run` launches on this thread, without running it. Null where launches are cheap; else the
  // one below is there too, which copies within the device in the order of launches.
  std::unique_ptr<LaunchGraph> (*record)(const Device& self,
                                         const std::function<void()>& run) = nullptr;
  void (*copy_within)(const Device& self, void* to, const void* from, std::size_t bytes) = nullptr;
  bool fails_late = false;  // launches; their errors name the op and the line that asked for it
};

extern const Device cpu_device;
// Computes nothing: memory is real, results are unspecified. What remains is the engine's own
// overhead.
extern const Device null_device;

// Where this thread makes new tensors. While an op runs, that is where its operands are.
inline const Device& active_device() { return modes.device ? *modes.device : cpu_device; }
inline const char* name_of_device(const Device* device) {
  return device ? device->name : cpu_device.name;
}
inline KernelSet active_kernel_set() {
  return modes.device ? modes.device->kernels : KernelSet::cpu;
}
// For this thread. Raises as find_device does.
void set_device(const std::string& name);
// Null for the CPU. Raises ValueError for an unknown name, and RuntimeError where a GPU is asked
// for and cannot be used, with what is missing.
const Device* find_device(const std::string& name);
// How the GPUs are found: "cuda" or "cuda:1" to a device; installed by their floor.
using DeviceFinder = const Device& (*)(int number);
void install_gpus(int (*count)(), DeviceFinder find);

// Devices as attributes of calls.
std::int64_t attribute_of(const Device* device);
const Device* device_of_attribute(std::int64_t attribute);

// This thread's device for a scope; null: the CPU.
class DeviceGuard {
 public:
  explicit DeviceGuard(const Device* device) : before_(modes.device) { change(device); }
  ~DeviceGuard() { change(before_); }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  static void change(const Device* device) {
    modes.device = device;
    modes.update_plain();
  }
  const Device* const before_;
};
// Those that are there.
std::vector<std::string> device_names();
// Whether a name is that of a device, there or not; opens nothing.
bool is_device_name(const std::string& name);

}  // namespace tw
