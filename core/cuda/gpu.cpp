#include "core/cuda/gpu.h"

#include <algorithm>
#include <memory>

#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/fault.h"
#include "core/cuda/compiler.h"
#include "core/runtime/launch.h"

namespace tw::cuda {

// ---- memory ----

namespace {

constexpr std::size_t kSmallest = 512, kLargestSmall = 1 << 20, kChunk = 32 << 20;

}  // namespace

// Small blocks have four sizes for each power of two; large ones whole multiples of 2 MiB.
std::size_t GpuPool::rounded(std::size_t bytes) {
  if (bytes <= kSmallest) return kSmallest;
  if (bytes > kLargestSmall) return (bytes + (2 << 20) - 1) & ~std::size_t{(2 << 20) - 1};
  const std::size_t step = std::max(std::bit_floor(bytes - 1) / 4, kSmallest);
  return (bytes + step - 1) / step * step;
}

void* GpuPool::take_from_driver(std::size_t bytes) {
  Address block = 0;
  ++memory_.driver_calls;
  Result result = fault_point() ? kOutOfMemory : driver().allocate(&block, bytes);
  if (result == kOutOfMemory) {
    trim();
    result = driver().allocate(&block, bytes);
  }
  if (result == kOutOfMemory)
    fail(ErrorKind::memory, "device 'cuda': out of memory: ", bytes, " bytes asked for, ",
         memory_.live, " in use by tensors, ", memory_.reserved, " reserved");
  check(result, "memory cannot be allocated");
  memory_.reserved += bytes;
  return reinterpret_cast<void*>(block);
}

void* GpuPool::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::size_t size = rounded(bytes);
  std::vector<char*>& free = free_[size];
  void* block;
  if (!free.empty()) {
    block = free.back();
    free.pop_back();
  } else if (size > kLargestSmall) {
    block = take_from_driver(size);
  } else {
    if (static_cast<std::size_t>(cut_end_ - cut_) < size) {
      cut_ = static_cast<char*>(take_from_driver(kChunk));
      cut_end_ = cut_ + kChunk;
    }
    block = cut_;
    cut_ += size;
  }
  ++memory_.allocations;
  memory_.live += size;
  memory_.peak = std::max(memory_.peak, memory_.live);
  return block;
}

void GpuPool::release(void* block, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const std::size_t size = rounded(bytes);
  memory_.live -= size;
  free_[size].push_back(static_cast<char*>(block));
}

// The driver waits for work that uses a block before it takes it back.
void GpuPool::trim() {
  for (auto& [size, blocks] : free_) {
    if (size <= kLargestSmall) continue;
    for (char* block : blocks) {
      driver().release(reinterpret_cast<Address>(block));
      memory_.reserved -= size;
    }
    blocks.clear();
  }
}

GpuMemory GpuPool::memory() const {
  const std::lock_guard lock(mutex_);
  return memory_;
}

// ---- GPUs ----

namespace {

constexpr int kOldestCapability = 80;

std::vector<void (*)(const Fault&)>& fault_reports() {
  static auto* const reports = new std::vector<void (*)(const Fault&)>;
  return *reports;
}

Gpu& gpu_of(const Device& device) { return const_cast<Gpu&>(static_cast<const Gpu&>(device)); }

}  // namespace

std::int32_t register_fault(void (*raise)(const Fault& fault)) {
  fault_reports().push_back(raise);
  return static_cast<std::int32_t>(fault_reports().size());
}

int Gpu::count() {
  if (!driver_fault().empty()) return 0;
  int count = 0;
  return driver().device_count(&count) ? 0 : count;
}

Gpu& Gpu::at(int number) {
  static std::mutex mutex;
  static auto* const gpus = new std::map<int, std::unique_ptr<Gpu>>;  // outlives other objects
  const std::lock_guard lock(mutex);
  std::unique_ptr<Gpu>& gpu = (*gpus)[number];
  if (!gpu) {
    driver();  // raises where there is none
    if (number >= count())
      fail(ErrorKind::value, "no device 'cuda:", number, "'; this machine has ", count(),
           " GPUs, counted from 0");
    gpu.reset(new Gpu(number));
  }
  return *gpu;
}

