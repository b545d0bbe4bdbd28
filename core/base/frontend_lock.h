// The lock of the language above (Python's), under which tensors are touched. The binding installs
// it; kernels that take long and waits go on without it.
#pragma once
#include <atomic>

#include "core/base/modes.h"

namespace tw {

// Installed before any other thread asks; null: there is none. `release` returns null where the
// thread does not hold the lock.
struct FrontendLock {
  void* (*release)();
  void (*acquire)(void* state);
};
inline FrontendLock frontend_lock = {nullptr, nullptr};

// Gives the lock away for a scope, where the thread holds it and may.
class Unlocked {
 public:
  explicit Unlocked(bool wanted = true)
      : state_(wanted && modes.unlocks && frontend_lock.release ? frontend_lock.release()
                                                                : nullptr) {}
  ~Unlocked() {
    if (state_) frontend_lock.acquire(state_);
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  explicit operator bool() const { return state_; }

 private:
  void* state_;
};

// Keeps the lock for a scope: what other threads would do in between must not happen.
class LockKept {
 public:
  LockKept() : before_(modes.unlocks) { modes.unlocks = false; }
  ~LockKept() { modes.unlocks = before_; }
  LockKept(const LockKept&) = delete;
  LockKept& operator=(const LockKept&) = delete;

 private:
  const bool before_;
};

// A scope in the middle of a call in which others may call ops: what short calls share, and count
// on keeping the lock for, must stay as it is meanwhile (core/ops/engine/call_cache.h).
class MidCall {
 public:
  MidCall() { scopes_.fetch_add(1, std::memory_order_relaxed); }
  ~MidCall() { scopes_.fetch_sub(1, std::memory_order_relaxed); }
  MidCall(const MidCall&) = delete;
  MidCall& operator=(const MidCall&) = delete;
  // Asked under the lock.
  static bool any() { return scopes_.load(std::memory_order_relaxed) > 0; }

 private:
  inline static std::atomic<int> scopes_{0};
};

// A wait in the middle of a call, without the lock.
class UnlockedWait {
  const MidCall mid_;  // begins before the lock is given away, ends once it is back
  const Unlocked unlocked_;
};

}  // namespace tw
