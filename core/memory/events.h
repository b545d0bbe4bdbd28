// What happens while a program runs, as one stream of events: ops, tasks, and what happens to the
// memory of tensors. Observers get it, of one thread (`explain`) or of all (logs of memory,
// profiles); while nobody does, nothing is gathered.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/modes.h"
#include "core/base/optimizations.h"

namespace tw {

struct Kernel;

enum class EventKind : std::uint8_t { op, task, allocate, release, spill, restore, copy };
inline constexpr const char* kEventNames[] = {"op",    "task",    "allocate", "release",
                                              "spill", "restore", "copy"};

using EventKinds = std::uint8_t;  // bits
constexpr EventKinds kinds_of(EventKind kind) {
  return static_cast<EventKinds>(1 << static_cast<int>(kind));
}
inline constexpr EventKinds kMemoryEvents =
    kinds_of(EventKind::allocate) | kinds_of(EventKind::release) | kinds_of(EventKind::spill) |
    kinds_of(EventKind::restore);

// A part of a cost estimate.
struct CostTerm {
  const char* name;
  double ns;
};

// What the choice of a kernel weighs, with its verdict.
struct Candidate {
  const Kernel* kernel;
  bool accepted;
  std::string reason;                // why it refuses, or that another one is forced; else empty
  double cost_ns;                    // estimate; infinity where refused or unknown
  bool chosen;                       // at most one
  std::vector<CostTerm> terms = {};  // of the estimate, where the kernel tells them
};

struct Event {
  EventKind kind = EventKind::op;
  std::int64_t start_ns = 0, ns = 0;  // on the steady clock; how long it took
  std::int64_t thread = 0;            // the system's number of it
  const char* device = "cpu";
  std::string op;      // that ran, or in which memory changed; of a task, its name
  std::string module;  // of the program's model, by its path; empty where none runs
  std::string source;  // "file:line" of the user's program; empty where unknown
  double bytes = 0;    // that an op reads and writes; of a block

  // Ops; of a copy, `kernel` is its direction.
  std::string kernel, isa, problem;  // problem: shapes and types as text
  double flops = 0;
  std::vector<Candidate> candidates;
  OptimizationSet optimizations;     // that were used
  std::vector<const Kernel*> inner;  // kernels that solved parts of the problem

  // Memory.
  std::uint64_t block = 0;  // equal for all events of one block while it lives
  // Of tensors in memory after the event: those of the default pool when the first observer of
  // memory came, and all that were made or released since.
  std::int64_t live_bytes = 0;
  std::string tensor;  // that a block was allocated for: type and shape

  // Tasks.
  std::uint64_t task = 0;
  const char* state = "";
};

// Nanoseconds of the steady clock.
std::int64_t now_ns();

// Keeps what it observes until it is stopped, on any thread.
class Observer {
 public:
  struct Options {
    EventKinds kinds = kinds_of(EventKind::op);
    bool alone = false;  // observers that were there before get nothing meanwhile
    std::size_t capacity = static_cast<std::size_t>(-1);  // events; the oldest go first
  };
  explicit Observer(const Options& options) : options(options) {}
  void on_event(const Event& event);
  // What was observed, in the order in which it ended; nothing is from then on.
  std::deque<Event> stop();
  bool stopped() const;
  std::int64_t dropped() const;

  const Options options;
  const std::int64_t began_ns = now_ns();

 private:
  mutable std::mutex mutex_;
  std::deque<Event> observed_;
  std::int64_t dropped_ = 0;
  bool stopped_ = false;
};

// Outermost first.
class Observers {
 public:
  void add(std::shared_ptr<Observer> observer);
  void remove(const Observer* observer);
  // Whether one that wants to be alone kept it from those before.
  bool tell(const Event& event);
  bool empty() const { return list_.empty(); }
  EventKinds kinds() const { return kinds_; }

 private:
  void sum_up();
  std::vector<std::shared_ptr<Observer>> list_;
  EventKinds kinds_ = 0;
};

// Those of all threads.
void observe_everywhere(std::shared_ptr<Observer> observer);
void stop_observing_everywhere(const Observer* observer);
extern std::atomic<EventKinds> observed_everywhere;
// A bit of the same word, which every op asks for anyway: calls of all threads take no shortcut.
inline constexpr EventKinds kCallsInFull = 0x80;
static_assert(std::size(kEventNames) <= 7);
void set_calls_in_full(bool on);

// Asked by every op.
inline bool observed() {
  return (observed_everywhere.load(std::memory_order_relaxed) & ~kCallsInFull) || modes.observers;
}
inline bool is_observed(EventKinds kinds) {
  const EventKinds own = modes.observers ? modes.observers->kinds() : EventKinds{0};
  return (observed_everywhere.load(std::memory_order_relaxed) | own) & kinds;
}

// Adds what the thread knows: where it is in the program.
void locate(Event& event);
// The same where that was not done, and notifies who observes the kind.
void publish(Event& event);
// Publishes what devices have done and is not published yet, once it is done; installed by their
// floor.
extern void (*tell_late_events)();
// Where the user's program is, as "file:line"; installed by the frontend. The second is a text that
// stays, cheap to ask for from the same places again and again, of threads that hold no locks.
extern std::string (*source_position)();
extern const char* (*source_line)();

// ---- what the thread is doing, for the events of a scope; used only while somebody observes ----

class OpScope {
 public:
  explicit OpScope(const char* op);
  ~OpScope();
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;
  // Remembers the line of the program that asked for the op, unless another op did.
  void note_line() const;

 private:
  const char* const before_;
  const bool in_range_;
};
// The op that the thread runs, where ops name themselves, and the line that asked for it, where
// that was noted; else "".
const char* current_op();
const char* current_line();
// The path of the module whose forward runs; returns the one before.
std::string set_module(std::string path);

// What encloses the ops of threads that ask for it in ranges of a tool; installed by its floor.
extern void (*begin_op_range)(const char* op);
extern void (*end_op_range)();
// Whether this thread does; returns what was before.
bool set_op_ranges(bool wanted);

// ---- memory: seen by observers of all threads alone, as any thread may release a block ----

inline bool logs_memory() {
  return observed_everywhere.load(std::memory_order_relaxed) & kMemoryEvents;
}
// The tensor that the thread's next allocation is for.
void announce_tensor(std::string description);
// Returns what an allocation was for, as text. `source`: where the program was, if that cannot be
// asked for any more.
std::string note_memory(EventKind kind, const void* block, std::size_t bytes,
                        const char* device = "cpu", std::string source = {});

}  // namespace tw
