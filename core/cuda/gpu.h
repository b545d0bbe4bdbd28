// One GPU: its context, stream, memory and compiled kernels. Kernels of core/cuda run on the GPU
// that is this thread's device.
#pragma once
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/cuda/driver.h"
#include "core/runtime/device.h"

namespace tw::cuda {

struct GpuFacts {
  std::string name;
  int capability = 0;  // 90: 9.0
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  int shared_bytes = 0;  // a block's largest share
};

struct GpuMemory {
  std::size_t live = 0, reserved = 0, peak = 0;  // bytes
  std::uint64_t allocations = 0, driver_calls = 0;
};

// Blocks of memory by size, over larger ones of the driver. What is given back serves the next
// request of its size: work is in the order of one stream, so that nothing waits.
class GpuPool {
 public:
  void* allocate(std::size_t bytes);  // raises MemoryError
  void release(void* block, std::size_t bytes) noexcept;
  // Gives unused memory back to the driver.
  void trim();
  GpuMemory memory() const;

 private:
  void* take_from_driver(std::size_t bytes);
  static std::size_t rounded(std::size_t bytes);

  mutable std::mutex mutex_;
  GpuMemory memory_;
  std::unordered_map<std::size_t, std::vector<char*>> free_;  // by size
  char *cut_ = nullptr, *cut_end_ = nullptr;                  // of small blocks' current chunk
};

// What a kernel found wrong in its data, in host memory that GPUs write to: told when the program
// next waits.
struct Fault {
  std::int32_t code;  // 0: nothing is wrong; else a number from register_fault
  std::int32_t user;
  std::int64_t value, place, limit, axis;
};
// `raise` raises what the fault means.
std::int32_t register_fault(void (*raise)(const Fault& fault));

struct Grid {
  unsigned blocks[3] = {1, 1, 1};
  unsigned threads = 1;
  unsigned shared_bytes = 0;  // dynamic
};

class Gpu : public Device {
 public:
  // 0 without a driver.
  static int count();
  // Made on first use. Raises ValueError for a number that no GPU has, RuntimeError where it cannot
  // be used.
  static Gpu& at(int number);
  // The one that is this thread's device.
  static Gpu& current() { return *static_cast<Gpu*>(const_cast<Device*>(modes.device)); }

  // A kernel of a file of core/cuda/kernels under settings, found again by a key: `of` the place of
  // the request in the program, and a number.
  Function find(const void* of, std::uint64_t key) const;
  Function add(const void* of, std::uint64_t key, const char* file, const std::string& settings,
               const char* kernel);
  // Every kernel that was asked for, in order.
  struct Source {
    std::string file, kernel, settings;
  };
  std::vector<Source> sources() const;
  // The kernel takes the address of its one parameter.
  void launch(Function kernel, const Grid& grid, const void* parameter);

  void synchronize();
  void copy(void* to, const void* from, std::size_t bytes);

  GpuFacts facts;
  GpuPool pool;
  Fault* fault() const { return fault_; }
  std::uint64_t launches() const { return launches_; }
  Stream stream() const { return stream_; }

 private:
  explicit Gpu(int number);
  void enter() const;

  const std::string name_;
  const bool waits_;  // for every launch
  Context context_ = nullptr;
  Stream stream_ = nullptr;
  Fault* fault_ = nullptr;
  std::uint64_t launches_ = 0;
  mutable std::mutex mutex_;
  std::map<std::pair<const void*, std::uint64_t>, Function> functions_;
  std::vector<Source> sources_;
};

// The same in one: a kernel that is compiled on first use.
template <class MakeSettings> Function kernel_of(const void* of, std::uint64_t key,
                                                 const char* file, const char* kernel,
                                                 MakeSettings make_settings) {
  Gpu& gpu = Gpu::current();
  if (const Function known = gpu.find(of, key)) [[likely]]
    return known;
  return gpu.add(of, key, file, make_settings(), kernel);
}

}  // namespace tw::cuda
