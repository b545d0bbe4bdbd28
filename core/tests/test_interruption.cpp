// Long launches that a signal's handler ends, and those that run to their end.
#include "core/runtime/interruption.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "core/runtime/thread_pool.h"
#include "core/tests/check.h"

namespace tw {
namespace {

struct Signal {};
std::atomic<bool> arrived{false};

// A frontend whose handlers raise once a signal has arrived.
struct Frontend {
  Frontend() {
    arrived = false;
    run_signal_handlers = [] {
      if (arrived.exchange(false)) throw Signal{};
    };
  }
  ~Frontend() { run_signal_handlers = nullptr; }
};

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// More than the frontend is asked after.
constexpr int kChunks = 400, kSignalAt = 20;
std::int64_t run_chunks_of_a_millisecond(bool may_end) {
  std::atomic<std::int64_t> done{0};
  const auto chunk = [&](std::int64_t) {
    sleep_ms(1);
    if (++done == kSignalAt) arrived = true;
  };
  try {
    const MayEndEarly early(may_end);
    parallel_chunks(kChunks, chunk);
  } catch (const Signal&) {
    return -done;
  }
  return done;
}

void check_all_run() {
  std::atomic<int> done{0};
  parallel_chunks(100, [&](std::int64_t) { ++done; });
  CHECK_EQ(done.load(), 100);
}

}  // namespace

TW_TEST(interruption_ends_a_launch_between_chunks) {
  const Frontend frontend;
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    const std::int64_t done = -run_chunks_of_a_millisecond(true);
    CHECK(done >= kSignalAt && done < kChunks);
    check_all_run();
  }
}

TW_TEST(interruption_leaves_alone_what_runs_to_its_end) {
  const Frontend frontend;
  set_num_threads(3);
  CHECK_EQ(run_chunks_of_a_millisecond(false), kChunks);
  const RunsToItsEnd whole;
  CHECK_EQ(run_chunks_of_a_millisecond(true), kChunks);
}

TW_TEST(interruption_ends_what_runs_inside_a_chunk) {
  const Frontend frontend;
  set_num_threads(3);
  std::atomic<std::int64_t> done{0};
  bool raised = false;
  try {
    const MayEndEarly early(true);
    parallel_chunks(3, [&](std::int64_t) {
      parallel_chunks(kChunks, [&](std::int64_t) {
        sleep_ms(1);
        if (++done == kSignalAt) arrived = true;
      });
    });
  } catch (const Signal&) {
    raised = true;
  }
  CHECK(raised && done < 3 * kChunks);
  check_all_run();
}

// The caller has no chunk left, and waits.
TW_TEST(interruption_ends_a_wait_for_workers) {
  const Frontend frontend;
  set_num_threads(2);
  std::atomic<int> begun{0};
  bool raised = false;
  try {
    const MayEndEarly early(true);
    parallel_chunks(2, [&](std::int64_t) {
      ++begun;
      while (begun < 2) sleep_ms(1);
      if (worker_index() == 0) return;
      arrived = true;
      for (int i = 0; i < 10'000; ++i) {
        sleep_ms(1);
        end_early_if_asked();
      }
    });
  } catch (const Signal&) {
    raised = true;
  }
  CHECK(raised);
  check_all_run();
}

TW_TEST(interruption_asks_at_the_start) {
  const Frontend frontend;
  sleep_ms(60);
  arrived = true;
  bool raised = false;
  try {
    const MayEndEarly early(true);
  } catch (const Signal&) {
    raised = true;
  }
  CHECK(raised && !may_end_early());
}

}  // namespace tw
