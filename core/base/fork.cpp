// The process's one fork handler, over a list that is complete once the library is loaded.
#include "core/base/fork.h"

#include <pthread.h>

namespace tw {

namespace {

struct Guarded {
  void (*lock)();
  void (*unlock)();
  void (*renew)();
};
constinit Guarded guarded[kForkPlaces] = {};

void call(void (*step)()) {
  if (step) step();
}
void lock_all() {
  for (const Guarded& each : guarded) call(each.lock);
}
void unlock_all() {
  for (int i = kForkPlaces; i-- > 0;) call(guarded[i].unlock);
}
void renew_all() {
  unlock_all();
  for (int i = kForkPlaces; i-- > 0;) call(guarded[i].renew);
}

}  // namespace

AtFork::AtFork(ForkOrder place, void (*lock)(), void (*unlock)(), void (*renew)()) {
  static const int registered = pthread_atfork(lock_all, unlock_all, renew_all);
  static_cast<void>(registered);
  guarded[static_cast<int>(place)] = {lock, unlock, renew};
}

}  // namespace tw
