// The bookkeeping behind one lock, and who sleeps until when. Nothing foreign is called under the
// lock, so that a frontend may submit while it holds a lock of its own that its probe needs.
#include "core/runtime/tasks/scheduler.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/memory/events.h"
#include "core/runtime/tasks/task_book.h"

namespace tw {

namespace {

using Lock = std::unique_lock<std::mutex>;

// Real use changes without a word: while it keeps a task waiting, look again this often. At most
// this much is lost at a start, and looking (microseconds) stays below a thousandth of the time.
constexpr std::int64_t kProbeEvery_ns = 10'000'000;

std::atomic<std::uint64_t> forks{0};
const AtFork counted(ForkOrder::schedulers, nullptr, nullptr, [] { ++forks; });

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void wait_ns(std::condition_variable& condition, Lock& lock, std::int64_t ns) {
  if (ns > INT64_MAX / 2) {
    condition.wait(lock);  // the library would overflow on its way to a deadline
  } else {
    condition.wait_for(lock, std::chrono::nanoseconds(ns));
  }
}

}  // namespace

struct Scheduler::Impl {
  explicit Impl(const SchedulerOptions& options) : options(options), book(options) { born = forks; }
  bool from_parent() const { return born != forks.load(std::memory_order_relaxed); }
  std::int64_t now() const { return options.clock ? options.clock(options.context) : steady_ns(); }
  // One signal at a time: while a worker is on its way, it will pass the signal on if need be.
  void wake_worker() {
    if (sleepers == 0 || waking || book.pending() == 0) return;
    waking = true;
    work.notify_one();
  }
  // After steps that may have ended tasks.
  void tell_of_ends() {
    wake_worker();
    if (book.pending() + book.running() == 0) idle.notify_all();
    if (!book.closed()) return;
    if (book.pending() == 0) work.notify_all();
    deadline.notify_all();
  }
  void sleep(Lock& lock, std::int64_t until_ns);
  void look_at_use(Lock& lock);

