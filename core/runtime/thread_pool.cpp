// Workers that spin, then park on a futex. Each has chunks of a job that it claims first, the same
// ones in job after job, whose data its caches may still hold; then it helps with the others'. So
// the caller never waits for a worker that has not started. After Markatos and LeBlanc, "Using
// processor affinity in loop scheduling on shared-memory multiprocessors" (1994).
#include "core/runtime/thread_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#ifdef __linux__
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "core/base/cpu_info.h"
#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/float_environment.h"
#include "core/base/fork.h"
#include "core/base/modes.h"
#include "core/runtime/choice.h"
#include "core/runtime/interruption.h"

namespace tw {

namespace {

using Word = std::atomic<std::uint32_t>;
using Clock = std::chrono::steady_clock;

// Longer than the gap between the kernels of an eager step, shorter than a scheduler's tick: what
// a woken thread costs (about 20 us) is the most that spinning may waste.
constexpr auto kSpin = std::chrono::microseconds(40);
// Between two looks at a word where the system cannot wait for it for a limited time.
[[maybe_unused]] constexpr std::chrono::nanoseconds kShortSleep = std::chrono::milliseconds(1);
// Whoever starts wakes this many others, so that waking 64 workers takes three steps, not 64.
constexpr int kFanOut = 4;

inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Waits for done() without leaving the processor; false when the time is up.
template <class Done> bool spin_until(bool allowed, Done&& done) {
  if (done()) return true;
  if (!allowed || is_off_for_all(Optimization::spin_then_park)) return false;
  const auto end = Clock::now() + kSpin;
  do {
    for (int i = 0; i < 8; ++i) {  // a look at the clock costs as much as one pause or two
      pause();
      if (done()) return true;
    }
  } while (Clock::now() < end);
  return false;
}

void park_while(Word& word, std::uint32_t value) {
#ifdef __linux__
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
#else
  word.wait(value);
#endif
}

// The same, but returns after `ns` at the latest.
void park_for(Word& word, std::uint32_t value, std::int64_t ns) {
#ifdef __linux__
  const timespec limit = {0, ns};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &limit, nullptr, 0);
#else
  if (word.load(std::memory_order_relaxed) == value)
    std::this_thread::sleep_for(std::min(std::chrono::nanoseconds(ns), kShortSleep));
#endif
}

void unpark(Word& word) {
#ifdef __linux__
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
#else
  word.notify_one();
#endif
}

// Where workers may run. A woken thread tends to land on its waker's processor and to wait there
// until the waker sleeps (270 us and up to 5 ms were measured), so its mask leaves that one out
// until it runs.
class Placement {
 public:
#ifdef __linux__
  Placement() { valid_ = sched_getaffinity(0, sizeof all_, &all_) == 0 && CPU_COUNT(&all_) > 1; }
  void keep_away(pid_t thread) const {
    const int here = sched_getcpu();
    if (!valid_ || here < 0 || here >= CPU_SETSIZE) return;
    cpu_set_t others = all_;
    CPU_CLR(here, &others);
    if (CPU_COUNT(&others)) sched_setaffinity(thread, sizeof others, &others);
  }
  // A worker that stays bound loses half its speed beside a foreign spinner.
  void let_roam() const {
    if (valid_) sched_setaffinity(0, sizeof all_, &all_);
  }
  // The processor of one thread, in turn; the first is the caller's. -1 where there is no choice.
  int processor(int index) const {
    if (!valid_) return -1;
    int left = index % CPU_COUNT(&all_);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &all_) && left-- == 0) return cpu;
    return -1;
  }
  void bind(pid_t thread, int processor) const {
    if (processor < 0) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    sched_setaffinity(thread, sizeof one, &one);
  }
  static int here() { return sched_getcpu(); }
  using Thread = pid_t;
  static Thread self() { return static_cast<pid_t>(syscall(SYS_gettid)); }

 private:
  cpu_set_t all_;
  bool valid_ = false;
#else
  using Thread = int;
  void keep_away(Thread) const {}
  void let_roam() const {}
  int processor(int) const { return -1; }
  void bind(Thread, int) const {}
  static int here() { return -1; }
  static Thread self() { return 0; }
#endif
};

enum Signal : std::uint32_t { kIdle, kWork, kParked, kMoved, kStop };

struct alignas(128) Worker {  // two cache lines: the neighbour is fetched along
  Word signal{kIdle};
  std::atomic<Placement::Thread> thread{0};
  int index;
  bool bound;  // to `processor`; as long as the thread lives
  std::atomic<int> processor;
  pthread_t handle;
};

