// Queues of jobs that run beside the program on a few threads of the engine's own: an in-flight
// limit for each queue, a priority for each job, cancellation by task, figures by queue and task.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/fork.h"

namespace tw {

struct JobFigures {
  std::int64_t submitted = 0, waiting = 0, running = 0;
  std::int64_t completed = 0, failed = 0, cancelled = 0;
  std::int64_t bytes = 0;       // moved by completed jobs
  std::int64_t busy_ns = 0;     // time on a thread
  std::int64_t waiting_ns = 0;  // from submission to start
  std::int64_t peak_in_flight = 0;
};

struct QueueFigures : JobFigures {
  std::string name;
  int in_flight_limit;
};

enum class JobState : std::uint8_t { waiting, running, completed, failed, cancelled };

struct QueuedJob;

// A running job's view of itself.
class JobControl {
 public:
  explicit JobControl(const QueuedJob& job) : job_(job) {}
  // Ends the job, by an exception of its own kind, once it has been cancelled.
  void stop_if_cancelled() const;

 private:
  const QueuedJob& job_;
};

// Returns the bytes moved; what it throws is kept for whoever waits.
using JobWork = std::function<std::int64_t(const JobControl&)>;

// Handle of a submitted job; copies stand for the same job.
class Future {
 public:
  Future() = default;
  explicit Future(std::shared_ptr<QueuedJob> job) : job_(std::move(job)) {}
  explicit operator bool() const { return job_ != nullptr; }
  JobState state() const;
  bool done() const { return state() > JobState::running; }
  // Whether the job is done; false when the time is up. A negative timeout has no limit.
  bool wait(std::chrono::nanoseconds timeout = std::chrono::nanoseconds(-1)) const;
  // Bytes moved by a completed job; raises what ended a failed one. Others have moved none.
  std::int64_t result() const;
  // A waiting job never runs; a running one stops at its next look at JobControl.
  void cancel() const;

 private:
  std::shared_ptr<QueuedJob> job_;
};

class JobQueues {
 public:
  struct Queue;
  // Adds a queue; `in_flight` is the number of its jobs that may run at once.
  void add_queue(const std::string& name, int in_flight);
  // Raises ValueError for an unknown queue, and for limits outside [1, kMaxThreads].
  void set_in_flight(const std::string& name, int limit);
  // Jobs with higher priority start first, equal ones in the order of submission. `task` is the
  // scheduler's task that the job works for, 0 for none.
  Future submit(const std::string& queue, JobWork work, int priority, std::uint64_t task);
  void cancel(QueuedJob& job);
  // Cancels all jobs of a task; returns how many were waiting or running.
  int cancel_task(std::uint64_t task);
  bool wait(const QueuedJob& job, std::chrono::nanoseconds timeout);
  // Whether nothing waits or runs in the queue; false when the time is up.
  bool wait_idle(const std::string& queue, std::chrono::nanoseconds timeout);
  std::vector<QueueFigures> queue_figures();
  // Of the latest tasks that submitted jobs.
  std::map<std::uint64_t, JobFigures> task_figures();

  static constexpr int kMaxThreads = 16;

 private:
  friend JobQueues& job_queues();
  using JobRef = std::shared_ptr<QueuedJob>;
  using Guard = std::unique_lock<std::mutex>;

  JobQueues() = default;
  static void* main_of(void* queues);
  Queue& find(const std::string& name);
  template <class Change> void count(const QueuedJob& job, Change&& change);
  JobFigures& figures_of_task(std::uint64_t task);
  template <class Done>
  bool wait_until(Guard& guard, std::chrono::nanoseconds timeout, Done&& done);
  Queue* next_queue() const;
  JobRef take_next();
  void wake_one();
  bool start_thread();
  void serve();
  void run(const JobRef& job);
  void end(QueuedJob& job, JobState state);
  JobWork withdraw(QueuedJob& job);
  void start_afresh_in_child();
  static const AtFork guarded_;

  std::mutex mutex_;                    // guards all below
  std::condition_variable work_ready_;  // for idle threads
  std::condition_variable job_done_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::map<std::uint64_t, JobFigures> tasks_;
  std::vector<JobRef> running_;
  std::uint64_t next_sequence_ = 0;
  int threads_ = 0;
  int idle_ = 0;     // threads asleep that nobody has woken yet
  int wakes_ = 0;    // woken or started, not yet up
  int waiters_ = 0;  // callers asleep on job_done_
};

// The process's own. Never destroyed: at exit its threads end with the process.
JobQueues& job_queues();

}  // namespace tw
