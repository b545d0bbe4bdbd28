// One lock guards queues and figures; jobs run outside it. Threads start when work finds none idle,
// so that a queue at its limit never holds up another.
#include "core/runtime/transfers/job_queues.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <optional>
#include <tuple>

#include "core/base/error.h"
#include "core/runtime/tasks/task.h"

namespace tw {

namespace {

using Clock = std::chrono::steady_clock;

// Figures of more tasks than a person looks at; older idle ones make room.
constexpr std::size_t kRememberedTasks = 4096;

struct Cancelled {};

std::int64_t ns_since(Clock::time_point start) {
  return std::chrono::nanoseconds(Clock::now() - start).count();
}

}  // namespace

// Order of a queue: the map's first entry starts next.
struct JobRank {
  int priority;
  std::uint64_t sequence;
  bool operator<(const JobRank& other) const {
    return std::tie(other.priority, sequence) < std::tie(priority, other.sequence);
  }
};

struct JobQueues::Queue {
  std::string name;
  int limit;
  JobFigures figures = {};
  std::map<JobRank, JobRef> waiting = {};
};

struct QueuedJob {
  JobWork work;
  JobRank rank;
  std::uint64_t task;
  JobQueues* queues;
  JobQueues::Queue* queue;
  Clock::time_point submitted = Clock::now();
  std::atomic<bool> cancelled{false};
  // Stored last: whoever sees a final state may read what follows.
  std::atomic<JobState> state{JobState::waiting};
  std::int64_t bytes = 0;
  std::optional<Error> error = {};
};

void JobControl::stop_if_cancelled() const {
  if (job_.cancelled.load(std::memory_order_relaxed)) throw Cancelled();
}

JobState Future::state() const { return job_->state.load(std::memory_order_acquire); }

bool Future::wait(std::chrono::nanoseconds timeout) const {
  return done() || job_->queues->wait(*job_, timeout);
}

std::int64_t Future::result() const {
  if (state() == JobState::failed) throw Error(*job_->error);
  return state() == JobState::completed ? job_->bytes : 0;
}

void Future::cancel() const { job_->queues->cancel(*job_); }

// Applies a change to both sets of figures that a job counts in.
template <class Change> void JobQueues::count(const QueuedJob& job, Change&& change) {
  change(job.queue->figures);
  if (job.task) change(figures_of_task(job.task));
}

JobFigures& JobQueues::figures_of_task(std::uint64_t task) {
  const auto found = tasks_.find(task);
  if (found != tasks_.end()) return found->second;
  const auto idle = [](const auto& entry) {
    return !entry.second.waiting && !entry.second.running;
  };
  if (tasks_.size() >= kRememberedTasks)
    if (const auto old = std::find_if(tasks_.begin(), tasks_.end(), idle); old != tasks_.end())
      tasks_.erase(old);
  return tasks_[task];
}

JobQueues::Queue& JobQueues::find(const std::string& name) {
  std::string known;
  for (const auto& queue : queues_) {
    if (queue->name == name) return *queue;
    known += (known.empty() ? "" : ", ") + queue->name;
  }
  fail(ErrorKind::value, "no queue '", name, "'; there are: ", known);
}

void JobQueues::add_queue(const std::string& name, int in_flight) {
  const Guard guard(mutex_);
  queues_.push_back(std::make_unique<Queue>(Queue{name, in_flight}));
}

void JobQueues::set_in_flight(const std::string& name, int limit) {
  const Guard guard(mutex_);
  Queue& queue = find(name);
  if (limit < 1 || limit > kMaxThreads)
    fail(ErrorKind::value, "set_in_flight: the limit of queue '", name, "' must be in [1, ",
         kMaxThreads, "], got ", limit);
  queue.limit = limit;
  wake_one();
}

Future JobQueues::submit(const std::string& name, JobWork work, int priority, std::uint64_t task) {
  Guard guard(mutex_);
  Queue& queue = find(name);
  const JobRank rank{priority, next_sequence_++};
  const JobRef job(new QueuedJob{std::move(work), rank, task, this, &queue});
  queue.waiting.emplace(rank, job);
  count(*job, [](JobFigures& f) { ++f.submitted, ++f.waiting; });
  wake_one();
  while (threads_ == 0) {  // the system refuses threads: callers do the work
    const JobRef next = take_next();
    if (!next) break;
    guard.unlock();
    run(next);
    guard.lock();
  }
  return Future(job);
}

// The queue whose first job starts next: the highest rank among those below their limits.
JobQueues::Queue* JobQueues::next_queue() const {
  Queue* best = nullptr;
  for (const auto& queue : queues_) {
    if (queue->waiting.empty() || queue->figures.running >= queue->limit) continue;
    if (!best || queue->waiting.begin()->first < best->waiting.begin()->first) best = queue.get();
  }
  return best;
}

JobQueues::JobRef JobQueues::take_next() {
  Queue* queue = next_queue();
  if (!queue) return nullptr;
  const JobRef job = queue->waiting.extract(queue->waiting.begin()).mapped();
  const std::int64_t waited = ns_since(job->submitted);
  count(*job, [waited](JobFigures& f) {
    --f.waiting;
    f.peak_in_flight = std::max(f.peak_in_flight, ++f.running);
    f.waiting_ns += waited;
  });
  running_.push_back(job);
  job->state.store(JobState::running, std::memory_order_release);
  wake_one();
  return job;
}

// Where a job could start: gets a thread for it. One at a time, since each that comes up and takes
// a job wakes the next.
void JobQueues::wake_one() {
  if (wakes_ || !next_queue()) return;
  if (idle_ > 0) {
    --idle_;
    ++wakes_;
    work_ready_.notify_one();
  } else if (threads_ < kMaxThreads && start_thread()) {
    ++threads_;
    ++wakes_;
  }
}

bool JobQueues::start_thread() {
  sigset_t all, before;  // the new thread inherits the mask: signals belong to the user's threads
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool created = pthread_create(&thread, nullptr, main_of, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (created) pthread_detach(thread);
  return created;
}

void* JobQueues::main_of(void* queues) {
#ifdef __linux__
  pthread_setname_np(pthread_self(), "tilewright-io");
#endif
  static_cast<JobQueues*>(queues)->serve();
  return nullptr;
}

// `wakes_` counts threads that were notified and have not started. Any waiting thread may consume
// such a notification; the one it was meant for then finds none left and waits on, so the number of
// idle threads stays right.
void JobQueues::serve() {
  Guard guard(mutex_);
  for (;;) {
    work_ready_.wait(guard, [this] { return wakes_ > 0; });
    --wakes_;
    while (const JobRef job = take_next()) {
      guard.unlock();
      run(job);
      guard.lock();
    }
    ++idle_;
  }
}

void JobQueues::run(const JobRef& job) {
  const Clock::time_point start = Clock::now();
  const std::uint64_t task_before = std::exchange(current_task, job->task);
  JobState state = JobState::failed;
  try {
    const JobControl control(*job);
    job->bytes = job->work(control);
    state = JobState::completed;
  } catch (const Cancelled&) {
    state = JobState::cancelled;
  } catch (const Error& error) {
    job->error = error;
  } catch (const std::exception& error) {
    job->error = Error(ErrorKind::runtime, error.what());
  }
  current_task = task_before;
  job->work = nullptr;  // what it holds ends outside the lock
  const std::int64_t busy = ns_since(start);
  const Guard guard(mutex_);
  running_.erase(std::find(running_.begin(), running_.end(), job));
  count(*job, [busy](JobFigures& f) { --f.running, f.busy_ns += busy; });
  end(*job, state);
}

// Counts and announces a final state.
void JobQueues::end(QueuedJob& job, JobState state) {
  count(job, [&](JobFigures& f) {
    f.completed += state == JobState::completed;
    f.failed += state == JobState::failed;
    f.cancelled += state == JobState::cancelled;
    f.bytes += state == JobState::completed ? job.bytes : 0;
  });
  job.state.store(state, std::memory_order_release);
  if (waiters_) job_done_.notify_all();
}

// Takes a waiting job out of its queue; returns its work, to be destroyed outside the lock.
JobWork JobQueues::withdraw(QueuedJob& job) {
  job.queue->waiting.erase(job.rank);
  count(job, [](JobFigures& f) { --f.waiting; });
  JobWork work = std::move(job.work);
  end(job, JobState::cancelled);
  return work;
}

void JobQueues::cancel(QueuedJob& job) {
  JobWork dropped;
  const Guard guard(mutex_);
  job.cancelled.store(true, std::memory_order_relaxed);
  if (job.state.load(std::memory_order_relaxed) == JobState::waiting) dropped = withdraw(job);
}

int JobQueues::cancel_task(std::uint64_t task) {
  std::vector<JobWork> dropped;
  std::vector<JobRef> waiting;
  const Guard guard(mutex_);
  int found = 0;
  for (const JobRef& job : running_)
    if (task && job->task == task) job->cancelled.store(true, std::memory_order_relaxed), ++found;
  for (const auto& queue : queues_)
    for (const auto& [rank, job] : queue->waiting)
      if (task && job->task == task) waiting.push_back(job);
  for (const JobRef& job : waiting) dropped.push_back(withdraw(*job));
  return found + static_cast<int>(waiting.size());
}

template <class Done>
bool JobQueues::wait_until(Guard& guard, std::chrono::nanoseconds timeout, Done&& done) {
  ++waiters_;
  bool reached = true;
  if (timeout.count() < 0) {
    job_done_.wait(guard, done);
  } else {
    reached = job_done_.wait_for(guard, timeout, done);
  }
  --waiters_;
  return reached;
}

bool JobQueues::wait(const QueuedJob& job, std::chrono::nanoseconds timeout) {
  Guard guard(mutex_);
  return wait_until(guard, timeout, [&] { return job.state.load() > JobState::running; });
}

bool JobQueues::wait_idle(const std::string& name, std::chrono::nanoseconds timeout) {
  Guard guard(mutex_);
  const JobFigures& figures = find(name).figures;
  return wait_until(guard, timeout, [&] { return !figures.waiting && !figures.running; });
}

std::vector<QueueFigures> JobQueues::queue_figures() {
  const Guard guard(mutex_);
  std::vector<QueueFigures> all;
  for (const auto& queue : queues_) all.push_back({queue->figures, queue->name, queue->limit});
  return all;
}

std::map<std::uint64_t, JobFigures> JobQueues::task_figures() {
  const Guard guard(mutex_);
  return tasks_;
}

// The child has none of the threads. Jobs that the parent goes on with end here with an error, so
// that nobody waits for them for ever.
void JobQueues::start_afresh_in_child() {
  new (&work_ready_) std::condition_variable;  // the old ones count threads that are gone
  new (&job_done_) std::condition_variable;
  threads_ = idle_ = wakes_ = waiters_ = 0;
  std::vector<JobRef> lost = std::move(running_);
  running_.clear();
  for (const JobRef& job : lost) count(*job, [](JobFigures& f) { --f.running; });
  for (const auto& queue : queues_) {
    for (const auto& [rank, job] : queue->waiting) {
      count(*job, [](JobFigures& f) { --f.waiting; });
      lost.push_back(job);
    }
    queue->waiting.clear();
  }
  for (const JobRef& job : lost) {
    job->error.emplace(ErrorKind::runtime,
                       "transfer: the process forked while it was in flight; its parent goes on "
                       "with it, the child has to start it again");
    end(*job, JobState::failed);
  }
}

JobQueues& job_queues() {
  static JobQueues* const instance = new JobQueues;
  return *instance;
}

const AtFork JobQueues::guarded_(
    ForkOrder::job_queues, [] { job_queues().mutex_.lock(); }, [] { job_queues().mutex_.unlock(); },
    [] { job_queues().start_afresh_in_child(); });

}  // namespace tw
