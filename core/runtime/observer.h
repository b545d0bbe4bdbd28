// Who observes what ops run: a list for each thread, whose members may hear from several threads.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/modes.h"
#include "core/runtime/registry.h"

namespace tw {

struct Observation {
  std::string op, kernel, isa, problem;  // problem: shapes and types as text
  std::vector<Candidate> candidates;
  double ns = 0, flops = 0, bytes = 0;
};

// Keeps what it hears until it is stopped, on any thread.
class Observer {
 public:
  // `alone`: observers that were there before hear nothing meanwhile.
  explicit Observer(bool alone) : alone(alone) {}
  void hear(const Observation& seen);
  // What was heard, in the order in which the ops ended; nothing is heard from then on.
  std::vector<Observation> stop();
  bool stopped() const;

  const bool alone;

 private:
  mutable std::mutex mutex_;
  std::vector<Observation> heard_;
  bool stopped_ = false;
};

// Of one thread, outermost first.
class Observers {
 public:
  void add(std::shared_ptr<Observer> observer) { list_.push_back(std::move(observer)); }
  void remove(const Observer* observer);
  void tell(const Observation& seen);
  bool empty() const { return list_.empty(); }

 private:
  std::vector<std::shared_ptr<Observer>> list_;
};

// Adds to, and removes from, those of this thread. One that another thread stopped goes with the
// next op that it would have heard of.
void observe(std::shared_ptr<Observer> observer);
void stop_observing(const Observer* observer);
// Tells this thread's observers.
void tell_observers(const Observation& seen);

}  // namespace tw
