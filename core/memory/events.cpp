#include "core/memory/events.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>

#include "core/base/fork.h"
#include "core/memory/heap.h"

namespace tw {

std::atomic<EventKinds> observed_everywhere{0};
const char* (*source_line)() = nullptr;
void (*tell_late_events)() = nullptr;
void (*begin_op_range)(const char* op) = nullptr;
void (*end_op_range)() = nullptr;

namespace {

// What each launch of a GPU asks for, and each event: see Modes.
struct Asked {
  const char* op = "";
  const char* line = "";  // of the outermost op
  bool in_ranges = false;
  const char* module = "";
  const char* tensor = "";         // of the next allocation
  const Origin* origin = nullptr;  // of the gradient that is computed
  std::int32_t thread = 0;         // 0: not asked for yet
};
constinit thread_local Asked asked TW_STATIC_TLS;

std::int32_t thread_number() {
  if (!asked.thread) asked.thread = static_cast<std::int32_t>(syscall(SYS_gettid));
  return asked.thread;
}

// Of the op that runs, whose line was noted; else of the program.
const char* line_now() {
  if (*asked.op && *asked.line) return asked.line;
  if (asked.origin && *asked.origin->line) return asked.origin->line;
  return source_line ? source_line() : "";
}

struct Everywhere {
  std::mutex mutex;
  Observers observers;
  // While memory is observed: bytes of all tensors, and the numbers of their blocks.
  std::int64_t live_bytes = 0;
  struct Logged {
    std::uint64_t number;
    const char* device = "";
    Holding holding;
  };
  using Numbers = std::unordered_map<const void*, Logged>;
  Numbers numbers;
  std::vector<Numbers::node_type> spare;  // nodes of blocks that are gone
  std::uint64_t last_number = 0;

  Logged& entry_of(const void* block) {
    if (const auto known = numbers.find(block); known != numbers.end()) return known->second;
    const Logged fresh{++last_number, "", {}};
    if (spare.empty()) return numbers.emplace(block, fresh).first->second;
    Numbers::node_type node = std::move(spare.back());
    spare.pop_back();
    node.key() = block;
    node.mapped() = fresh;
    return numbers.insert(std::move(node)).position->second;
  }
  void enter(Event& event, const void* block) {
    if (event.kind == EventKind::release) return static_cast<void>(event.number = forget(block));
    Logged& entry = entry_of(block);
    event.number = entry.number;
    if (event.kind != EventKind::allocate) return;
    entry.device = event.device;
    entry.holding = {event.problem, event.op, event.module, event.source, event.bytes};
  }
  // The last time that the block is heard of.
  std::uint64_t forget(const void* block) {
    const auto known = numbers.find(block);
    if (known == numbers.end()) return ++last_number;
    spare.push_back(numbers.extract(known));
    return spare.back().mapped().number;
  }

