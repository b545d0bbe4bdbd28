// The thread pool: each chunk once, nesting, exceptions, several callers, resizing, fork, exit.
#include "core/runtime/thread_pool.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/tests/check.h"

namespace tw {

namespace {

struct ThreadCount {  // for the length of a test
  explicit ThreadCount(int count) : before(num_threads()) { set_num_threads(count); }
  ~ThreadCount() { set_num_threads(before); }
  const int before;
};

void check_each_once(std::int64_t chunks) {
  std::vector<std::atomic<int>> runs(chunks);
  parallel_chunks(chunks, [&](std::int64_t i) { ++runs[i]; });
  for (const auto& count : runs) CHECK_EQ(count.load(), 1);
}

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

}  // namespace

TW_TEST(threads_run_each_chunk_once) {
  for (int threads : {1, 2, 3, 8, 30}) {
    const ThreadCount count(threads);
    for (std::int64_t chunks : {0, 1, 2, 3, 7, 100, 1000}) check_each_once(chunks);
  }
}

TW_TEST(threads_may_be_limited_for_a_job) {
  const ThreadCount count(4);
  for (int most : {1, 2, 3, 4, 1000}) {
    std::vector<std::atomic<int>> runs(100);
    parallel_chunks(100, [&](std::int64_t i) { ++runs[i]; }, most);
    for (const auto& run : runs) CHECK_EQ(run.load(), 1);
  }
  parallel_chunks(100, [&](std::int64_t) { CHECK_EQ(worker_index(), 0); }, 1);
  CHECK_EQ(num_threads(), 4);
}

TW_TEST(threads_stay_correct_back_to_back_and_after_pauses) {
  const ThreadCount count(4);
  std::int64_t plain[64] = {};  // not atomic: the sanitizer sees a missing order between runs
  for (int round = 0; round < 3000; ++round) {
    parallel_chunks(1 + round % 64, [&](std::int64_t i) { plain[i] += 1; });
    if (round % 500 == 0) sleep_ms(2);
  }
  std::int64_t expected = 0;
  for (int round = 0; round < 3000; ++round) expected += 1 + round % 64;
  CHECK_EQ(std::accumulate(plain, plain + 64, std::int64_t{0}), expected);
}

#ifdef __linux__
TW_TEST(threads_are_bound_where_asked) {
  const ThreadCount count(3);
  const auto most_processors = [] {
    std::atomic<int> most{0};
    parallel_chunks(64, [&](std::int64_t) {
      cpu_set_t mask;
      CHECK_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
      if (worker_index() > 0) most = std::max(most.load(), CPU_COUNT(&mask));
      sleep_ms(1);  // so that every worker gets some
    });
    return most.load();
  };
  cpu_set_t all;
  CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  set_thread_pinning(true);
  CHECK(most_processors() <= 1);
  check_each_once(1000);
  set_thread_pinning(false);
  sleep_ms(5);
  CHECK(most_processors() >= CPU_COUNT(&all) - 1);  // a woken worker first keeps off one
}

TW_TEST(threads_bound_leave_the_caller_its_processor) {
  cpu_set_t all;
  CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) return;
  const ThreadCount count(2);
  set_thread_pinning(true);
  std::vector<int> shared;  // processors of the caller where a worker was bound as well
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    std::atomic<bool> clash{false};
    std::atomic<int> bound{0};
    parallel_chunks(2, [](std::int64_t) {});  // workers exist before the caller's mask is cut
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    parallel_chunks(16, [&](std::int64_t) {
      cpu_set_t mask;
      sched_getaffinity(0, sizeof mask, &mask);
      if (worker_index() > 0) {
        ++bound;
        if (CPU_ISSET(cpu, &mask)) clash = true;
      }
      sleep_ms(1);
    });
    CHECK_EQ(sched_setaffinity(0, sizeof all, &all), 0);
    CHECK(bound > 0);
    if (clash) shared.push_back(cpu);
  }
  set_thread_pinning(false);
  CHECK(shared.empty());
}
#endif

TW_TEST(threads_index_scratch_without_clashes) {
  const ThreadCount count(4);
  std::atomic<int> holders[4] = {};
  parallel_chunks(400, [&](std::int64_t) {
    const int index = worker_index();
    CHECK(index >= 0 && index < 4);
    CHECK_EQ(holders[index].fetch_add(1), 0);
    std::this_thread::yield();
    holders[index].fetch_sub(1);
  });
  CHECK_EQ(worker_index(), 0);
}

TW_TEST(threads_help_with_slow_chunks) {
  const ThreadCount count(3);
  std::atomic<int> seen{0};
  parallel_chunks(3, [&](std::int64_t) {  // ends only when three threads are inside at once
    ++seen;
    for (int i = 0; seen < 3 && i < 10000; ++i) sleep_ms(1);
  });
  CHECK_EQ(seen.load(), 3);
}

