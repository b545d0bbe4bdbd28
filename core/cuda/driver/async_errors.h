// Kernels fail after the call that launched them, and a later call of the driver tells so. Each
// stream remembers its latest launches, so that the error can say which may have been at fault.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "core/cuda/driver/driver.h"

namespace tw::cuda {

class Gpu;

// A stream's latest launches. Written by one launch after another, under the lock that counts them;
// read without a lock when one has failed, because that may show under any lock.
class LaunchLog {
 public:
  // After the launch; `kernel` null for a graph. The op and its line are the thread's.
  void add(Function kernel, bool reports);
  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  // The first so many launches are done and nothing was wrong.
  void end_well(std::uint64_t launches);
  std::uint64_t ended_well() const { return well_.load(std::memory_order_relaxed); }
  // The same of what kernels find wrong in data.
  void check(std::uint64_t launches) { checked_.store(launches, std::memory_order_relaxed); }
  std::uint64_t checked() const { return checked_.load(std::memory_order_relaxed); }

  // Those from number `first` on that are remembered, oldest first.
  template <class Visit> void each_since(std::uint64_t first, Visit visit) const {
    const std::uint64_t end = count();
    if (end - first > kRemembered) first = end - kRemembered;
    for (; first < end; ++first) visit(latest_[first % kRemembered]);
  }
  struct Launch {
    std::atomic<const char*> op{""}, line{""};
    std::atomic<Function> kernel{nullptr};
    std::atomic<bool> reports{false};
  };

 private:
  static constexpr std::uint64_t kRemembered = 32;
  std::array<Launch, kRemembered> latest_;
  std::atomic<std::uint64_t> count_{0}, well_{0}, checked_{0};
};

// Whether a result is the fault of a kernel that ran before the call that returned it.
bool is_late(Result result);
// Which launches on the thread's GPU may have failed, for the end of an error's message.
std::string suspects();
// The same of a fault in data, as lines of the program.
std::string reporting_lines(const Gpu& gpu);

}  // namespace tw::cuda
