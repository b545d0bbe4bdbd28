// Transfers: right bytes, file faults, limits, priorities, cancellation, figures, fork.
#include "core/runtime/transfers/transfer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <numeric>
#include <thread>
#include <vector>

#include "core/memory/background_work.h"
#include "core/runtime/tasks/task.h"
#include "core/tests/check.h"

namespace tw {

namespace {

using std::chrono::milliseconds;

Place here(void* data) { return {data, nullptr, nullptr}; }

// A file of this test alone, removed afterwards.
class TemporaryFile {
 public:
  TemporaryFile() {
    char name[] = "/tmp/tilewright-test-XXXXXX";
    ::close(::mkstemp(name));
    path = name;
  }
  explicit TemporaryFile(const std::vector<std::int64_t>& content) : TemporaryFile() {
    write(content);
  }
  ~TemporaryFile() { std::remove(path.c_str()); }
  void write(const std::vector<std::int64_t>& content) const {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()),
               static_cast<std::streamsize>(8 * content.size()));
  }
  std::vector<std::int64_t> content() const {
    struct stat status;
    ::stat(path.c_str(), &status);
    std::vector<std::int64_t> values(static_cast<std::size_t>(status.st_size) / 8);
    std::ifstream(path, std::ios::binary)
        .read(reinterpret_cast<char*>(values.data()), status.st_size);
    return values;
  }
  std::shared_ptr<SourceFile> source() const { return std::make_shared<SourceFile>(path); }
  std::string path;
};

std::vector<std::int64_t> counting(std::int64_t count) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

// Waits, and raises what the job raised.
std::int64_t result_of(const Future& future) {
  CHECK(future.wait());
  return future.result();
}

JobFigures figures_of(const std::string& queue) {
  for (const QueueFigures& figures : transfers().queue_figures())
    if (figures.name == queue) return figures;
  return {};
}

struct Limit {  // for the length of a test
  Limit(const char* queue, int limit, int usual) : queue(queue), usual(usual) {
    transfers().set_in_flight(queue, limit);
  }
  ~Limit() { transfers().set_in_flight(queue, usual); }
  const char* queue;
  int usual;
};

// Jobs that hold their thread until let go.
struct Gate {
  std::promise<void> opened;
  std::shared_future<void> open = opened.get_future();
  Future hold(const char* queue, int priority = 0, std::uint64_t task = 0) {
    return transfers().submit(
        queue,
        [open = open](const JobControl&) {
          open.wait();
          return std::int64_t{0};
        },
        priority, task);
  }
};

void wait_until_running(const Future& future) {
  while (future.state() == JobState::waiting) std::this_thread::sleep_for(milliseconds(1));
}

}  // namespace

TW_TEST(transfer_moves_the_right_bytes) {
  const TemporaryFile file;
  const auto x = counting(3'000'000);  // several pieces
  const auto bytes = static_cast<std::int64_t>(8 * x.size());
  CHECK_EQ(result_of(write_file(file.path, 0, x.data(), bytes)), bytes);
  CHECK(file.content() == x);
  std::vector<std::int64_t> y(x.size()), z(x.size());
  CHECK_EQ(result_of(read_file(file.source(), 0, y.data(), bytes)), bytes);
  CHECK(y == x);
  CHECK_EQ(result_of(copy_memory(here(z.data()), here(y.data()), bytes)), bytes);
  CHECK(z == x);
}

TW_TEST(transfer_keeps_the_rest_of_a_file) {
  const TemporaryFile file(counting(5));
  const std::vector<std::int64_t> x = {70, 80};
  result_of(write_file(file.path, 8, x.data(), 16));
  CHECK(file.content() == (std::vector<std::int64_t>{0, 70, 80, 3, 4}));
  std::int64_t y = -1;
  result_of(read_file(file.source(), 16, &y, 8));
  CHECK_EQ(y, 80);
  CHECK_EQ(result_of(read_file(file.source(), 40, &y, 0)), 0);
}

