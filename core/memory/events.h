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
#include <string>
#include <vector>

#include "core/base/modes.h"
#include "core/base/optimizations.h"
#include "core/memory/clock.h"
#include "core/memory/holders.h"

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

// What only some events have, and what is too varied for texts that stay.
struct EventDetails {
  std::string name;  // of a task
  std::vector<Candidate> candidates;
  OptimizationSet optimizations;     // that were used
  std::vector<const Kernel*> inner;  // kernels that solved parts of the problem
};

// Two cache lines. Texts are ones that stay (texts.h), so that nothing is made while a program
// runs.
struct Event {
  EventKind kind = EventKind::op;
  bool backward = false;              // of a gradient; module and source are the forward op's
  std::int32_t thread = 0;            // the system's number of it
  std::int64_t start_ns = 0, ns = 0;  // on the steady clock; how long it took
  const char* device = "cpu";
  const char* op = "";      // that ran, or in which memory changed
  const char* module = "";  // of the program's model, by its path; empty where none runs
  const char* source = "";  // "file:line" of the user's program; empty where unknown
  double bytes = 0;         // that an op reads and writes; of a block

  const char* kernel = "";  // of an op; of a copy, its direction; of a task, its state
  const char* isa = "";
  const char* problem =
      "";  // of an op, or the tensor that a block is for: shapes and types as text
  double flops = 0;
  // Of a block, equal for all its events while it lives; of a task.
  std::uint64_t number = 0;
  // Of tensors in memory after the event: those of the default pool when the first observer of
  // memory came, and all that were made or released since.
  std::int64_t live_bytes = 0;
  std::shared_ptr<const EventDetails> details;  // null: none
};
static_assert(sizeof(Event) <= 128);

// Keeps what it observes until it is stopped, on any thread.
class Observer {
 public:
  struct Options {
    EventKinds kinds = kinds_of(EventKind::op);
    bool alone = false;  // observers that were there before get nothing meanwhile
    std::size_t capacity = static_cast<std::size_t>(-1);  // events; the oldest go first
  };
  explicit Observer(const Options& options);
  ~Observer();
  Observer(const Observer&) = delete;
  void on_event(const Event& event);
  // What was observed, in the order in which it ended; nothing is from then on.
  std::vector<Event> stop();
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }
  std::int64_t dropped() const;

  const Options options;
  const std::int64_t began_ns;

 private:
  // In chunks, so that no event moves as others come; the oldest is at `first_` of the first chunk.
  static constexpr std::size_t kChunk = 256;
  class Lock;
  mutable std::atomic_flag busy_;
  std::deque<std::unique_ptr<Event[]>> chunks_;
  std::size_t first_ = 0, count_ = 0;
  std::int64_t dropped_ = 0;
  std::atomic<bool> stopped_ = false;
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
// Where the user's program is, as "file:line"; installed by the frontend. A text that stays, cheap
// to ask for from the same places again and again. Runs none of the user's code.
extern const char* (*source_line)();

// ---- what the thread is doing, for the events of a scope; used only while somebody observes ----

class OpScope {
 public:
  explicit OpScope(const char* op);
  ~OpScope();
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;
  // Remembers the line of the program that asked for the op, unless another op did. Of an op of a
  // gradient it is the forward op's, where that is known.
  void note_line() const;

 private:
  const char* const before_;
  const bool in_range_;
};
// The op that the thread runs, where ops name themselves, and the line that asked for it, where
// that was noted; else "".
const char* current_op();
const char* current_line();
// The path of the module whose forward runs, a text that stays; returns the one before.
const char* set_module(const char* path);

// Where an op was asked for: what its node remembers for the ops of its gradient.
struct Origin {
  const char* line = "";
  const char* module = "";
};
Origin current_origin();
// While it lives, ops of this thread are those of a gradient. Empty texts: those of the program.
class OriginScope {
 public:
  explicit OriginScope(const Origin& origin);
  ~OriginScope();
  OriginScope(const OriginScope&) = delete;
  OriginScope& operator=(const OriginScope&) = delete;

 private:
  const Origin origin_;
  const Origin* const before_;
  const char* const module_before_;
};

// What encloses the ops of threads that ask for it in ranges of a tool; installed by its floor.
extern void (*begin_op_range)(const char* op);
extern void (*end_op_range)();
// Whether this thread does; returns what was before.
bool set_op_ranges(bool wanted);

// ---- memory: seen by observers of all threads alone, as any thread may release a block ----

inline bool logs_memory() {
  return observed_everywhere.load(std::memory_order_relaxed) & kMemoryEvents;
}
// The tensor that the thread's next allocation is for, a text that stays.
void announce_tensor(const char* description);
// For blocks that are large enough to be told in errors (holders.h), also while nothing is logged.
const char* announced_tensor();
// Of blocks that were allocated while memory is logged: of all on a device, or of one.
std::vector<Holding> logged_holdings(const char* device);
Holding logged_holding(const void* block);

// What an allocation was for.
struct Purpose {
  const char *tensor = "", *source = "";
  std::string text() const;
};
// `source`: where the program was, if that cannot be asked for any more; null: to be asked for.
Purpose note_memory(EventKind kind, const void* block, std::size_t bytes,
                    const char* device = "cpu", const char* source = nullptr);

}  // namespace tw
