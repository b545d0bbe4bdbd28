// Transfers of few bytes between the host and a GPU, by kernels in the order of a stream: a
// learning rate that goes there waits for nothing, a loss that comes back for its stream alone.
#pragma once
#include <array>
#include <cstddef>
#include <mutex>
#include <vector>

#include "core/cuda/driver/stream.h"
#include "core/cuda/memory/small_transfers_parameters.h"

namespace tw::cuda {

class SmallTransfers {
 public:
  static constexpr std::size_t kMostBytes = kLongBytes;

  explicit SmallTransfers(Gpu& gpu) : gpu_(gpu) {}
  // `from` may change when it returns.
  void send(const GpuStream& stream, void* to, const void* from, std::size_t bytes);
  // Returns when the bytes are there; raises what went wrong before.
  void fetch(GpuStream& stream, void* to, const void* from, std::size_t bytes);

 private:
  struct Box;
  enum Kernel { short_message, long_message, reply, kKernels };
  void launch(const GpuStream& stream, Kernel which, unsigned threads, const void* parameter);
  char* take_box();

  Gpu& gpu_;
  std::array<Function, kKernels> kernels_ = {};
  std::mutex mutex_;          // guards what follows, and kernels
  std::vector<char*> boxes_;  // free; of one reply each, in memory that GPUs write to
};

}  // namespace tw::cuda