TW_TEST(transfer_gathers_rows_in_any_order) {
  const TemporaryFile file(counting(1 + 3 * 5000));
  std::vector<std::int64_t> forward(3000), mixed, one = {4999};
  std::iota(forward.begin(), forward.end(), 100);  // more neighbours than one system call takes
  std::vector<std::int64_t> backward(forward.rbegin(), forward.rend());
  for (std::int64_t i = 0; i < 500; ++i) mixed.push_back(i * 7919 % 5000 - (i % 3 ? 0 : 5000));
  mixed.insert(mixed.end(), {7, 7, 8, 7, 6});
  for (const auto& indices : {forward, backward, mixed, one, std::vector<std::int64_t>{}}) {
    std::vector<std::int64_t> y(3 * indices.size(), -1);
    result_of(gather_file_rows(file.source(), {8, 24, 5000}, indices, y.data()));
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::int64_t row = (indices[i / 3] + 5000) % 5000;
      CHECK_EQ(y[i], 1 + 3 * row + static_cast<std::int64_t>(i % 3));
    }
  }
  std::int64_t y[3];
  for (std::int64_t index : {5000, -5001})
    CHECK_THROWS(ErrorKind::index, gather_file_rows(file.source(), {8, 24, 5000}, {0, index}, y),
                 "is out of range for 5000 rows");
}

TW_TEST(transfer_of_a_missing_file_names_it) {
  std::int64_t y;
  const auto file = std::make_shared<SourceFile>("/nowhere/at/all");
  const Future future = read_file(file, 0, &y, 8);
  CHECK_THROWS(ErrorKind::os, result_of(future), "No such file or directory: '/nowhere/at/all'");
  CHECK_EQ(static_cast<int>(future.state()), static_cast<int>(JobState::failed));
  CHECK_THROWS(ErrorKind::os, result_of(write_file("/nowhere/at/all", 0, &y, 8)),
               "No such file or directory");
  CHECK_THROWS(ErrorKind::os, result_of(read_file(std::make_shared<SourceFile>("/tmp"), 0, &y, 8)),
               "Is a directory");
  CHECK_THROWS(ErrorKind::os, result_of(write_file("/tmp", 0, &y, 8)), "Is a directory");
}

TW_TEST(transfer_of_too_few_bytes_tells_both_counts) {
  const TemporaryFile file(counting(5));
  std::int64_t y[5];
  CHECK_THROWS(ErrorKind::os, result_of(read_file(file.source(), 16, y, 40)),
               "ends early: 24 of 40 bytes at offset 16");
  CHECK_THROWS(ErrorKind::os, result_of(read_file(file.source(), 400, y, 8)),
               "ends early: 0 of 8 bytes at offset 400");
  CHECK_THROWS(ErrorKind::os, result_of(gather_file_rows(file.source(), {0, 8, 9}, {5, 4}, y)),
               "ends early: 8 of 16 bytes at offset 32");
}

TW_TEST(transfer_to_a_full_disk_fails) {
  const auto x = counting(10);
  CHECK_THROWS(ErrorKind::os, result_of(write_file("/dev/full", 0, x.data(), 80)),
               "0 of 80 bytes at offset 0: No space left on device: '/dev/full'");
}

TW_TEST(transfer_does_not_hang_on_a_pipe) {
  const TemporaryFile file;
  std::remove(file.path.c_str());
  CHECK_EQ(::mkfifo(file.path.c_str(), 0600), 0);
  std::int64_t y = 0;
  CHECK_THROWS(ErrorKind::os, result_of(read_file(file.source(), 0, &y, 8)), "Illegal seek");
  CHECK_THROWS(ErrorKind::os, result_of(write_file(file.path, 0, &y, 8)), file.path.c_str());
}

TW_TEST(transfer_refuses_ranges_outside_any_file) {
  std::int64_t y = 0;
  CHECK_THROWS(ErrorKind::value, read_file(std::make_shared<SourceFile>("x"), -1, &y, 8), "got -1");
  CHECK_THROWS(ErrorKind::value, write_file("x", INT64_MAX, &y, 8), "beyond any file");
}

