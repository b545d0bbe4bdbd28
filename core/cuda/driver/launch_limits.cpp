#include "core/cuda/driver/launch_limits.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/cuda/gpu/gpu.h"
#include "core/runtime/launch.h"
#include "core/runtime/tasks/task.h"

namespace tw::cuda {

namespace {

// Figures of more tasks than a person looks at.
constexpr std::size_t kRememberedTasks = 4096;

}  // namespace

// ---- a queue ----

void LaunchControl::Queue::mark() {
  marks.emplace_back(std::make_shared<const Mark>(*latest), figures.launches);
  since_mark = 0;
}

MarkRef LaunchControl::Queue::make_way(int limit) {
  if (!limit || figures.launches - figures.done < static_cast<std::uint64_t>(limit)) return nullptr;
  if (marks.empty()) mark();
  const auto [oldest, launches] = marks.front();
  marks.pop_front();
  figures.done = launches;
  ++figures.waits;
  return oldest;
}

// Marks stand half the limit apart, so that a wait lets as many in at once; a run ends where the
// stream changes.
void LaunchControl::Queue::add(GpuStream& stream, int limit) {
  if (limit && latest && latest != &stream && since_mark) mark();
  latest = &stream;
  streams |= set_of(stream);
  ++figures.launches;
  ++since_mark;
  if (limit && since_mark >= static_cast<std::uint64_t>(std::max(limit / 2, 1))) mark();
}

// ---- all queues ----

void LaunchControl::set_limit(int in_flight, bool of_task) {
  if (in_flight < 0)
    fail(ErrorKind::value, "set_launch_limit: in_flight must be at least 0, got ", in_flight);
  const std::lock_guard lock(mutex_);
  (of_task ? limits_.of_task : limits_.of_stream) = in_flight;
}

LaunchLimits LaunchControl::limits() const {
  const std::lock_guard lock(mutex_);
  return limits_;
}

LaunchControl::Queue* LaunchControl::queue_of_task() {
  return current_task ? &tasks_[current_task] : nullptr;
}

void LaunchControl::admit(GpuStream& stream) {
  MarkRef of_stream, of_task;
  {
    const std::lock_guard lock(mutex_);
    if (!limits_.of_stream && !limits_.of_task) return;
    of_stream = queues_[stream.number].make_way(limits_.of_stream);
    if (Queue* const task = queue_of_task()) of_task = task->make_way(limits_.of_task);
  }
  if (!of_stream && !of_task) return;
  const Unlocked unlocked;
  if (of_stream) of_stream->wait();
  if (of_task) of_task->wait();
}

void LaunchControl::count(GpuStream& stream, Function kernel, bool reports) {
  const std::lock_guard lock(mutex_);
  stream.log.add(kernel, reports);
  queues_[stream.number].add(stream, limits_.of_stream);
  if (Queue* const task = queue_of_task()) task->add(stream, limits_.of_task);
}

void LaunchControl::finish(std::uint64_t task) {
  StreamSet streams = 0;
  Gpu* gpu = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = tasks_.find(task);
    if (found == tasks_.end()) return;
    Queue& queue = found->second;
    streams = queue.streams;
    gpu = queue.latest ? queue.latest->gpu : nullptr;
    queue.figures.done = queue.figures.launches;
    ended_[task] = queue.figures;
    if (ended_.size() > kRememberedTasks) ended_.erase(ended_.begin());
    tasks_.erase(found);
  }
  for (int number = 0; number < kMostStreams; ++number)
    if (streams >> number & 1) gpu->synchronize(gpu->stream_by_number(number));
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
  std::map<std::uint64_t, LaunchFigures> figures = ended_;
  for (const auto& [task, queue] : tasks_) figures[task] = queue.figures;
  return figures;
}

}  // namespace tw::cuda