Gpu::Gpu(int number)
    : Device{nullptr,
             KernelSet::cuda,
             true,
             [](const Device& self, std::size_t bytes) {
               gpu_of(self).enter();
               return gpu_of(self).pool.allocate(bytes);
             },
             [](const Device& self, void* block, std::size_t bytes) noexcept {
               gpu_of(self).pool.release(block, bytes);
             },
             [](const Device& self, void* to, const void* from, std::size_t bytes) {
               gpu_of(self).copy(to, from, bytes);
             },
             [](const Device& self) { gpu_of(self).synchronize(); }},
      name_("cuda:" + std::to_string(number)),
      waits_(env_integer("CUDA_SYNC", 0) != 0) {
  const Driver& cuda = driver();
  name = name_.c_str();
  int handle = 0;
  check(cuda.device_get(&handle, number), "the GPU cannot be opened");
  char text[256] = {};
  check(cuda.device_name(text, sizeof text, handle), "the GPU cannot be asked for its name");
  facts.name = text;
  const auto ask = [&](int what) {
    int value = 0;
    check(cuda.device_attribute(&value, what, handle), "the GPU cannot be asked for its limits");
    return value;
  };
  facts.capability = ask(attribute::capability_major) * 10 + ask(attribute::capability_minor);
  facts.multiprocessors = ask(attribute::multiprocessors);
  facts.shared_bytes = ask(attribute::shared_bytes_per_block);
  check(cuda.device_memory(&facts.memory_bytes, handle), "the GPU cannot be asked for its memory");
  if (facts.capability < kOldestCapability)
    fail(ErrorKind::runtime, "device '", name_, "' (", facts.name, ") has compute capability ",
         facts.capability / 10, ".", facts.capability % 10, "; the oldest that kernels are for is ",
         kOldestCapability / 10, ".", kOldestCapability % 10);
  compiler();  // raises where there is none
  check(cuda.retain_context(&context_, handle), "the GPU cannot be used");
  enter();
  void* host = nullptr;
  check(cuda.allocate_host(&host, sizeof(Fault), kHostIsMapped), "no memory for faults");
  fault_ = new (host) Fault{};
  check(cuda.create_stream(&stream_, kNonBlocking, 0), "no stream can be made");
}

void Gpu::enter() const { check(driver().set_context(context_), "the GPU cannot be used"); }

Function Gpu::find(const void* of, std::uint64_t key) const {
  const std::lock_guard lock(mutex_);
  const auto found = functions_.find({of, key});
  return found == functions_.end() ? nullptr : found->second;
}

Function Gpu::add(const void* of, std::uint64_t key, const char* file, const std::string& settings,
                  const char* kernel) {
  const std::string cubin = compiled(file, settings, facts.capability);
  enter();
  Module module = nullptr;
  check(driver().load_module(&module, cubin.data()), "a kernel cannot be loaded");
  Function function = nullptr;
  check(driver().find_function(&function, module, kernel), "a kernel is not in its module");
  const std::lock_guard lock(mutex_);
  sources_.push_back({file, kernel, settings});
  return functions_[{of, key}] = function;
}

std::vector<Gpu::Source> Gpu::sources() const {
  const std::lock_guard lock(mutex_);
  return sources_;
}

void Gpu::launch(Function kernel, const Grid& grid, const void* parameter) {
  enter();
  constexpr unsigned kPlainShared = 48 << 10;  // what a block may have without being asked
  if (grid.shared_bytes > kPlainShared)
    check(driver().set_function_attribute(kernel, attribute::function_shared_limit,
                                          static_cast<int>(grid.shared_bytes)),
          "a kernel does not get its shared memory");
  const LaunchConfig config = {{grid.blocks[0], grid.blocks[1], grid.blocks[2]},
                               {grid.threads, 1, 1},
                               grid.shared_bytes,
                               stream_,
                               nullptr,
                               0};
  void* parameters[] = {const_cast<void*>(parameter)};
  check(driver().launch(&config, kernel, parameters, nullptr), "a kernel cannot be launched");
  ++launches_;
  if (waits_) synchronize();
}

void Gpu::synchronize() {
  const Unlocked unlocked({0, 1e9});
  enter();
  check(driver().wait_for_stream(stream_), "a kernel failed");
  if (fault_->code) [[unlikely]] {
    const Fault fault = *fault_;
    *fault_ = {};
    fault_reports()[static_cast<std::size_t>(fault.code) - 1](fault);
  }
}

void Gpu::copy(void* to, const void* from, std::size_t bytes) {
  enter();
  if (bytes)
    check(driver().copy(reinterpret_cast<Address>(to), reinterpret_cast<Address>(from), bytes,
                        stream_),
          "memory cannot be copied");
  synchronize();
}

}  // namespace tw::cuda
