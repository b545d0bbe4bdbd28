// Launches on a GPU: how many there were, and how many of a stream, or of a task of the scheduler,
// may be in flight before whoever launches waits.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>

#include "core/cuda/driver/stream.h"

namespace tw::cuda {

struct LaunchFigures {
  std::uint64_t launches = 0;
  std::uint64_t waits = 0;  // launches that had to wait for the limit
  std::uint64_t done = 0;   // launches that are known to be
};

struct LaunchLimits {
  // 0: what the driver takes, some thousand.
  int of_stream = 0, of_task = 0;
};

class LaunchControl {
 public:
  void set_limit(int in_flight, bool of_task);
  LaunchLimits limits() const;
  // Waits while the stream, or this thread's task, has as many in flight as it may.
  void admit(GpuStream& stream);
  // After the launch; see LaunchLog::add.
  void count(GpuStream& stream, Function kernel, bool reports);
  // Returns when the task's launches are done; raises what went wrong in them.
  void finish(std::uint64_t task);
  std::uint64_t total() const;
  std::map<int, LaunchFigures> by_stream() const;
  // Of the scheduler's tasks that run, and of the latest that have ended.
  std::map<std::uint64_t, LaunchFigures> by_task() const;

 private:
  struct Queue {
    LaunchFigures figures;
    std::uint64_t since_mark = 0;
    // Ends of runs of launches on one stream, and how many launches are up to there.
    std::deque<std::pair<MarkRef, std::uint64_t>> marks;
    GpuStream* latest = nullptr;
    StreamSet streams = 0;  // that it has launched on

    void mark();
    // The mark to wait for before one more launch; null: none.
    MarkRef make_way(int limit);
    void add(GpuStream& stream, int limit);
  };
  Queue* queue_of_task();

  mutable std::mutex mutex_;
  LaunchLimits limits_;
  std::map<int, Queue> queues_;           // by the stream's number
  std::map<std::uint64_t, Queue> tasks_;  // that run
  std::map<std::uint64_t, LaunchFigures> ended_;
};

}  // namespace tw::cuda
