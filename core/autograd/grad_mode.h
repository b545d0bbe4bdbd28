// Whether ops record themselves, and in which type products run: a thread's own.
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

class AutocastGuard {
 public:
  explicit AutocastGuard(std::uint8_t autocast) : before_(modes.autocast) { set(autocast); }
  ~AutocastGuard() { set(before_); }
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  static void set(std::uint8_t autocast) {
    modes.autocast = autocast;
    modes.update_plain();
  }
  std::uint8_t before_;
};

}  // namespace tw
