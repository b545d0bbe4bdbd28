// Scratch stacks: segments straight from the system, in whole huge pages. A request that does not
// fit opens a further segment; once the stack is empty, one of their joint size takes their place.
#include "core/memory/scratch.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/memory/pages.h"
#include "core/memory/pool.h"

namespace tw {

namespace {

// An empty stack keeps at most this much: packed blocks of matmul need 2 MiB, while the bits of a
// large random tensor are needed once.
constexpr std::size_t kKeptBytes = 32 << 20;

struct Segment {
  char* memory;
  std::size_t bytes, used;
};

// Written by its thread, read by any.
using Figure = std::atomic<std::int64_t>;
std::int64_t get(const Figure& figure) { return figure.load(std::memory_order_relaxed); }
void set(Figure& figure, std::int64_t value) { figure.store(value, std::memory_order_relaxed); }

class Stack {
 public:
  void* push(std::size_t bytes) {
    if (segments_.empty() || segments_.back().bytes - segments_.back().used < bytes) [[unlikely]]
      grow(bytes);
    Segment& top = segments_.back();
    char* data = top.memory + top.used;
    top.used += bytes;
    unpoison(data, bytes);
    const std::int64_t now = get(live) + static_cast<std::int64_t>(bytes);
    set(live, now);
    if (now > get(peak_live)) set(peak_live, now);
    return data;
  }

  void pop(void* data, std::size_t bytes) noexcept {
    poison(data, bytes);
    Segment* segment = &segments_.back();  // empty where what it held has gone already
    while (static_cast<char*>(data) < segment->memory ||
           static_cast<char*>(data) >= segment->memory + segment->bytes)
      --segment;
    segment->used -= bytes;
    set(live, get(live) - static_cast<std::int64_t>(bytes));
    const bool is_kept = segments_.size() == 1 && segment->bytes <= kKeptBytes &&
                         !is_off_for_all(Optimization::scratch_stack);
    if (get(live) == 0 && !is_kept) [[unlikely]] {
      wanted_ = std::min(kKeptBytes, static_cast<std::size_t>(get(reserved)));
      unmap_all();
    }
  }

  // Bytes given back; none while something is in use.
  std::int64_t clear() noexcept {
    if (get(live) > 0) return 0;
    const std::int64_t before = get(reserved);
    unmap_all();
    wanted_ = 0;
    return before;
  }

  Figure live{0}, peak_live{0}, reserved{0};

 private:
  void grow(std::size_t bytes) {
    const std::size_t wanted = std::max(bytes, wanted_);
    const std::size_t whole = (wanted + kHugePage - 1) / kHugePage * kHugePage;
    segments_.reserve(segments_.size() + 1);
    char* memory = whole < wanted ? nullptr : map_block(whole, kHugePage);
    if (!memory)
      fail(ErrorKind::memory, "cannot allocate ", bytes,
           " bytes of temporary memory: the system refuses; this thread holds ", get(reserved));
    poison(memory, whole);
    segments_.push_back({memory, whole, 0});
    set(reserved, get(reserved) + static_cast<std::int64_t>(whole));
  }

  void unmap_all() noexcept {
    for (const Segment& segment : segments_) {
      unpoison(segment.memory, segment.bytes);
      munmap(segment.memory, segment.bytes);
    }
    segments_.clear();
    set(reserved, 0);
  }

  std::vector<Segment> segments_;
  std::size_t wanted_ = 0;  // size of the next segment, at least
};

struct Registry {
  Registry();
  std::mutex mutex;  // guards the list
  std::vector<Stack*> stacks;
};
// Never destroyed: kernels may run while the process exits.
Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

#ifdef __GLIBC__
// One load for the small reductions that take scratch (see pool.cpp).
thread_local Stack* own_stack __attribute__((tls_model("initial-exec"))) = nullptr;
#else
thread_local Stack* own_stack = nullptr;
#endif
pthread_key_t exit_key;

// Runs after C++'s thread-local destructors, and again if a later one takes scratch.
void on_thread_exit(void* ended) {
  own_stack = nullptr;
  auto* stack = static_cast<Stack*>(ended);
  std::lock_guard lock(registry().mutex);
  std::erase(registry().stacks, stack);
  stack->clear();
  delete stack;
}

Registry::Registry() { pthread_key_create(&exit_key, on_thread_exit); }

// A child owns the forking thread's stack; what other threads held stays reserved there.
const AtFork guarded(
    ForkOrder::scratch, [] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); });

[[gnu::noinline, gnu::cold]] Stack& attach() {
  Registry& all = registry();
  auto* stack = new Stack;
  pthread_setspecific(exit_key, stack);
  std::lock_guard lock(all.mutex);
  all.stacks.push_back(stack);
  return *(own_stack = stack);
}

Stack& stack_of_thread() { return own_stack ? *own_stack : attach(); }

std::size_t rounded(std::size_t bytes) {
  const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return whole < bytes ? bytes : whole;  // absurd requests are refused as they are
}

}  // namespace

void Scratch::take(std::size_t bytes) {
  const std::size_t whole = rounded(bytes);
  data_ = stack_of_thread().push(whole);
  bytes_ = whole;
}

void Scratch::give() noexcept { own_stack->pop(data_, bytes_); }

ScratchStats scratch_stats() {
  ScratchStats stats{};
  std::lock_guard lock(registry().mutex);
  for (const Stack* stack : registry().stacks) {
    stats.live_bytes += get(stack->live);
    stats.peak_live_bytes += get(stack->peak_live);
    stats.reserved_bytes += get(stack->reserved);
  }
  return stats;
}

void scratch_reset_peaks() {
  std::lock_guard lock(registry().mutex);
  for (Stack* stack : registry().stacks) set(stack->peak_live, get(stack->live));
}

std::int64_t scratch_trim() { return own_stack ? own_stack->clear() : 0; }

}  // namespace tw