// Chunks that one thread claims first; a cache line pair of its own.
struct alignas(128) Share {
  std::atomic<std::int64_t> next{0};
  std::int64_t end = 0;
};

struct Job {
  ChunkBody body;
  void* context;
  int helpers;           // workers 1 .. helpers are asked to help
  const Choice* choice;  // the caller's: kernels ask for the instruction set as they run
  std::exception_ptr error;
};

thread_local int this_worker = 0;
thread_local bool inside_body = false;

class ThreadPool {
 public:
  // Of the pool's `threads` at most `most` take part.
  void run(std::int64_t chunks, ChunkBody body, void* context, int threads, int most);
  // Sole use of the workers until the guard goes out of scope; false where another thread has it.
  class Turn {
   public:
    explicit Turn(ThreadPool& pool)
        : pool_(pool), mine_(!pool.busy_.exchange(true, std::memory_order_acquire)) {}
    ~Turn() {
      if (mine_) pool_.busy_.store(false, std::memory_order_release);
    }
    Turn(const Turn&) = delete;
    explicit operator bool() const { return mine_; }

   private:
    ThreadPool& pool_;
    const bool mine_;
  };
  void resize(int workers);
  bool fits(int workers) const;
  void forget_after_fork();
  int workers() const { return started_; }
  bool job_failed() const { return failed_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kOpen = 1u << 31, kWaiting = 1u << 30, kInside = kWaiting - 1;

  static void* main_of(void* worker);
  void serve(Worker& self);
  std::uint32_t next_signal(Worker& self);
  bool start(int index);
  void stop(Worker& worker);
  void wake(Worker& worker);
  void make_room();
  void wake_children(int parent);
  void share_out(std::int64_t chunks, int threads);
  void work(int share);
  void drop_rest();
  void wait_for_workers(std::uint32_t seen);
  void close_and_wait();
  void leave_gate();

  std::unique_ptr<Worker> workers_[kMostThreads];  // [0] stays empty: the caller
  int started_ = 0;                                // workers 1 .. started_ exist
  std::atomic<bool> spin_{false};
  bool bound_ = false;  // whether workers are; for whoever has the turn
  int spare_ = -1;      // the processor that no worker is bound to
  std::unique_ptr<Placement> placement_;
  Job job_;
  alignas(128) std::atomic<bool> busy_{false};
  // Open while a job may be joined; counts the workers inside, who alone may read job_.
  alignas(128) Word gate_{0};
  alignas(128) std::unique_ptr<Share[]> shares_;  // of the caller and the workers
  std::atomic<bool> failed_{false};
};

std::atomic<int> thread_count{0};  // 0: not asked for yet
constexpr int kUnknown = -1;
std::atomic<int> pinning{kUnknown};

// Never destroyed: workers may still spin while the process exits.
ThreadPool& pool() {
  static ThreadPool* const instance = new ThreadPool;
  return *instance;
}
const AtFork renewed(ForkOrder::thread_pool, nullptr, nullptr, [] { pool().forget_after_fork(); });

// Only the forking thread lives on in the child. The workers' objects are used again.
void ThreadPool::forget_after_fork() {
  started_ = 0;
  gate_.store(0, std::memory_order_relaxed);
  busy_.store(false, std::memory_order_relaxed);
  inside_body = false;
  this_worker = 0;
}

bool ThreadPool::start(int index) {
  if (!workers_[index]) workers_[index] = std::make_unique<Worker>();
  Worker& worker = *workers_[index];
  worker.index = index;
  worker.bound = bound_;
  worker.processor = placement_->processor(index);
  worker.signal.store(kIdle, std::memory_order_relaxed);
  worker.thread.store(0, std::memory_order_relaxed);
  sigset_t all, before;  // the new thread inherits the mask: signals belong to the user's threads
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool created = pthread_create(&worker.handle, nullptr, main_of, &worker) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return created;
}

void ThreadPool::stop(Worker& worker) {
  worker.signal.store(kStop, std::memory_order_release);
  unpark(worker.signal);
  pthread_join(worker.handle, nullptr);
}

bool ThreadPool::fits(int workers) const {
  return started_ == workers && bound_ == thread_pinning();
}

// Where the system refuses more threads, fewer do the work and num_threads() tells so.
void ThreadPool::resize(int workers) {
  if (!placement_) placement_ = std::make_unique<Placement>();
  const int kept = bound_ == thread_pinning() ? workers : 0;
  while (started_ > kept) stop(*workers_[started_--]);
  bound_ = thread_pinning();
  if (kept == 0) spare_ = placement_->processor(0);
  shares_ = std::make_unique<Share[]>(workers + 1);
  while (started_ < workers && start(started_ + 1)) ++started_;
  if (started_ < workers) thread_count.store(started_ + 1, std::memory_order_relaxed);
  spin_.store(started_ < cpu_info().usable_processors, std::memory_order_relaxed);
}

void ThreadPool::wake(Worker& worker) {
  std::uint32_t seen = worker.signal.load(std::memory_order_acquire);
  if (seen == kWork || seen == kMoved) return;  // on its way
  if (seen == kIdle &&
      worker.signal.compare_exchange_strong(seen, kWork, std::memory_order_acq_rel))
    return;
  if (!worker.bound) placement_->keep_away(worker.thread.load(std::memory_order_relaxed));
  worker.signal.store(kMoved, std::memory_order_release);
  unpark(worker.signal);
}

// A worker that is bound to the processor the caller runs on would wait for the caller's chunks: it
// takes the place that the caller has left.
void ThreadPool::make_room() {
  const int here = Placement::here();
  if (here == spare_) return;
  for (int i = 1; i <= started_; ++i) {
    Worker& worker = *workers_[i];
    if (worker.processor != here) continue;
    worker.processor = std::exchange(spare_, here);
    if (const auto thread = worker.thread.load()) placement_->bind(thread, worker.processor);
    return;
  }
}

void ThreadPool::wake_children(int parent) {
  const int first = parent * kFanOut + 1, last = std::min(first + kFanOut - 1, job_.helpers);
  for (int i = first; i <= last; ++i) wake(*workers_[i]);
}

void ThreadPool::share_out(std::int64_t chunks, int threads) {
  const bool owned = uses(Optimization::chunk_ownership);  // else all take from the last one
  for (int i = 0; i < threads; ++i) {
    shares_[i].next.store(owned ? chunks * i / threads : 0, std::memory_order_relaxed);
    shares_[i].end = owned ? chunks * (i + 1) / threads : i + 1 == threads ? chunks : 0;
  }
}

// Claims chunks until none is left, those of one share first. After an exception the rest is
// dropped.
void ThreadPool::work(int share) {
  const Job& job = job_;
  Share* const all = shares_.get();
  const int shares = job.helpers + 1;
  try {
    for (int i = 0; i < shares; ++i) {
      Share& from = all[(share + i) % shares];
      while (from.next.load(std::memory_order_relaxed) < from.end) {
        end_early_if_asked();
        const std::int64_t chunk = from.next.fetch_add(1, std::memory_order_relaxed);
        if (chunk >= from.end) break;
        job.body(job.context, chunk);
      }
    }
  } catch (...) {
    drop_rest();
  }
}

// Called with the exception in flight; the first one is the job's.
void ThreadPool::drop_rest() {
  for (int i = 0; i <= job_.helpers; ++i)
    shares_[i].next.store(shares_[i].end, std::memory_order_relaxed);
  if (!failed_.exchange(true, std::memory_order_relaxed)) job_.error = std::current_exception();
}

void ThreadPool::leave_gate() {
  const std::uint32_t before = gate_.fetch_sub(1, std::memory_order_acq_rel);
  if ((before & kInside) == 1 && (before & kWaiting)) unpark(gate_);
}

// After this no worker reads job_: those inside have left and latecomers find the gate shut.
void ThreadPool::close_and_wait() {
  gate_.fetch_and(~kOpen, std::memory_order_acq_rel);
  const auto empty = [&] { return !(gate_.load(std::memory_order_acquire) & kInside); };
  if (spin_until(spin_.load(std::memory_order_relaxed), empty)) return;
  gate_.fetch_or(kWaiting, std::memory_order_acq_rel);
  for (;;) {
    const std::uint32_t seen = gate_.load(std::memory_order_acquire);
    if (!(seen & kInside)) break;
    wait_for_workers(seen);
  }
  gate_.fetch_and(~kWaiting, std::memory_order_relaxed);
}

void ThreadPool::wait_for_workers(std::uint32_t seen) {
  if (!may_end_early()) return park_while(gate_, seen);
  park_for(gate_, seen, kAskEveryNs);
  try {
    end_early_if_asked();
  } catch (...) {
    drop_rest();
  }
}

void ThreadPool::run(std::int64_t chunks, ChunkBody body, void* context, int threads, int most) {
  if (!fits(threads - 1)) resize(threads - 1);
  const auto helpers =
      static_cast<int>(std::min({std::int64_t(started_), chunks - 1, std::int64_t(most) - 1}));
  job_ = {body, context, helpers, modes.choice, nullptr};
  share_out(chunks, helpers + 1);
  failed_.store(false, std::memory_order_relaxed);
  gate_.fetch_or(kOpen, std::memory_order_release);
  const FloatEnvironment environment;  // as the workers have
  if (bound_) make_room();
  wake_children(0);
  inside_body = true;
  work(0);
  inside_body = false;
  close_and_wait();
  if (job_.error) std::rethrow_exception(std::exchange(job_.error, nullptr));
}

void* ThreadPool::main_of(void* argument) {
  Worker& self = *static_cast<Worker*>(argument);
  this_worker = self.index;
  inside_body = true;  // what a body starts runs inline
  end_early_where([] { return pool().job_failed(); });
  self.thread.store(Placement::self());
#ifdef __linux__
  pthread_setname_np(pthread_self(), ("tilewright-" + std::to_string(self.index)).c_str());
#endif
  pool().serve(self);
  return nullptr;
}

// Takes the next signal; spins for it, then parks.
std::uint32_t ThreadPool::next_signal(Worker& self) {
  const auto given = [&] { return self.signal.load(std::memory_order_relaxed) != kIdle; };
  if (!spin_until(spin_.load(std::memory_order_relaxed), given)) {
    std::uint32_t expected = kIdle;
    self.signal.compare_exchange_strong(expected, kParked, std::memory_order_release,
                                        std::memory_order_relaxed);
    while (self.signal.load(std::memory_order_relaxed) == kParked) park_while(self.signal, kParked);
  }
  return self.signal.exchange(kIdle, std::memory_order_acq_rel);
}

void ThreadPool::serve(Worker& self) {
  if (self.bound) placement_->bind(self.thread, self.processor);
  for (;;) {
    const std::uint32_t signal = next_signal(self);
    if (signal == kStop) return;
    if (gate_.fetch_add(1, std::memory_order_acq_rel) & kOpen) {
      wake_children(self.index);
      modes.choice = job_.choice;
      const FloatEnvironment environment;  // a new thread has that of its maker
      work(self.index);
    }
    leave_gate();
    if (signal == kMoved && !self.bound) placement_->let_roam();
  }
}

int checked_count(std::int64_t count, const char* who) {
  if (count < 1 || count > kMostThreads)
    fail(ErrorKind::value, who, ": the number of threads must be in [1, ", kMostThreads, "], got ",
         count);
  return static_cast<int>(count);
}

int default_count() {
  const std::int64_t usable = std::min(cpu_info().usable_processors, kMostThreads);
  return checked_count(env_integer("THREADS", usable), "TILEWRIGHT_THREADS");
}

[[gnu::noinline, gnu::cold]] int first_count() {
  int unset = 0;
  thread_count.compare_exchange_strong(unset, default_count(), std::memory_order_relaxed);
  return thread_count.load(std::memory_order_relaxed);
}

void run_inline(std::int64_t chunks, ChunkBody body, void* context) {
  for (std::int64_t i = 0; i < chunks; ++i) {
    if (i > 0) end_early_if_asked();
    body(context, i);
  }
}

}  // namespace