TW_TEST(transfer_from_an_open_file_outlives_its_name) {
  const TemporaryFile file(counting(5));
  const auto source = file.source();
  CHECK_EQ(source->size_bytes(), 40);
  std::remove(file.path.c_str());
  std::int64_t y = 0;
  result_of(gather_file_rows(source, {0, 8, 5}, {3}, &y));
  CHECK_EQ(y, 3);
}

TW_TEST(transfer_notices_a_file_that_changed) {
  const TemporaryFile file(counting(5));
  std::int64_t y = 0;
  auto source = file.source();
  source->size_bytes();
  CHECK_EQ(::truncate(file.path.c_str(), 32), 0);
  CHECK_THROWS(ErrorKind::os, result_of(gather_file_rows(source, {0, 8, 5}, {0}, &y)),
               "had 40 bytes when opened and has 32 now");
  source = file.source();
  source->size_bytes();
  const timespec times[] = {{1, 0}, {1, 0}};
  CHECK_EQ(::utimensat(AT_FDCWD, file.path.c_str(), times, 0), 0);
  CHECK_THROWS(ErrorKind::os, result_of(gather_file_rows(source, {0, 8, 4}, {0}, &y)),
               "was written to since it was opened");
}

TW_TEST(transfer_limits_jobs_in_flight) {
  for (int limit : {1, 3}) {
    const Limit set("read", limit, 2);
    std::atomic<int> inside{0}, most{0};
    std::vector<Future> futures;
    for (int i = 0; i < 40; ++i)
      futures.push_back(transfers().submit(
          "read",
          [&, limit](const JobControl&) {
            const int now = ++inside;
            for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
            }
            for (int i = 0; most < limit && i < 10'000; ++i)
              std::this_thread::sleep_for(milliseconds(1));
            std::this_thread::sleep_for(milliseconds(1));
            --inside;
            return std::int64_t{5};
          },
          0, 700 + static_cast<std::uint64_t>(limit)));
    for (const Future& future : futures) CHECK_EQ(result_of(future), 5);
    CHECK_EQ(most.load(), limit);
    const JobFigures figures = transfers().task_figures()[700 + limit];
    CHECK_EQ(figures.peak_in_flight, limit);
    CHECK_EQ(figures.submitted, 40);
    CHECK_EQ(figures.completed, 40);
    CHECK_EQ(figures.bytes, 200);
    CHECK_EQ(figures.running + figures.waiting + figures.failed + figures.cancelled, 0);
    CHECK(figures.busy_ns >= 40 * 1'000'000 && figures.waiting_ns > 0);
  }
}

TW_TEST(transfer_limits_are_checked) {
  CHECK_THROWS(ErrorKind::value, transfers().set_in_flight("read", 0), "[1, 16], got 0");
  CHECK_THROWS(ErrorKind::value, transfers().set_in_flight("red", 1),
               "no queue 'red'; there are: read, write, copy, upload, download, background");
}

TW_TEST(transfer_starts_the_highest_priority_first) {
  Gate gate;
  const Future holding = gate.hold("write");
  wait_until_running(holding);
  std::vector<int> order;  // the queue runs one at a time
  std::vector<Future> futures;
  const int priorities[] = {0, 5, -2, 5, 0, 9};
  for (int i = 0; i < 6; ++i)
    futures.push_back(transfers().submit(
        "write", [&order, i](const JobControl&) { return order.push_back(i), std::int64_t{0}; },
        priorities[i], 0));
  gate.opened.set_value();
  for (const Future& future : futures) result_of(future);
  CHECK(order == (std::vector<int>{5, 1, 3, 0, 4, 2}));
}

