#include "core/memory/events.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <utility>

#include "core/base/fork.h"
#include "core/memory/heap.h"

namespace tw {

std::atomic<EventKinds> observed_everywhere{0};
std::string (*source_position)() = nullptr;
const char* (*source_line)() = nullptr;
void (*tell_late_events)() = nullptr;
void (*begin_op_range)(const char* op) = nullptr;
void (*end_op_range)() = nullptr;

namespace {

// What each launch of a GPU asks for: see Modes.
struct Asked {
  const char* op = "";
  const char* line = "";  // of the outermost op
  bool in_ranges = false;
};
constinit thread_local Asked asked TW_STATIC_TLS;

// Where the thread is in the program, beside that.
struct ProgramPosition {
  std::string module;
  std::string tensor;  // of the next allocation
  std::int64_t thread = syscall(SYS_gettid);
};
ProgramPosition& position() {
  static thread_local ProgramPosition own;
  return own;
}

struct Everywhere {
  std::mutex mutex;
  Observers observers;
  // While memory is observed: bytes of all tensors, and the numbers of their blocks.
  std::int64_t live_bytes = 0;
  std::unordered_map<const void*, std::uint64_t> numbers;
  std::uint64_t last_number = 0;

  void announce() {
    const EventKinds kinds = observers.kinds();
    if ((kinds & kMemoryEvents) && !logs_memory()) {
      live_bytes = pool_stats().live_bytes;
      numbers.clear();
    }
    observed_everywhere = static_cast<EventKinds>(kinds | (observed_everywhere & kCallsInFull));
  }
};

// Never destroyed: tensors are released while the process exits. A forked child goes on with the
// observers of its own copy.
Everywhere& everywhere() {
  static Everywhere* const instance = new Everywhere;
  return *instance;
}
const AtFork guarded(
    ForkOrder::events, [] { everywhere().mutex.lock(); }, [] { everywhere().mutex.unlock(); },
    [] { position().thread = syscall(SYS_gettid); });

void tell_own(const Event& event, bool& alone) {
  alone = modes.observers->tell(event);
  if (!modes.observers->empty()) return;
  modes.observers = nullptr;
  modes.update_plain();
}

}  // namespace

std::int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void set_calls_in_full(bool on) {
  const std::lock_guard lock(everywhere().mutex);
  const EventKinds kinds = observed_everywhere & static_cast<EventKinds>(~kCallsInFull);
  observed_everywhere = static_cast<EventKinds>(kinds | (on ? kCallsInFull : 0));
}

// ---- observers ----

void Observer::on_event(const Event& event) {
  if (!(options.kinds & kinds_of(event.kind))) return;
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  observed_.push_back(event);
  if (observed_.size() <= options.capacity) return;
  observed_.pop_front();
  ++dropped_;
}

std::deque<Event> Observer::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  return std::move(observed_);
}

bool Observer::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

std::int64_t Observer::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void Observers::sum_up() {
  kinds_ = 0;
  for (const auto& each : list_) kinds_ |= each->options.kinds;
}

void Observers::add(std::shared_ptr<Observer> observer) {
  list_.push_back(std::move(observer));
  sum_up();
}

void Observers::remove(const Observer* observer) {
  std::erase_if(list_, [observer](const auto& each) { return each.get() == observer; });
  sum_up();
}

bool Observers::tell(const Event& event) {
  if (std::erase_if(list_, [](const auto& each) { return each->stopped(); })) sum_up();
  for (auto each = list_.rbegin(); each != list_.rend(); ++each) {
    (*each)->on_event(event);
    if ((*each)->options.alone) return true;
  }
  return false;
}

void observe_everywhere(std::shared_ptr<Observer> observer) {
  Everywhere& all = everywhere();
  const std::lock_guard lock(all.mutex);
  all.observers.add(std::move(observer));
  all.announce();
}

void stop_observing_everywhere(const Observer* observer) {
  Everywhere& all = everywhere();
  const std::lock_guard lock(all.mutex);
  all.observers.remove(observer);
  all.announce();
}

// ---- events ----

void locate(Event& event) {
  const ProgramPosition& here = position();
  event.thread = here.thread;
  event.module = here.module;
  if (event.source.empty() && source_position) event.source = source_position();
}

void publish(Event& event) {
  if (!event.thread) locate(event);
  bool alone = false;
  if (modes.observers) tell_own(event, alone);
  if (alone || !(observed_everywhere & kinds_of(event.kind))) return;
  Everywhere& all = everywhere();
  const std::lock_guard lock(all.mutex);
  all.observers.tell(event);
}

OpScope::OpScope(const char* op)
    : before_(std::exchange(asked.op, op)), in_range_(asked.in_ranges) {
  if (in_range_) [[unlikely]]
    begin_op_range(op);
}
OpScope::~OpScope() {
  asked.op = before_;
  if (in_range_) [[unlikely]]
    end_op_range();
}
bool set_op_ranges(bool wanted) { return std::exchange(asked.in_ranges, wanted); }
void OpScope::note_line() const {
  if (!*before_ && source_line) asked.line = source_line();
}
const char* current_op() { return asked.op; }
const char* current_line() { return *asked.op ? asked.line : ""; }

std::string set_module(std::string path) {
  return std::exchange(position().module, std::move(path));
}

void announce_tensor(std::string description) { position().tensor = std::move(description); }

std::string note_memory(EventKind kind, const void* block, std::size_t bytes, const char* device,
                        std::string source) {
  ProgramPosition& here = position();
  Event event;
  event.kind = kind;
  event.device = device;
  event.thread = here.thread;
  event.op = asked.op;
  event.module = here.module;
  event.source = std::move(source);
  if (event.source.empty() && source_position) event.source = source_position();
  if (kind == EventKind::allocate) event.tensor = std::exchange(here.tensor, {});
  const auto charged = static_cast<std::int64_t>(charged_bytes(bytes));
  const bool grows = kind == EventKind::allocate || kind == EventKind::restore;
  event.bytes = static_cast<double>(charged);
  Everywhere& all = everywhere();
  const std::lock_guard lock(all.mutex);
  if (!logs_memory()) return "";
  all.live_bytes += grows ? charged : -charged;
  event.live_bytes = all.live_bytes;
  const auto [entry, added] = all.numbers.try_emplace(block, 0);
  if (added) entry->second = ++all.last_number;
  event.block = entry->second;
  if (kind == EventKind::release) all.numbers.erase(entry);
  event.start_ns = now_ns();
  all.observers.tell(event);
  if (event.tensor.empty()) return event.source;
  return event.source.empty() ? event.tensor : event.tensor + " at " + event.source;
}

}  // namespace tw
