// States, ranks, admission, dependencies, pacing, time limits and figures of tasks.
#include "core/runtime/tasks/task_book.h"

#include "core/base/error.h"

namespace tw {

namespace {

// Keys and times stay far from the ends of their type, whatever clocks and limits are given.
std::int64_t within_key(__int128 key) {
  constexpr __int128 kLargest = std::int64_t{1} << 62;
  return static_cast<std::int64_t>(std::clamp(key, -kLargest, kLargest));
}

template <class... Parts> [[noreturn]] void refuse(const Parts&... parts) {
  fail(ErrorKind::value, "submit: ", parts...);
}

}  // namespace

const char* name_of(TaskState state) {
  constexpr const char* kNames[] = {"pending", "running", "completed", "failed", "cancelled"};
  return kNames[static_cast<int>(state)];
}

// ---- submission ----

void TaskBook::check(const TaskSpec& spec) const {
  if (closed_) fail(ErrorKind::runtime, "submit: the scheduler is closed");
  if (spec.estimate_bytes < 0)
    refuse("memory_bytes must not be negative, got ", spec.estimate_bytes);
  if (options_.memory_bytes >= 0 && spec.estimate_bytes > options_.memory_bytes)
    refuse("the task needs ", spec.estimate_bytes, " bytes and the scheduler has ",
           options_.memory_bytes, "; give it more or split the task");
  if (!(spec.share > 0 && spec.share <= 1)) refuse("share must be in (0, 1], got ", spec.share);
  if (spec.share < 1 && spec.group.empty())
    refuse("share ", spec.share, " paces a group; name it with group=");
  if (spec.priority < -kMaxPriority || spec.priority > kMaxPriority)
    refuse("priority must be within +-", kMaxPriority, ", got ", spec.priority);
  for (const TaskId id : spec.after)
    if (!table_.find(id)) refuse("after: no task ", id, "; it never was or is forgotten");
}

TaskLane& TaskBook::lane_of(const TaskSpec& spec, std::int64_t now) {
  if (spec.group.empty()) return common_;
  const auto found = paced_.find(spec.group);
  if (found != paced_.end() && found->second.unfinished > 0 && found->second.share != spec.share)
    refuse("group '", spec.group, "' has share ", found->second.share,
           " while its tasks are unfinished, got ", spec.share);
  if (spec.share == 1.0) return common_;
  if (found == paced_.end())
    std::erase_if(paced_, [&](const auto& entry) {
      return entry.second.unfinished == 0 && entry.second.not_before_ns <= now;
    });
  TaskLane& lane = paced_[std::string(spec.group)];
  lane.share = spec.share;
  return lane;
}

// Waiting lifts the rank of all tasks alike, so a key that is fixed at submission keeps the order.
std::int64_t TaskBook::key_of(const TaskSpec& spec, std::int64_t now) const {
  const std::int64_t aging = options_.aging_ns;
  switch (options_.policy) {
    case TaskPolicy::fifo: return 0;
    case TaskPolicy::shortest:
      if (spec.expected_ns < 0) return within_key(aging ? __int128{now} + aging : INT64_MAX);
      return within_key(__int128{spec.expected_ns} + (aging ? now : 0));
    case TaskPolicy::priority:
      return aging ? within_key(__int128{now} - __int128{spec.priority} * aging) : -spec.priority;
  }
  __builtin_unreachable();
}

TaskRecord& TaskBook::add_record(const TaskSpec& spec, TaskLane& lane, std::int64_t now) {
  TaskRecord& record = table_.add();
  record.key = key_of(spec, now);
  record.need_bytes = spec.quality == TaskQuality::best_effort ? 1 : spec.estimate_bytes;
  record.payload = spec.payload;
  record.lane = &lane;
  record.submitted_ns = record.ready_ns = now;
  record.started_ns = record.ended_ns = -1;
  record.estimate_bytes = spec.estimate_bytes;
  record.use_bytes = record.peak_use_bytes = 0;
  record.worker = -1;
  record.unmet = 0;
  record.state = TaskState::pending;
  record.quality = spec.quality;
  record.cause = TaskCause::none;
  record.waiting = false;
  record.probed = spec.probed;
  record.timed = spec.timeout_ns > 0;
  if (!spec.name.empty()) record.rare().name = spec.name;
  return record;
}

// Counts what is unmet; returns a dependency that has failed, or 0.
TaskId TaskBook::await_dependencies(const TaskSpec& spec, TaskRecord& record) {
  TaskId lost = spec.lost_dependency;
  for (const TaskId id : spec.after) {
    TaskRecord& dependency = *table_.find(id);
    const bool late =
        dependency.state == TaskState::running && dependency.cause == TaskCause::timeout;
    if (dependency.state == TaskState::completed) continue;
    if (dependency.state > TaskState::completed || late) {
      if (!lost) lost = id;
      continue;
    }
    dependency.rare().dependents.push_back(record.id);
    ++record.unmet;
  }
  return lost;
}

TaskId TaskBook::submit(const TaskSpec& spec, std::int64_t now, TaskEnds& ends) {
  check(spec);
  TaskLane& lane = lane_of(spec, now);
  TaskRecord& record = add_record(spec, lane, now);
  const TaskId id = record.id;
  ++lane.unfinished;
  ++pending_;
  if (first_submitted_ns_ < 0) first_submitted_ns_ = now;
  if (record.timed) {
    ++timed_;
    deadlines_.emplace(within_key(__int128{now} + spec.timeout_ns), id);
  }
  if (spec.after.empty() && !spec.lost_dependency) return id;
  if (const TaskId lost = await_dependencies(spec, record)) {
    end_pending(record, TaskState::cancelled, TaskCause::dependency, now, ends, lost);
    forget_oldest();
  }
  return id;
}

// Submission only appends; whoever needs the order sorts what has come in, on a worker's time.
void TaskBook::sort_submitted() {
  for (; unsorted_ < table_.next_id(); ++unsorted_) {
    TaskRecord* record = table_.find(unsorted_);
    if (record && record->state == TaskState::pending && record->unmet == 0)
      make_ready(*record, record->submitted_ns);
  }
}

void TaskBook::make_ready(TaskRecord& record, std::int64_t now) {
  record.ready_ns = now;
  record.waiting = true;
  record.lane->waiting.insert(&record);
  if (options_.aging_ns) record.lane->arrivals.push_back(record.id);
}

// ---- choice ----

std::int64_t TaskBook::free_bytes() const {
  if (options_.memory_bytes < 0) return INT64_MAX;
  // With nothing running the budget is free and no estimate exceeds it, so a waiting task always
  // starts in the end, whatever the probe told of others: there is no deadlock.
  return running_ ? options_.memory_bytes - charged_ : options_.memory_bytes;
}

TaskRecord* TaskBook::oldest(TaskLane& lane) {
  while (!lane.arrivals.empty()) {
    TaskRecord* record = table_.find(lane.arrivals.front());
    if (record && record->waiting) return record;
    lane.arrivals.pop_front();
  }
  return nullptr;
}

// A task that has waited for the aging limit stops all others until it fits: there is no
// starvation of a large task by a stream of small ones.
TaskRecord* TaskBook::select(std::int64_t now) {
  sort_submitted();
  TaskRecord *best = nullptr, *eldest = nullptr;
  const std::int64_t free = free_bytes();
  const auto age = [](const TaskRecord* r) { return std::pair(r->ready_ns, r->id); };
  const auto consider = [&](TaskLane& lane) {
    RankedNode* node = lane.waiting.first_fitting(free);
    if (node && (!best || RankedTree::before(node, best))) best = static_cast<TaskRecord*>(node);
    TaskRecord* first = oldest(lane);
    if (first && (!eldest || age(first) < age(eldest))) eldest = first;
  };
  consider(common_);
  for (auto& [name, lane] : paced_)
    if (lane.running == 0 && lane.not_before_ns <= now) consider(lane);
  if (eldest && now - eldest->ready_ns >= options_.aging_ns)
    return eldest->need_bytes <= free ? eldest : nullptr;
  return best;
}

void TaskBook::start(TaskRecord& record, int worker, std::int64_t now) {
  record.waiting = false;
  record.lane->waiting.erase(&record);
  ++record.lane->running;
  record.state = TaskState::running;
  record.started_ns = now;
  record.worker = worker;
  --pending_;
  ++running_;
  ++started_;
  wait_sum_ns_ += static_cast<double>(now - record.submitted_ns);
  if (record.probed) probed_.push_back(record.id);
  charged_ += record.charge();
  peak_charged_ = std::max(peak_charged_, charged_);
}

std::int64_t TaskBook::next_deadline() const {
  return deadlines_.empty() ? INT64_MAX : deadlines_.top().first;
}

std::int64_t TaskBook::next_opening(std::int64_t now) const {
  std::int64_t first = INT64_MAX;
  for (const auto& [name, lane] : paced_)
    if (!lane.waiting.empty() && lane.running == 0 && lane.not_before_ns > now)
      first = std::min(first, lane.not_before_ns);
  return first;
}

void TaskBook::set_use(TaskId id, std::int64_t bytes) {
  TaskRecord* record = table_.find(id);
  if (!record || record->state != TaskState::running) return;
  const std::int64_t before = record->charge();
  record->use_bytes = bytes;
  record->peak_use_bytes = std::max(record->peak_use_bytes, bytes);
  charged_ += record->charge() - before;
  peak_charged_ = std::max(peak_charged_, charged_);
}

// ---- ends ----

TaskRecord& TaskBook::known(TaskId id, const char* what) const {
  TaskRecord* record = table_.find(id);
  if (!record) fail(ErrorKind::value, what, ": no task ", id, "; it never was or is forgotten");
  return *record;
}

void TaskBook::end(TaskRecord& record, TaskState state, std::int64_t now) {
  record.state = state;
  record.ended_ns = now;
  record.payload = nullptr;
  --record.lane->unfinished;
  if (record.timed) --timed_;
  std::int64_t& count = state == TaskState::completed ? completed_
                        : state == TaskState::failed  ? failed_
                                                      : cancelled_;
  ++count;
  last_ended_ns_ = now;
  history_.push_back(record.id);
}

void TaskBook::forget_oldest() {
  for (; history_.size() > options_.history; history_.pop_front()) table_.forget(history_.front());
  tidy_deadlines();
}

// Ended tasks leave their limits behind; they go when they are most of the heap.
void TaskBook::tidy_deadlines() {
  if (deadlines_.size() <= 2 * timed_ + 64) return;
  decltype(deadlines_) kept;
  for (; !deadlines_.empty(); deadlines_.pop()) {
    const TaskRecord* record = table_.find(deadlines_.top().second);
    if (record && record->state <= TaskState::running) kept.push(deadlines_.top());
  }
  deadlines_ = std::move(kept);
}

// The same for all ways to end before the start.
void TaskBook::end_pending(TaskRecord& record, TaskState state, TaskCause cause, std::int64_t now,
                           TaskEnds& ends, TaskId blame) {
  if (record.waiting) record.lane->waiting.erase(&record);
  record.waiting = false;
  record.cause = cause;
  --pending_;
  ends.push_back({record.id, record.payload, state, cause, blame, false});
  end(record, state, now);
  if (cause != TaskCause::dependency) orphan_dependents(record, now, ends);
}

// Breadth first with a list of its own: a chain of dependents may be longer than the stack.
void TaskBook::orphan_dependents(TaskRecord& record, std::int64_t now, TaskEnds& ends) {
  Orphans orphans;
  const auto add = [&](TaskRecord& lost) {
    if (!lost.rarities) return;
    for (const TaskId id : std::exchange(lost.rarities->dependents, {}))
      orphans.emplace_back(id, lost.id);
  };
  add(record);
  for (std::size_t i = 0; i < orphans.size(); ++i) {
    const auto [id, blame] = orphans[i];
    TaskRecord* orphan = table_.find(id);
    if (!orphan || orphan->state != TaskState::pending) continue;
    end_pending(*orphan, TaskState::cancelled, TaskCause::dependency, now, ends, blame);
    add(*orphan);
  }
}

void TaskBook::release_dependents(TaskRecord& record, std::int64_t now) {
  if (!record.rarities) return;
  for (const TaskId id : std::exchange(record.rarities->dependents, {})) {
    TaskRecord* dependent = table_.find(id);
    if (dependent && dependent->state == TaskState::pending && --dependent->unmet == 0)
      make_ready(*dependent, now);
  }
}

TaskEnds TaskBook::finish(TaskId id, TaskState state, std::int64_t now) {
  TaskRecord& record = known(id, "finish");
  if (state <= TaskState::running)
    fail(ErrorKind::value, "finish: a task ends completed, failed or cancelled, not ",
         name_of(state));
  if (record.state != TaskState::running)
    fail(ErrorKind::runtime, "finish: task ", id, " is ", name_of(record.state), ", not running");
  if (record.cause == TaskCause::timeout) state = TaskState::failed;
  sort_submitted();  // those submitted earlier become ready earlier
  TaskEnds ends;
  TaskLane& lane = *record.lane;
  charged_ -= record.charge();
  if (record.probed) std::erase(probed_, id);
  --running_;
  --lane.running;
  ++ran_;
  if (lane.share < 1) {
    const double held_ns = static_cast<double>(now - record.started_ns) / lane.share;
    lane.not_before_ns = within_key(__int128{record.started_ns} + static_cast<__int128>(held_ns));
  }
  end(record, state, now);
  if (state == TaskState::completed) {
    release_dependents(record, now);
  } else {
    orphan_dependents(record, now, ends);
  }
  forget_oldest();
  return ends;
}

bool TaskBook::cancel(TaskId id, std::int64_t now, TaskEnds& ends) {
  TaskRecord& record = known(id, "cancel");
  if (record.state > TaskState::running) return false;
  if (record.state == TaskState::running) {
    if (record.cause == TaskCause::none) record.cause = TaskCause::request;
    return true;
  }
  end_pending(record, TaskState::cancelled, TaskCause::request, now, ends);
  forget_oldest();
  return true;
}

TaskEnds TaskBook::expire(std::int64_t now) {
  TaskEnds ends;
  for (; !deadlines_.empty() && deadlines_.top().first <= now; deadlines_.pop()) {
    TaskRecord* record = table_.find(deadlines_.top().second);
    if (!record || record->state > TaskState::running) continue;
    if (record->state == TaskState::pending) {
      end_pending(*record, TaskState::failed, TaskCause::timeout, now, ends);
      continue;
    }
    record->cause = TaskCause::timeout;
    ends.push_back({record->id, record->payload, TaskState::failed, TaskCause::timeout, 0, true});
    orphan_dependents(*record, now, ends);
  }
  forget_oldest();
  return ends;
}

TaskEnds TaskBook::close(bool cancel, std::int64_t now) {
  closed_ = true;
  TaskEnds ends;
  if (!cancel) return ends;
  table_.each([&](TaskRecord& record) {
    if (record.state == TaskState::pending)
      end_pending(record, TaskState::cancelled, TaskCause::request, now, ends);
    else if (record.state == TaskState::running && record.cause == TaskCause::none)
      record.cause = TaskCause::request;
  });
  forget_oldest();
  return ends;
}

// ---- figures ----

TaskFigures TaskBook::figures_of(const TaskRecord& record) {
  TaskFigures out;
  out.id = record.id;
  if (record.rarities) out.name = record.rarities->name;
  out.state = record.state;
  out.quality = record.quality;
  out.worker = record.worker;
  out.submitted_ns = record.submitted_ns;
  out.started_ns = record.started_ns;
  out.ended_ns = record.ended_ns;
  out.estimate_bytes = record.estimate_bytes;
  out.use_bytes = record.use_bytes;
  out.peak_use_bytes = record.peak_use_bytes;
  return out;
}

std::vector<TaskFigures> TaskBook::records() const {
  std::vector<TaskFigures> out;
  table_.each([&](const TaskRecord& record) { out.push_back(figures_of(record)); });
  return out;
}

SchedulerFigures TaskBook::figures() const {
  SchedulerFigures out{};
  out.submitted = static_cast<std::int64_t>(table_.next_id()) - 1;
  out.pending = pending_;
  out.running = running_;
  out.completed = completed_;
  out.failed = failed_;
  out.cancelled = cancelled_;
  out.charged_bytes = charged_;
  out.peak_charged_bytes = peak_charged_;
  const std::int64_t elapsed_ns = last_ended_ns_ - first_submitted_ns_;
  if (ran_ && elapsed_ns > 0)
    out.throughput_per_s = static_cast<double>(ran_) / (static_cast<double>(elapsed_ns) * 1e-9);
  if (started_) out.mean_wait_ns = wait_sum_ns_ / static_cast<double>(started_);
  std::vector<std::int64_t> waits;
  for (const TaskId id : history_)
    if (const TaskRecord* record = table_.find(id); record->started_ns >= 0)
      waits.push_back(record->started_ns - record->submitted_ns);
  if (!waits.empty()) {
    const std::size_t rank = (waits.size() * 95 + 99) / 100;  // nearest rank, 1-based
    const auto p95 = waits.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
    std::nth_element(waits.begin(), p95, waits.end());
    out.p95_wait_ns = *p95;
  }
  return out;
}

}  // namespace tw
