// Launches on a GPU: how many there were, for which tasks of the scheduler, and how many of a
// stream may be under way before the program waits.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>

#include "core/cuda/stream.h"

namespace tw::cuda {

struct LaunchFigures {
  std::uint64_t launches = 0;
  std::uint64_t waits = 0;  // launches that had to wait for the limit
};

class LaunchControl {
 public:
  // Of each stream; 0: what the driver takes, some thousand.
  void set_limit(int in_flight);
  int limit() const;
  // Waits while the stream has as many under way as it may, then counts one more.
  void admit(GpuStream& stream);
  void count(GpuStream& stream);
  std::uint64_t total() const;
  std::map<int, LaunchFigures> by_stream() const;
  // Of the scheduler's latest tasks.
  std::map<std::uint64_t, LaunchFigures> by_task() const;

 private:
  struct Queue {
    LaunchFigures figures;
    std::uint64_t since_mark = 0;
    // Ends of runs of launches, and how many launches are up to there.
    std::deque<std::pair<MarkRef, std::uint64_t>> marks;
    std::uint64_t done = 0;
  };
  LaunchFigures* figures_of_task();

  mutable std::mutex mutex_;
  int limit_ = 0;
  std::map<int, Queue> queues_;  // by the stream's number
  std::map<std::uint64_t, LaunchFigures> tasks_;
};

}  // namespace tw::cuda
