// One GPU: its context, streams, memory and compiled kernels. Kernels of core/cuda run on the GPU
// that is this thread's device, and on its stream there.
#pragma once
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/cuda/memory/blocks.h"
#include "core/cuda/memory/copier.h"
#include "core/cuda/driver/driver.h"
#include "core/cuda/driver/launch_limits.h"
#include "core/cuda/driver/stream.h"
#include "core/cuda/prelude/parameters.h"
#include "core/runtime/device.h"

namespace tw::cuda {

struct GpuFacts {
  std::string name;
  int capability = 0;  // 90: 9.0
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  int shared_bytes = 0;  // a block's largest share
};

// Memory of kernels between their launches: what is given back serves later work of the stream.
class GpuPool {
 public:
  explicit GpuPool(GpuBlocks& blocks) : blocks_(blocks) {}
  void* allocate(std::size_t bytes);  // raises MemoryError
  void release(void* memory, std::size_t bytes) noexcept;

 private:
  GpuBlocks& blocks_;
  std::mutex mutex_;
  std::unordered_map<void*, Block*> held_;
};

// What a kernel found wrong is told when the program next waits: `raise` raises what the fault
// means.
std::int32_t register_fault(void (*raise)(const Fault& fault));

struct Grid {
  unsigned blocks[3] = {1, 1, 1};
  unsigned threads = kBlockThreads;  // as the kernel's TW_KERNEL says
  unsigned shared_bytes = 0;         // dynamic
};

class Gpu : public Device {
 public:
  // 0 without a driver.
  static int count();
  // Made on first use. Raises ValueError for a number that no GPU has, RuntimeError where it cannot
  // be used.
  static Gpu& at(int number);
  // Those that were made.
  static std::vector<Gpu*> all();
  // Waits for what a task has in flight on each of them.
  static void finish_task(std::uint64_t task);
  // The one that is this thread's device.
  static Gpu& current() { return *static_cast<Gpu*>(const_cast<Device*>(modes.device)); }

  // A kernel of a .cuh file under settings, found again by a key: `of` the place of
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
  void launch(GraphExec graph);

  // Returns when all its streams are done; raises what went wrong in them.
  void synchronize();
  // The same, but what kernels found wrong in data stays to be told.
  void wait_for_all();
  // The first for one of the streams.
  void synchronize(GpuStream& stream);
  void copy(void* to, const void* from, std::size_t bytes);
  // Does not wait.
  void copy_on(const GpuStream& stream, void* to, const void* from, std::size_t bytes);

  // This thread's stream.
  GpuStream& current_stream() const {
    GpuStream* const chosen = chosen_streams.by_gpu[static_cast<std::size_t>(number)];
    return chosen ? *chosen : *compute;
  }
  // Null: the GPU's own. Returns the one before, null for the GPU's own.
  GpuStream* choose_stream(GpuStream* stream);
  // This thread's choices for all GPUs; null where there are none.
  static std::shared_ptr<const void> take_streams();
  static void put_streams(const void* streams);
  // One more for users; of those there are few, and then the same ones again. Lower priorities go
  // first.
  GpuStream& add_stream(int priority);
  GpuStream& stream_by_number(int number) { return *streams_[static_cast<std::size_t>(number)]; }
  template <class Visit> void each_stream(Visit visit) const {
    const int count = stream_count_;
    for (int i = 0; i < count; ++i) visit(*streams_[static_cast<std::size_t>(i)]);
  }
  // The pool's block that has the memory; null for memory of others.
  GpuBlock* block_of(Block* block) const;
  // Makes this GPU's context the thread's.
  void enter() const;
  // The one that this thread entered last; null before.
  static const Gpu* entered();
  // Of a kernel, as its file calls it.
  std::string name_of(Function kernel) const;
  Event take_event();
  void give_event(Event event) noexcept;

  const int number;
  GpuFacts facts;
  // Of most work; of copies from the host, and to it.
  GpuStream *compute = nullptr, *upload = nullptr, *download = nullptr;
  GpuBlocks blocks;
  GpuPool pool;
  Copier copier;
  LaunchControl launches;
  // For a launch that this thread makes next.
  Fault* fault() const;
  Stream stream() const { return current_stream().handle; }

 private:
  struct Made;
  explicit Gpu(int number);
  template <class Start> void run_launch(Function kernel, Start&& start);
  static std::uint64_t wait_for(GpuStream& stream);
  GpuStream& new_stream(int priority);
  [[gnu::cold]] void tell_fault();

  const std::string name_;
  Arrivals arrivals_;
  const bool waits_;  // for every launch
  Context context_ = nullptr;
  static constexpr int kMostGpus = 64;
  struct ChosenStreams {
    std::array<GpuStream*, kMostGpus> by_gpu = {};  // null: the GPU's own
    int count = 0;                                  // of those that are not
  };
  static thread_local ChosenStreams chosen_streams;
  // They stay, and are read without a lock.
  std::array<std::unique_ptr<GpuStream>, kMostStreams> streams_;
  std::atomic<int> stream_count_ = 0;
  std::size_t next_shared_ = 0;  // of streams that are handed out again
  std::vector<Event> events_;    // unused
  Fault* fault_ = nullptr;
  mutable std::mutex mutex_;
  mutable std::mutex names_mutex_;  // never held while the driver is called
  std::unordered_map<Function, const char*> names_;
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
