// When the frontend is asked: at the start of a long launch and between its pieces, every 50 ms.
#include "core/runtime/interruption.h"

#include <ctime>
#include <utility>

#include "core/base/modes.h"

namespace tw {

void (*run_signal_handlers)() = nullptr;

namespace {

struct Early {
  bool may_end = false;
  bool must_not = false;
  bool (*failed)() = nullptr;  // of workers
  std::int64_t next_ns = 0;    // when the frontend is asked again
};
constinit thread_local Early early TW_STATIC_TLS;

// Read between pieces of work: a coarse clock costs a tenth of an exact one.
std::int64_t coarse_ns() {
#ifdef CLOCK_MONOTONIC_COARSE
  constexpr clockid_t clock = CLOCK_MONOTONIC_COARSE;
#else
  constexpr clockid_t clock = CLOCK_MONOTONIC;
#endif
  timespec now;
  clock_gettime(clock, &now);
  return std::int64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

MayEndEarly::MayEndEarly(bool allowed) : before_(early.may_end) {
  if (!allowed || !run_signal_handlers || early.must_not) return;
  early.may_end = true;
  try {
    end_early_if_asked();
  } catch (...) {
    early.may_end = before_;
    throw;
  }
}
MayEndEarly::~MayEndEarly() { early.may_end = before_; }

RunsToItsEnd::RunsToItsEnd() : before_(std::exchange(early.must_not, true)) {}
RunsToItsEnd::~RunsToItsEnd() { early.must_not = before_; }

void end_early_if_asked() {
  if (!early.may_end) return;
  if (early.failed) {
    if (early.failed()) throw JobFailed{};
    return;
  }
  const std::int64_t now = coarse_ns();
  if (now < early.next_ns) return;
  early.next_ns = now + kAskEveryNs;
  run_signal_handlers();
}

bool may_end_early() { return early.may_end && !early.failed; }

void end_early_where(bool (*failed)()) {
  early.failed = failed;
  early.may_end = true;
}

}  // namespace tw