TW_TEST(threads_nest_inline) {
  const ThreadCount count(4);
  std::atomic<int> runs{0};
  parallel_chunks(8, [&](std::int64_t) {
    const int outer = worker_index();
    parallel_chunks(5, [&](std::int64_t) {
      CHECK_EQ(worker_index(), outer);
      ++runs;
    });
  });
  CHECK_EQ(runs.load(), 40);
}

TW_TEST(threads_rethrow_a_body_s_exception) {
  const ThreadCount count(4);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> runs{0};
    CHECK_THROWS(ErrorKind::value,
                 parallel_chunks(1000,
                                 [&](std::int64_t i) {
                                   ++runs;
                                   if (i == 3) fail(ErrorKind::value, "chunk ", i);
                                 }),
                 "chunk 3");
    CHECK(runs.load() >= 1);
    check_each_once(20);
  }
}

TW_TEST(threads_serve_several_callers) {
  const ThreadCount count(3);
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([] {
      for (int round = 0; round < 300; ++round) check_each_once(1 + round % 10);
    });
  for (std::thread& caller : callers) caller.join();
}

TW_TEST(threads_resize_while_others_run) {
  const ThreadCount count(2);
  std::atomic<bool> stop{false};
  std::thread resizer([&] {
    for (int i = 0; !stop; ++i) set_num_threads(1 + i % 6);
  });
  for (int round = 0; round < 300; ++round) check_each_once(9);
  stop = true;
  resizer.join();
}

TW_TEST(threads_count_is_checked) {
  const ThreadCount count(2);
  CHECK_THROWS(ErrorKind::value, set_num_threads(0), "[1, 1024], got 0");
  CHECK_THROWS(ErrorKind::value, set_num_threads(1025), "got 1025");
  CHECK_EQ(num_threads(), 2);
}

TW_TEST(threads_resize_from_inside_a_body) {
  const ThreadCount count(3);
  parallel_chunks(4, [](std::int64_t) { set_num_threads(2); });
  CHECK_EQ(num_threads(), 2);
  check_each_once(10);
}

TW_TEST(threads_cut_ranges_by_grain) {
  const ThreadCount count(2);
  std::vector<int> hits(103);
  parallel_ranges(103, 10, [&](std::int64_t begin, std::int64_t end) {
    CHECK(begin % 10 == 0 && end - begin <= 10);
    for (std::int64_t i = begin; i < end; ++i) ++hits[i];
  });
  for (int hit : hits) CHECK_EQ(hit, 1);
}

TW_TEST(threads_leave_signals_to_the_user) {
  const ThreadCount count(3);
  std::atomic<int> inside{0};
  parallel_chunks(3, [&](std::int64_t) {
    ++inside;
    for (int i = 0; inside < 3 && i < 10000; ++i) sleep_ms(1);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    CHECK_EQ(sigismember(&mask, SIGINT), worker_index() != 0);
  });
}

// Child processes after other threads ran are beyond the thread sanitizer.
#ifndef __SANITIZE_THREAD__

namespace {

// Status of a child that runs f and exits by `leave`; a child that hangs dies of SIGALRM.
template <class F> int status_of_child(F&& f, void (*leave)(int)) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    f();
    leave(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

int sum_to(std::int64_t chunks) {
  std::atomic<int> sum{0};
  parallel_chunks(chunks, [&](std::int64_t i) { sum += static_cast<int>(i); });
  return sum;
}

}  // namespace

TW_TEST(threads_start_afresh_in_a_forked_child) {
  const ThreadCount count(3);
  for (int round = 0; round < 20; ++round) {
    CHECK_EQ(sum_to(10), 45);
    const auto body = [] {
      if (sum_to(10) != 45) _exit(1);
      set_num_threads(5);
      if (sum_to(10) != 45) _exit(2);
    };
    CHECK_EQ(status_of_child(body, _exit), 0);
  }
}

TW_TEST(threads_fork_while_another_thread_computes) {
  const ThreadCount count(3);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) sum_to(10);
  });
  for (int round = 0; round < 20; ++round)
    CHECK_EQ(status_of_child(
                 [] {
                   if (sum_to(10) != 45) _exit(1);
                 },
                 _exit),
             0);
  stop = true;
  busy.join();
}

TW_TEST(threads_do_not_hold_up_exit) {
  const ThreadCount count(4);
  // quick_exit would skip static destructors, exit runs them with workers spinning, parked,
  // working.
  CHECK_EQ(status_of_child([] { sum_to(10); }, std::exit), 0);
  CHECK_EQ(status_of_child([] { sum_to(10), sleep_ms(20); }, std::exit), 0);
  const auto running = [] {
    std::thread([] { parallel_chunks(8, [](std::int64_t) { sleep_ms(3000); }); }).detach();
    sleep_ms(50);
  };
  CHECK_EQ(status_of_child(running, std::exit), 0);
}

#endif

}  // namespace tw
