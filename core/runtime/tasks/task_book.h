// The scheduler's bookkeeping without its locks and waits: every step takes the time it happens at,
// so what it decides depends on its arguments alone.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <utility>

#include "core/runtime/tasks/task_table.h"

namespace tw {

class TaskBook {
 public:
  explicit TaskBook(const SchedulerOptions& options) : options_(options) {}

  TaskId submit(const TaskSpec& spec, std::int64_t now, TaskEnds& ends);
  // The task to start now, or null; changes nothing that could be seen.
  TaskRecord* select(std::int64_t now);
  void start(TaskRecord& record, int worker, std::int64_t now);
  TaskEnds finish(TaskId id, TaskState state, std::int64_t now);
  bool cancel(TaskId id, std::int64_t now, TaskEnds& ends);
  TaskEnds expire(std::int64_t now);
  TaskEnds close(bool cancel, std::int64_t now);
  void set_use(TaskId id, std::int64_t bytes);

  bool closed() const { return closed_; }
  std::int64_t pending() const { return pending_; }
  std::int64_t running() const { return running_; }
  // When the first time limit passes; INT64_MAX where there is none.
  std::int64_t next_deadline() const;
  // When the first group that is held back and has work may run again; INT64_MAX: none is.
  std::int64_t next_opening(std::int64_t now) const;
  const std::vector<TaskId>& probed() const { return probed_; }
  TaskRecord& known(TaskId id, const char* what) const;
  static TaskFigures figures_of(const TaskRecord& record);
  std::vector<TaskFigures> records() const;
  SchedulerFigures figures() const;

 private:
  using Orphans = std::vector<std::pair<TaskId, TaskId>>;  // a task and the dependency it lost
  using Deadline = std::pair<std::int64_t, TaskId>;

  std::int64_t free_bytes() const;
  void check(const TaskSpec& spec) const;
  TaskLane& lane_of(const TaskSpec& spec, std::int64_t now);
  std::int64_t key_of(const TaskSpec& spec, std::int64_t now) const;
  TaskRecord& add_record(const TaskSpec& spec, TaskLane& lane, std::int64_t now);
  TaskId await_dependencies(const TaskSpec& spec, TaskRecord& record);
  void sort_submitted();
  void make_ready(TaskRecord& record, std::int64_t now);
  TaskRecord* oldest(TaskLane& lane);
  void end(TaskRecord& record, TaskState state, std::int64_t now);
  void end_pending(TaskRecord& record, TaskState state, TaskCause cause, std::int64_t now,
                   TaskEnds& ends, TaskId blame = 0);
  void orphan_dependents(TaskRecord& record, std::int64_t now, TaskEnds& ends);
  void release_dependents(TaskRecord& record, std::int64_t now);
  void forget_oldest();
  void tidy_deadlines();

  const SchedulerOptions options_;
  bool closed_ = false;
  TaskTable table_;
  TaskId unsorted_ = 1;  // from here on, submitted tasks have not been put into a lane yet
  TaskLane common_;
  std::map<std::string, TaskLane, std::less<>> paced_;
  std::deque<TaskId> history_;  // ended tasks, oldest first
  std::vector<TaskId> probed_;  // running tasks whose real use the probe knows
  std::priority_queue<Deadline, std::vector<Deadline>, std::greater<>> deadlines_;
  std::size_t timed_ = 0;  // unfinished tasks with a time limit

  std::int64_t pending_ = 0, running_ = 0, completed_ = 0, failed_ = 0, cancelled_ = 0;
  std::int64_t charged_ = 0, peak_charged_ = 0;
  std::int64_t started_ = 0, ran_ = 0, first_submitted_ns_ = -1, last_ended_ns_ = 0;
  double wait_sum_ns_ = 0;
};

}  // namespace tw
