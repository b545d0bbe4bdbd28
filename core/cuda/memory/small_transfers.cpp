#include "core/cuda/memory/small_transfers.h"

#include <cstring>

#include "core/cuda/gpu/gpu.h"
#include "core/cuda/memory/small_transfers_parameters.h"

namespace tw::cuda {

namespace {

constexpr const char* kNames[] = {"short_message", "long_message", "reply"};

}  // namespace

struct SmallTransfers::Box {
  explicit Box(SmallTransfers& transfers) : transfers(transfers), at(transfers.take_box()) {}
  ~Box() {
    const std::lock_guard lock(transfers.mutex_);
    transfers.boxes_.push_back(at);
  }
  Box(const Box&) = delete;
  Box& operator=(const Box&) = delete;
  SmallTransfers& transfers;
  char* const at;
};

void SmallTransfers::send(const GpuStream& stream, void* to, const void* from, std::size_t bytes) {
  const auto send_as = [&](auto& message, Kernel which, unsigned threads) {
    message.n = static_cast<std::int64_t>(bytes);
    message.to = to;
    std::memcpy(message.data, from, bytes);
    launch(stream, which, threads, &message);
  };
  if (bytes <= sizeof(ShortMessage::data)) {
    ShortMessage message;
    return send_as(message, short_message, kWarpThreads);
  }
  LongMessage message;
  send_as(message, long_message, kBlockThreads);
}

void SmallTransfers::fetch(GpuStream& stream, void* to, const void* from, std::size_t bytes) {
  const Box box(*this);
  const Reply parameter = {static_cast<std::int64_t>(bytes), box.at, from};
  launch(stream, reply, kBlockThreads, &parameter);
  gpu_.synchronize(stream);
  std::memcpy(to, box.at, bytes);
}

char* SmallTransfers::take_box() {
  gpu_.enter();
  {
    const std::lock_guard lock(mutex_);
    if (!boxes_.empty()) {
      char* const box = boxes_.back();
      boxes_.pop_back();
      return box;
    }
  }
  void* made = nullptr;
  check(driver().allocate_host(&made, kMostBytes, kHostIsMapped), "host memory cannot be mapped");
  return static_cast<char*>(made);
}

void SmallTransfers::launch(const GpuStream& stream, Kernel which, unsigned threads,
                            const void* parameter) {
  gpu_.enter();
  Function kernel;
  {
    const std::lock_guard lock(mutex_);
    kernel = kernels_[which];
  }
  if (!kernel) {
    kernel = gpu_.add(this, which, "small_transfers.cuh", "", kNames[which]);
    const std::lock_guard lock(mutex_);
    kernels_[which] = kernel;
  }
  const LaunchConfig config = {{1, 1, 1}, {threads, 1, 1}, 0, stream.handle, nullptr, 0};
  void* parameters[] = {const_cast<void*>(parameter)};
  check(driver().launch(&config, kernel, parameters, nullptr), "a kernel cannot be launched");
}

}  // namespace tw::cuda
