#include "core/cuda/launches.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/runtime/task.h"

namespace tw::cuda {

namespace {

// Figures of more tasks than a person looks at.
constexpr std::size_t kRememberedTasks = 4096;

}  // namespace

void LaunchControl::set_limit(int in_flight) {
  if (in_flight < 0)
    fail(ErrorKind::value, "set_launch_limit: in_flight must be at least 0, got ", in_flight);
  const std::lock_guard lock(mutex_);
  limit_ = in_flight;
}

int LaunchControl::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

LaunchFigures* LaunchControl::figures_of_task() {
  if (!current_task) return nullptr;
  LaunchFigures& figures = tasks_[current_task];
  if (tasks_.size() > kRememberedTasks) tasks_.erase(tasks_.begin());
  return &figures;
}

// Marks stand half the limit apart, so that a wait lets as many in at once.
void LaunchControl::admit(GpuStream& stream) {
  MarkRef oldest;
  {
    const std::lock_guard lock(mutex_);
    Queue& queue = queues_[stream.number];
    const auto most = static_cast<std::uint64_t>(limit_);
    if (!limit_ || queue.figures.launches - queue.done < most) return;
    if (queue.marks.empty() || queue.since_mark >= most)
      queue.marks.emplace_back(std::make_shared<const Mark>(stream), queue.figures.launches);
    oldest = queue.marks.front().first;
    queue.done = queue.marks.front().second;
    queue.marks.pop_front();
    ++queue.figures.waits;
    if (LaunchFigures* task = figures_of_task()) ++task->waits;
  }
  oldest->wait();
}

void LaunchControl::count(GpuStream& stream) {
  const std::lock_guard lock(mutex_);
  Queue& queue = queues_[stream.number];
  ++queue.figures.launches;
  if (LaunchFigures* task = figures_of_task()) ++task->launches;
  if (!limit_ || ++queue.since_mark < static_cast<std::uint64_t>(std::max(limit_ / 2, 1))) return;
  queue.since_mark = 0;
  queue.marks.emplace_back(std::make_shared<const Mark>(stream), queue.figures.launches);
}

std::uint64_t LaunchControl::total() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& [number, queue] : queues_) sum += queue.figures.launches;
  return sum;
}

std::map<int, LaunchFigures> LaunchControl::by_stream() const {
  const std::lock_guard lock(mutex_);
  std::map<int, LaunchFigures> figures;
  for (const auto& [number, queue] : queues_) figures[number] = queue.figures;
  return figures;
}

std::map<std::uint64_t, LaunchFigures> LaunchControl::by_task() const {
  const std::lock_guard lock(mutex_);
  return tasks_;
}

}  // namespace tw::cuda
