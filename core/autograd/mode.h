// Whether ops record themselves. One flag a thread.
#pragma once

namespace tw {

// initial-exec: the flag is read by every eager op and must cost one load.
extern thread_local bool grad_mode __attribute__((tls_model("initial-exec")));

class GradModeGuard {
 public:
  explicit GradModeGuard(bool enabled) : before_(grad_mode) { grad_mode = enabled; }
  ~GradModeGuard() { grad_mode = before_; }
  GradModeGuard(const GradModeGuard&) = delete;
  GradModeGuard& operator=(const GradModeGuard&) = delete;

 private:
  bool before_;
};

}  // namespace tw