TW_TEST(transfer_queues_do_not_hold_up_each_other) {
  Gate gate;
  const Future holding[] = {gate.hold("write"), gate.hold("write"), gate.hold("read"),
                            gate.hold("read"), gate.hold("read")};
  std::int64_t x = 3, y = 0;
  result_of(copy_memory(here(&y), here(&x), 8));
  CHECK_EQ(y, 3);
  gate.opened.set_value();
  for (const Future& future : holding) result_of(future);
}

TW_TEST(transfer_waits_no_longer_than_asked) {
  Gate gate;
  const Future future = gate.hold("copy");
  CHECK(!future.wait(milliseconds(0)));
  CHECK(!future.wait(milliseconds(5)));
  CHECK(!transfers().wait_idle("copy", milliseconds(1)));
  CHECK(!future.done());
  gate.opened.set_value();
  CHECK(future.wait(milliseconds(20'000)));
  CHECK(transfers().wait_idle("copy", milliseconds(20'000)));
}

TW_TEST(transfer_cancels_what_waits) {
  Gate gate;
  const Future holding = gate.hold("write");
  wait_until_running(holding);
  const TemporaryFile file(counting(1));
  const std::int64_t x = 9;
  const Future future = write_file(file.path, 0, &x, 8);
  future.cancel();
  CHECK(future.done());
  CHECK_EQ(static_cast<int>(future.state()), static_cast<int>(JobState::cancelled));
  gate.opened.set_value();
  result_of(holding);
  CHECK(transfers().wait_idle("write", milliseconds(20'000)));
  CHECK(file.content() == counting(1));
  future.cancel();  // again, and once more for one that is done
  holding.cancel();
  CHECK_EQ(static_cast<int>(holding.state()), static_cast<int>(JobState::completed));
}

TW_TEST(transfer_cancels_what_runs) {
  const Future future = transfers().submit(
      "copy",
      [](const JobControl& control) -> std::int64_t {
        for (;;) control.stop_if_cancelled(), std::this_thread::sleep_for(milliseconds(1));
      },
      0, 0);
  wait_until_running(future);
  future.cancel();
  CHECK(future.wait());
  CHECK_EQ(static_cast<int>(future.state()), static_cast<int>(JobState::cancelled));
}

TW_TEST(transfer_cancels_the_jobs_of_a_task_alone) {
  Gate gate;
  const Future holding = gate.hold("write");
  wait_until_running(holding);
  std::vector<Future> mine, others;
  std::int64_t x = 1, y;
  for (int i = 0; i < 10; ++i) {
    current_task = i % 2 ? 801 : 802;
    (i % 2 ? mine : others).push_back(write_file("/dev/null", 0, &x, 8));
  }
  current_task = 0;
  CHECK_EQ(transfers().cancel_task(801), 5);
  CHECK_EQ(transfers().cancel_task(801), 0);
  CHECK_EQ(transfers().cancel_task(0), 0);
  gate.opened.set_value();
  for (const Future& future : others) CHECK_EQ(result_of(future), 8);
  for (const Future& future : mine)
    CHECK_EQ(static_cast<int>(future.state()), static_cast<int>(JobState::cancelled));
  CHECK_EQ(transfers().task_figures()[801].cancelled, 5);
  CHECK_EQ(transfers().task_figures()[802].completed, 5);
  current_task = 803;
  result_of(copy_memory(here(&y), here(&x), 8));
  current_task = 0;
  CHECK_EQ(transfers().task_figures()[803].bytes, 8);
}

TW_TEST(transfer_jobs_work_for_their_task) {
  std::uint64_t seen = 0;
  const auto look = [&](const JobControl&) {
    seen = current_task;
    return std::int64_t{0};
  };
  result_of(transfers().submit("copy", look, 0, 804));
  CHECK_EQ(seen, 804u);
  result_of(transfers().submit("copy", look, 0, 0));
  CHECK_EQ(seen, 0u);
}

TW_TEST(transfer_remembers_a_bounded_number_of_tasks) {
  const auto nothing = [](const JobControl&) { return std::int64_t{0}; };
  for (std::uint64_t task = 10'000; task < 15'000; ++task)
    transfers().submit("copy", nothing, 0, task);
  CHECK(transfers().wait_idle("copy", milliseconds(60'000)));
  CHECK(transfers().task_figures().size() <= 5000);
  CHECK_EQ(transfers().task_figures()[14'999].completed, 1);
}

TW_TEST(transfer_serves_many_threads) {
  const TemporaryFile file(counting(1000));
  const auto source = file.source();
  const JobFigures before = figures_of("read");
  std::vector<std::thread> callers;
  for (int c = 0; c < 8; ++c)
    callers.emplace_back([&source, c] {
      for (std::int64_t round = 0; round < 100; ++round) {
        std::int64_t y[2] = {};
        const std::int64_t a = (c * 131 + round * 17) % 1000, b = (a * 7 + 3) % 1000;
        const Future future = gather_file_rows(source, {0, 8, 1000}, {a, b}, y);
        if (round % 10 == 0) future.cancel();
        future.wait();
        if (future.state() != JobState::cancelled) CHECK(y[0] == a && y[1] == b);
      }
    });
  for (std::thread& caller : callers) caller.join();
  const JobFigures after = figures_of("read");
  CHECK_EQ(after.submitted - before.submitted, 800);
  CHECK_EQ(after.completed + after.cancelled - before.completed - before.cancelled, 800);
  CHECK_EQ(after.waiting + after.running, 0);
}

// Threads that go to sleep while others are woken or started: no job may be left behind.
TW_TEST(transfer_leaves_no_job_behind) {
  std::vector<std::thread> callers;
  for (const char* queue : {"read", "write", "copy", "background", "write", "read"})
    callers.emplace_back([queue] {
      const auto nothing = [](const JobControl&) { return std::int64_t{0}; };
      for (int round = 0; round < 3000; ++round)
        CHECK(transfers().submit(queue, nothing, 0, 0).wait(milliseconds(20'000)));
    });
  for (std::thread& caller : callers) caller.join();
}

TW_TEST(transfer_runs_the_memory_floor_s_work) {
  std::promise<std::thread::id> ran;
  run_in_background(
      [](void* to) {
        static_cast<std::promise<std::thread::id>*>(to)->set_value(std::this_thread::get_id());
      },
      &ran);
  CHECK(ran.get_future().get() != std::this_thread::get_id());
}

// Child processes after other threads ran are beyond the thread sanitizer.
#ifndef __SANITIZE_THREAD__

namespace {

// 0 where `good` holds in a child; a child that hangs dies of SIGALRM.
template <class F> int status_of_child(F&& good) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::_exit(good() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

bool fails_by_fork(const Future& future) {
  try {
    future.wait();
    future.result();
  } catch (const Error& error) {
    return error.message.find("forked") != std::string::npos;
  }
  return false;
}

}  // namespace

TW_TEST(transfer_starts_afresh_in_a_forked_child) {
  const TemporaryFile file(counting(10));
  const auto source = file.source();
  const auto works = [&] {
    std::int64_t y = 0;
    return result_of(gather_file_rows(source, {0, 8, 10}, {6}, &y)) == 8 && y == 6;
  };
  for (int round = 0; round < 10; ++round) {
    CHECK(works());
    CHECK_EQ(status_of_child(works), 0);
  }
}

TW_TEST(transfer_lost_by_a_fork_is_an_error_in_the_child_alone) {
  Gate gate;
  const Future running = gate.hold("copy"), waiting = gate.hold("copy");
  wait_until_running(running);
  std::thread waiter([&] { running.wait(); });
  CHECK_EQ(status_of_child([&] {
             std::int64_t x = 4, y = 0;
             return fails_by_fork(running) && fails_by_fork(waiting) &&
                    result_of(copy_memory(here(&y), here(&x), 8)) == 8 && y == 4;
           }),
           0);
  gate.opened.set_value();
  result_of(waiting);
  waiter.join();
}

#endif

}  // namespace tw