  void announce() {
    const EventKinds kinds = observers.kinds();
    if ((kinds & kMemoryEvents) && !logs_memory()) {
      live_bytes = pool_stats().live_bytes;
      numbers.clear();
    }
    if (!(kinds & kMemoryEvents)) spare.clear();
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
    [] { asked.thread = 0; });

void tell_own(const Event& event, bool& alone) {
  alone = modes.observers->tell(event);
  if (!modes.observers->empty()) return;
  modes.observers = nullptr;
  modes.update_plain();
}

}  // namespace

void set_calls_in_full(bool on) {
  const std::lock_guard lock(everywhere().mutex);
  const EventKinds kinds = observed_everywhere & static_cast<EventKinds>(~kCallsInFull);
  observed_everywhere = static_cast<EventKinds>(kinds | (on ? kCallsInFull : 0));
}

// ---- observers ----

static std::atomic<int> living{0};

Observer::Observer(const Options& options)
    : options(options), began_ns(living++ ? now_ns() : (set_cycle_clock(), now_ns())) {}
Observer::~Observer() { --living; }

// Held for as long as an event takes to copy.
class Observer::Lock {
 public:
  explicit Lock(const Observer& observer) : busy_(observer.busy_) {
    while (busy_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  ~Lock() { busy_.clear(std::memory_order_release); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  std::atomic_flag& busy_;
};

void Observer::on_event(const Event& event) {
  if (!(options.kinds & kinds_of(event.kind))) return;
  const Lock lock(*this);
  if (stopped_.load(std::memory_order_relaxed)) return;
  const std::size_t end = first_ + count_;
  if (end == chunks_.size() * kChunk) chunks_.push_back(std::make_unique<Event[]>(kChunk));
  chunks_[end / kChunk][end % kChunk] = event;
  if (++count_ <= options.capacity) return;
  --count_;
  ++dropped_;
  if (++first_ < kChunk) return;
  chunks_.push_back(std::move(chunks_.front()));
  chunks_.pop_front();
  first_ = 0;
}

std::vector<Event> Observer::stop() {
  const Lock lock(*this);
  stopped_.store(true, std::memory_order_release);
  std::vector<Event> observed;
  observed.reserve(count_);
  for (std::size_t i = first_; i < first_ + count_; ++i)
    observed.push_back(std::move(chunks_[i / kChunk][i % kChunk]));
  chunks_.clear();
  first_ = count_ = 0;
  return observed;
}

std::int64_t Observer::dropped() const {
  const Lock lock(*this);
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
  event.thread = thread_number();
  event.backward = asked.origin != nullptr;
  event.module = asked.module;
  if (!*event.source) event.source = line_now();
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
  if (!*before_) asked.line = "";
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
  if (!*before_) asked.line = line_now();
}
const char* current_op() { return asked.op; }
const char* current_line() { return *asked.op ? asked.line : ""; }

const char* set_module(const char* path) { return std::exchange(asked.module, path); }

Origin current_origin() { return {line_now(), asked.module}; }

OriginScope::OriginScope(const Origin& origin)
    : origin_(origin),
      before_(std::exchange(asked.origin, &origin_)),
      module_before_(asked.module) {
  if (*origin.module) asked.module = origin.module;
}
OriginScope::~OriginScope() {
  asked.origin = before_;
  asked.module = module_before_;
}

void announce_tensor(const char* description) { asked.tensor = description; }
const char* announced_tensor() {
  return logs_memory() ? asked.tensor : std::exchange(asked.tensor, "");
}

std::vector<Holding> logged_holdings(const char* device) {
  Everywhere& all = everywhere();
  const std::lock_guard lock(all.mutex);
  std::vector<Holding> found;
  if (!logs_memory()) return found;
  for (const auto& [block, entry] : all.numbers)
    if (std::string_view(entry.device) == device) found.push_back(entry.holding);
  return found;
}
Holding logged_holding(const void* block) {
  Everywhere& all = everywhere();
  const std::lock_guard lock(all.mutex);
  const auto known = all.numbers.find(block);
  return logs_memory() && known != all.numbers.end() ? known->second.holding : Holding();
}

std::string Purpose::text() const {
  if (!*tensor || !*source) return *tensor ? tensor : source;
  return std::string(tensor) + " at " + source;
}

Purpose note_memory(EventKind kind, const void* block, std::size_t bytes, const char* device,
                    const char* source) {
  Event event;
  event.kind = kind;
  event.device = device;
  event.op = asked.op;
  if (source) event.source = source;
  locate(event);
  if (kind == EventKind::allocate) event.problem = std::exchange(asked.tensor, "");
  const auto charged = static_cast<std::int64_t>(charged_bytes(bytes));
  const bool grows = kind == EventKind::allocate || kind == EventKind::restore;
  event.bytes = static_cast<double>(charged);
  Everywhere& all = everywhere();
  const std::lock_guard lock(all.mutex);
  if (!logs_memory()) return {};
  all.live_bytes += grows ? charged : -charged;
  event.live_bytes = all.live_bytes;
  all.enter(event, block);
  event.start_ns = now_ns();
  all.observers.tell(event);
  return {event.problem, event.source};
}

}  // namespace tw
