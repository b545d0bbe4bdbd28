#include "core/runtime/observer.h"

#include <algorithm>

#include "core/runtime/mode_changes.h"

namespace tw {

void Observer::hear(const Observation& seen) {
  const std::lock_guard lock(mutex_);
  if (!stopped_) heard_.push_back(seen);
}

std::vector<Observation> Observer::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  return std::move(heard_);
}

bool Observer::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

void Observers::remove(const Observer* observer) {
  std::erase_if(list_, [observer](const auto& each) { return each.get() == observer; });
}

void Observers::tell(const Observation& seen) {
  std::erase_if(list_, [](const auto& each) { return each->stopped(); });
  for (auto each = list_.rbegin(); each != list_.rend(); ++each) {
    (*each)->hear(seen);
    if ((*each)->alone) return;
  }
}

void observe(std::shared_ptr<Observer> observer) {
  ThreadModes& own = thread_modes();
  own.observers.add(std::move(observer));
  own.announce();
}

void stop_observing(const Observer* observer) {
  ThreadModes& own = thread_modes();
  own.observers.remove(observer);
  own.announce();
}

void tell_observers(const Observation& seen) {
  ThreadModes& own = thread_modes();
  own.observers.tell(seen);
  own.announce();
}

}  // namespace tw
