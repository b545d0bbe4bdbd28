#include "core/cuda/gpu/block_counters.h"

#include <array>
#include <map>
#include <mutex>

#include "core/cuda/gpu/gpu.h"
#include "core/cuda/gpu/graph.h"

namespace tw::cuda {

namespace {

constexpr std::size_t kCounters = 1024;
std::mutex mutex;

}  // namespace

unsigned* counters_of_blocks(Gpu& gpu, std::int64_t count) {
  if (recording || count > static_cast<std::int64_t>(kCounters)) return nullptr;
  static std::map<const GpuStream*, unsigned*> of_streams;  // which live as long as the program
  const std::lock_guard lock(mutex);
  unsigned*& first = of_streams[&gpu.current_stream()];
  if (!first) {
    static const std::array<unsigned, kCounters> zeros{};
    auto* const made = static_cast<unsigned*>(gpu.pool.allocate(sizeof zeros));
    gpu.copy(made, zeros.data(), sizeof zeros);
    first = made;
  }
  return first;
}

}  // namespace tw::cuda