int num_threads() {
  const int count = thread_count.load(std::memory_order_relaxed);
  return count ? count : first_count();
}

void set_num_threads(int count) {
  thread_count.store(checked_count(count, "set_num_threads"), std::memory_order_relaxed);
  // Surplus workers end now when none can be at work, else before the next parallel run.
  if (inside_body) return;
  const ThreadPool::Turn turn(pool());
  if (turn && pool().workers() >= count) pool().resize(count - 1);
}

bool thread_pinning() {
  const int known = pinning.load(std::memory_order_relaxed);
  if (known != kUnknown) return known;
  int unset = kUnknown;
  pinning.compare_exchange_strong(unset, env_integer("PIN_THREADS", 0) != 0);
  return pinning.load(std::memory_order_relaxed);
}

void set_thread_pinning(bool on) { pinning.store(on, std::memory_order_relaxed); }

int worker_index() { return this_worker; }

// While another thread of the user's has the workers, a caller does its chunks alone: it makes
// progress and the processors are busy already.
void run_chunks(std::int64_t chunks, ChunkBody body, void* context, int most_threads) {
  const int threads = num_threads();
  if (chunks <= 1 || threads == 1 || most_threads <= 1 || inside_body ||
      !uses(Optimization::threads))
    return run_inline(chunks, body, context);
  if (const ThreadPool::Turn turn(pool()); turn)
    return pool().run(chunks, body, context, threads, most_threads);
  run_inline(chunks, body, context);
}

}  // namespace tw
