// Whether ops record themselves: a thread's own.
#pragma once

#include "core/base/modes.h"

namespace tw {

class GradModeGuard {
 public:
  explicit GradModeGuard(bool enabled) : before_(modes.grad) { modes.grad = enabled; }
  ~GradModeGuard() { modes.grad = before_; }
  GradModeGuard(const GradModeGuard&) = delete;
  GradModeGuard& operator=(const GradModeGuard&) = delete;

 private:
  bool before_;
};

}  // namespace tw
