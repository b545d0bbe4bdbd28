// Long launches may end before they are done: a frontend's handler of a signal (Ctrl-C) raises, and
// the error ends the launch between two pieces of its work.
#pragma once
#include <cstdint>

namespace tw {

// Runs the handlers of signals that have arrived and raises what they raise. The binding installs
// it; it is called without the frontend's lock. Null: no launch ends early.
extern void (*run_signal_handlers)();

// While it lives and is `allowed`, the launch at work on this thread may end early. Only for
// results that nobody holds yet, which go with the error: what changes memory in place runs to its
// end, so that nothing is left half-done.
class MayEndEarly {
 public:
  explicit MayEndEarly(bool allowed);
  ~MayEndEarly();
  MayEndEarly(const MayEndEarly&) = delete;
  MayEndEarly& operator=(const MayEndEarly&) = delete;

 private:
  const bool before_;
};

// Keeps the launches of a scope from ending early.
class RunsToItsEnd {
 public:
  RunsToItsEnd();
  ~RunsToItsEnd();
  RunsToItsEnd(const RunsToItsEnd&) = delete;
  RunsToItsEnd& operator=(const RunsToItsEnd&) = delete;

 private:
  const bool before_;
};

// Called between pieces of work, from some microseconds to a tenth of a second long: what does not
// pass through the thread pool, which calls it between chunks, calls it itself. Raises what a
// signal's handler raises; on a worker, ends its part of a job that has failed.
void end_early_if_asked();
// Whether the launch at work may, which somebody who waits for workers must ask now and then.
bool may_end_early();
inline constexpr std::int64_t kAskEveryNs = 50'000'000;

// What ends a worker's part; the job's own error is raised on the caller.
struct JobFailed {};
// Makes the present thread a worker, for good: its parts end early where the job has `failed`.
void end_early_where(bool (*failed)());

}  // namespace tw
