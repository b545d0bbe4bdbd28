// Which task runs next, within a memory budget: states, ranks, admission, dependencies, pacing and
// time limits. It runs nothing itself: workers of the frontend take tasks and report their end.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw {

using TaskId = std::uint64_t;  // 1, 2, 3, … in order of submission

enum class TaskState : std::uint8_t { pending, running, completed, failed, cancelled };
const char* name_of(TaskState state);
// What a running task counts against the budget: its estimate in full; the larger of estimate and
// real use; real use alone. best_effort starts as soon as one byte is free.
enum class TaskQuality : std::uint8_t { guaranteed, burstable, best_effort };
enum class TaskPolicy : std::uint8_t { fifo, shortest, priority };
// Why a task ended, or was asked to, without its own doing.
enum class TaskCause : std::uint8_t { none, request, dependency, timeout };

struct TaskSpec {
  std::int64_t estimate_bytes = 0;
  std::int64_t expected_ns = -1;  // -1: unknown, ranks like a task as long as the aging limit
  std::int64_t timeout_ns = 0;    // from submission to end; 0: none
  int priority = 0;               // larger runs earlier; within +-kMaxPriority
  TaskQuality quality = TaskQuality::burstable;
  bool probed = false;  // the probe knows its real use
  // A paced group (share below 1) runs one task at a time; one that ran for t holds back the next
  // until t / share after its own start.
  double share = 1.0;
  std::string_view group = {};
  std::string_view name = {};
  std::span<const TaskId> after = {};
  // A dependency that the caller knows to have failed, whose record may be forgotten; 0: none.
  TaskId lost_dependency = 0;
  void* payload = nullptr;
};
inline constexpr int kMaxPriority = 1'000'000;

struct SchedulerOptions {
  std::int64_t memory_bytes = -1;  // -1: no limit
  TaskPolicy policy = TaskPolicy::fifo;
  // A task that waited this long may not be passed any more. Until then waiting lifts its rank:
  // by one level of priority for each such time, or by as much as it waited (shortest). 0: never.
  std::int64_t aging_ns = 10'000'000'000;
  std::size_t history = 16384;  // records of ended tasks that are kept
  // Real use of a running task, or -1 where unknown. Called without the scheduler's lock.
  std::int64_t (*probe)(void* context, TaskId id) = nullptr;
  std::int64_t (*clock)(void* context) = nullptr;  // nanoseconds; null: the steady clock
  void* context = nullptr;
};

// A task that reached its end, or its time limit, through something else than its own `finish`:
// its payload is the frontend's again unless `running`.
struct TaskEnd {
  TaskId id;
  void* payload;
  TaskState state;
  TaskCause cause;
  TaskId blame;  // the dependency that failed
  bool running;  // it passed its limit and was asked to stop; its memory counts until `finish`
};
using TaskEnds = std::vector<TaskEnd>;

struct TaskFigures {
  TaskId id;
  std::string name;
  TaskState state;
  TaskQuality quality;
  int worker;                                       // -1: never started
  std::int64_t submitted_ns, started_ns, ended_ns;  // -1: not yet
  std::int64_t estimate_bytes, use_bytes, peak_use_bytes;
};

struct SchedulerFigures {
  std::int64_t submitted, pending, running, completed, failed, cancelled;
  std::int64_t charged_bytes, peak_charged_bytes;
  double throughput_per_s;   // ended tasks that ran, over the time since the first submission
  double mean_wait_ns;       // of all that started
  std::int64_t p95_wait_ns;  // of the kept records that started
};

// All members may be called from any thread. In a forked child every one raises RuntimeError:
// the parent's workers do not exist there.
class Scheduler {
 public:
  explicit Scheduler(const SchedulerOptions& options);
  ~Scheduler();  // no thread may be inside
  Scheduler(const Scheduler&) = delete;

  // Raises ValueError for what can never run: a need above the budget, an unknown dependency (so
  // there are no cycles), numbers out of range; RuntimeError when closed. Where a dependency has
  // failed the task is cancelled at once and listed in `ends`.
  TaskId submit(const TaskSpec& spec, TaskEnds& ends);
  struct Taken {
    explicit operator bool() const { return id != 0; }
    TaskId id = 0;  // 0: none within the time limit, or closed and nothing left
    void* payload = nullptr;
  };
  // The next task, now running on `worker`. limit_ns: 0 does not wait, -1 waits without limit.
  Taken take(int worker, std::int64_t limit_ns);
  // `state` is completed, failed or cancelled; raises RuntimeError unless the task runs.
  TaskEnds finish(TaskId id, TaskState state);
  // A pending task is cancelled, a running one asked to stop, an ended one left alone (false).
  bool cancel(TaskId id, TaskEnds& ends);
  // None: nobody asked it to stop.
  TaskCause stop_cause(TaskId id) const;
  void set_use(TaskId id, std::int64_t bytes);
  // For timelines; where `submit` gave none.
  void set_name(TaskId id, std::string_view name);

  // Ends pending tasks whose time is up and asks running ones to stop.
  TaskEnds expire();
  // Sleeps until a time limit passes; false when closed and nothing is left.
  bool await_deadline();

  // No more submissions; `cancel` ends what is pending and asks what runs to stop.
  TaskEnds close(bool cancel);
  bool await_idle(std::int64_t limit_ns);

  // ValueError for an id that never was or is forgotten.
  TaskState state(TaskId id) const;
  TaskFigures figures(TaskId id) const;
  std::vector<TaskFigures> records() const;
  SchedulerFigures figures() const;

 private:
  struct Impl;
  Impl* impl_;  // a forked child leaks it: its locks may be held for ever
};

}  // namespace tw