  const SchedulerOptions options;
  std::uint64_t born;  // the count of forks at construction
  std::mutex mutex;
  std::condition_variable work, idle, deadline;
  int sleepers = 0;     // in take
  bool waking = false;  // one of them is on its way
  TaskBook book;
};

void Scheduler::Impl::sleep(Lock& lock, std::int64_t until_ns) {
  std::int64_t wait = until_ns == INT64_MAX ? INT64_MAX : until_ns - steady_ns();
  const std::int64_t time = now();
  if (const std::int64_t opening = book.next_opening(time); opening != INT64_MAX)
    wait = std::min(wait, opening - time);
  if (!book.probed().empty() && book.pending() > 0) wait = std::min(wait, kProbeEvery_ns);
  ++sleepers;
  wait_ns(work, lock, wait);
  --sleepers;
  waking = false;
}

void Scheduler::Impl::look_at_use(Lock& lock) {
  if (!options.probe || book.probed().empty()) return;
  const std::vector<TaskId> ids = book.probed();
  lock.unlock();
  std::vector<std::int64_t> bytes;
  for (const TaskId id : ids) bytes.push_back(options.probe(options.context, id));
  lock.lock();
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (bytes[i] >= 0) book.set_use(ids[i], bytes[i]);
}

// ---- the public face; in a forked child every member is refused before it touches a lock ----

namespace {

template <class Impl> Impl& here(Impl* impl) {
  if (impl->from_parent())
    fail(ErrorKind::runtime,
         "scheduler: this process was forked from the one that made it, its workers are not here; "
         "make a scheduler of its own");
  return *impl;
}

void describe(const TaskFigures& task, TaskState state, std::int64_t now, Event& event) {
  event.kind = EventKind::task;
  event.number = task.id;
  event.details = std::make_shared<EventDetails>(EventDetails{.name = task.name});
  event.kernel = name_of(state);
  event.ns = now - task.started_ns;
  event.start_ns = now_ns() - event.ns;  // the scheduler may have a clock of its own
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options) {
  if (options.memory_bytes == 0 || options.memory_bytes < -1)
    fail(ErrorKind::value, "Scheduler: memory_bytes must be at least 1, got ",
         options.memory_bytes);
  if (options.aging_ns < 0)
    fail(ErrorKind::value, "Scheduler: aging must not be negative, got ", options.aging_ns, " ns");
  impl_ = new Impl(options);
}

Scheduler::~Scheduler() {
  if (!impl_->from_parent()) delete impl_;
}

TaskId Scheduler::submit(const TaskSpec& spec, TaskEnds& ends) {
  Impl& impl = here(impl_);
  const Lock lock(impl.mutex);
  const TaskId id = impl.book.submit(spec, impl.now(), ends);
  if (impl.sleepers > 0) impl.wake_worker();
  if (!ends.empty()) impl.tell_of_ends();
  if (spec.timeout_ns > 0) impl.deadline.notify_all();
  return id;
}

Scheduler::Taken Scheduler::take(int worker, std::int64_t limit_ns) {
  Impl& impl = here(impl_);
  const std::int64_t until = limit_ns < 0 ? INT64_MAX : steady_ns() + limit_ns;
  Lock lock(impl.mutex);
  while (true) {
    impl.look_at_use(lock);
    const std::int64_t time = impl.now();
    if (TaskRecord* record = impl.book.select(time)) {
      impl.book.start(*record, worker, time);
      if (impl.sleepers > 0 && impl.book.select(time)) impl.wake_worker();
      return {record->id, record->payload};
    }
    if ((impl.book.closed() && impl.book.pending() == 0) || steady_ns() >= until) return {};
    impl.sleep(lock, until);
  }
}

TaskEnds Scheduler::finish(TaskId id, TaskState state) {
  Impl& impl = here(impl_);
  Event event;
  TaskEnds ends;
  {
    const Lock lock(impl.mutex);
    const std::int64_t now = impl.now();
    if (is_observed(kinds_of(EventKind::task)))
      describe(impl.book.figures_of(impl.book.known(id, "finish")), state, now, event);
    ends = impl.book.finish(id, state, now);
    impl.tell_of_ends();
  }
  if (event.number) publish(event);
  return ends;
}

bool Scheduler::cancel(TaskId id, TaskEnds& ends) {
  Impl& impl = here(impl_);
  const Lock lock(impl.mutex);
  const bool reached = impl.book.cancel(id, impl.now(), ends);
  impl.tell_of_ends();
  return reached;
}

TaskCause Scheduler::stop_cause(TaskId id) const {
  Impl& impl = here(impl_);
  const Lock lock(impl.mutex);
  return impl.book.known(id, "stop_cause").cause;
}

void Scheduler::set_use(TaskId id, std::int64_t bytes) {
  Impl& impl = here(impl_);
  const Lock lock(impl.mutex);
  impl.book.set_use(id, bytes);
  impl.wake_worker();
}

void Scheduler::set_name(TaskId id, std::string_view name) {
  Impl& impl = here(impl_);
  const Lock lock(impl.mutex);
  impl.book.known(id, "set_name").rare().name = name;
}

TaskEnds Scheduler::expire() {
  Impl& impl = here(impl_);
  const Lock lock(impl.mutex);
  TaskEnds ends = impl.book.expire(impl.now());
  impl.tell_of_ends();
  return ends;
}

bool Scheduler::await_deadline() {
  Impl& impl = here(impl_);
  Lock lock(impl.mutex);
  while (!(impl.book.closed() && impl.book.pending() + impl.book.running() == 0)) {
    const std::int64_t next = impl.book.next_deadline(), time = impl.now();
    if (next <= time) return true;
    wait_ns(impl.deadline, lock, next == INT64_MAX ? INT64_MAX : next - time);
  }
  return false;
}

TaskEnds Scheduler::close(bool cancel) {
  Impl& impl = here(impl_);
  const Lock lock(impl.mutex);
  TaskEnds ends = impl.book.close(cancel, impl.now());
  impl.tell_of_ends();
  return ends;
}

bool Scheduler::await_idle(std::int64_t limit_ns) {
  Impl& impl = here(impl_);
  Lock lock(impl.mutex);
  const auto is_idle = [&] { return impl.book.pending() + impl.book.running() == 0; };
  if (limit_ns >= 0) return impl.idle.wait_for(lock, std::chrono::nanoseconds(limit_ns), is_idle);
  impl.idle.wait(lock, is_idle);
  return true;
}

TaskFigures Scheduler::figures(TaskId id) const {
  Impl& impl = here(impl_);
  const Lock lock(impl.mutex);
  return TaskBook::figures_of(impl.book.known(id, "figures"));
}

TaskState Scheduler::state(TaskId id) const { return figures(id).state; }

std::vector<TaskFigures> Scheduler::records() const {
  Impl& impl = here(impl_);
  const Lock lock(impl.mutex);
  return impl.book.records();
}

SchedulerFigures Scheduler::figures() const {
  Impl& impl = here(impl_);
  const Lock lock(impl.mutex);
  return impl.book.figures();
}

}  // namespace tw
