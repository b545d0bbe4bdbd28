// The scheduler: order, admission, dependencies, pacing, time limits, and many threads at once.
#include "core/runtime/tasks/scheduler.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/runtime/tasks/ranked_tree.h"
#include "core/runtime/tasks/task.h"
#include "core/tests/check.h"

namespace tw {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// A scheduler whose time stands still until the test moves it.
struct Staged {
  explicit Staged(SchedulerOptions options = {}) : scheduler(with_clock(options)) {}
  SchedulerOptions with_clock(SchedulerOptions options) {
    options.clock = [](void* self) { return static_cast<Staged*>(self)->now.load(); };
    options.context = this;
    return options;
  }
  TaskId submit(const TaskSpec& spec = {}) { return scheduler.submit(spec, ends); }
  TaskId need(std::int64_t bytes, TaskQuality quality = TaskQuality::burstable) {
    return submit({.estimate_bytes = bytes, .quality = quality});
  }
  TaskId take() { return scheduler.take(0, 0).id; }
  TaskEnds finish(TaskId id, TaskState state = TaskState::completed) {
    return scheduler.finish(id, state);
  }
  std::atomic<std::int64_t> now{0};
  Scheduler scheduler;
  TaskEnds ends;
};

SchedulerOptions budget(std::int64_t bytes) {
  SchedulerOptions options;
  options.memory_bytes = bytes;
  return options;
}

SchedulerOptions ordered(TaskPolicy policy) {
  SchedulerOptions options;
  options.policy = policy;
  return options;
}

}  // namespace

TW_TEST(ranked_tree_finds_what_a_scan_finds) {
  std::mt19937 random(1);
  std::vector<RankedNode> nodes(400);
  std::set<RankedNode*> inside;
  RankedTree tree;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].id = i + 1;
    nodes[i].key = random() % 20;
    nodes[i].need_bytes = random() % 50;
  }
  for (int step = 0; step < 20000; ++step) {
    RankedNode* node = &nodes[random() % nodes.size()];
    if (inside.erase(node)) {
      tree.erase(node);
    } else {
      tree.insert(node);
      inside.insert(node);
    }
    const std::int64_t free = random() % 50;
    RankedNode* expected = nullptr;
    for (RankedNode* other : inside)
      if (other->need_bytes <= free && (!expected || RankedTree::before(other, expected)))
        expected = other;
    CHECK(tree.first_fitting(free) == expected);
    CHECK_EQ(tree.empty(), inside.empty());
  }
}

TW_TEST(scheduler_orders_by_policy) {
  Staged fifo, shortest(ordered(TaskPolicy::shortest)), priority(ordered(TaskPolicy::priority));
  for (Staged* staged : {&fifo, &shortest, &priority}) {
    staged->submit({.expected_ns = 3 * kSecond, .priority = 0});
    staged->submit({.expected_ns = 1 * kSecond, .priority = 1});
    staged->submit({.expected_ns = 2 * kSecond, .priority = 2});
    staged->submit();
  }
  for (const TaskId id : {1, 2, 3, 4}) CHECK_EQ(fifo.take(), id);
  for (const TaskId id : {2, 3, 1, 4}) CHECK_EQ(shortest.take(), id);
  for (const TaskId id : {3, 2, 1, 4}) CHECK_EQ(priority.take(), id);
  CHECK_EQ(fifo.take(), TaskId{0});
}

TW_TEST(scheduler_lifts_the_rank_of_those_who_wait) {
  Staged staged(ordered(TaskPolicy::priority));
  staged.submit({.priority = 0});
  staged.now = 9 * kSecond;
  staged.submit({.priority = 1});
  CHECK_EQ(staged.take(), TaskId{2});  // 9 s are not yet worth a level
  staged.submit({.priority = 0});
  staged.now = 21 * kSecond;
  staged.submit({.priority = 1});
  CHECK_EQ(staged.take(), TaskId{1});
}

TW_TEST(scheduler_admits_within_the_budget) {
  Staged staged(budget(100));
  staged.need(60);
  staged.need(50);
  staged.need(40);
  CHECK_EQ(staged.take(), TaskId{1});
  CHECK_EQ(staged.take(), TaskId{3});  // 2 does not fit, 3 fits behind it
  CHECK_EQ(staged.take(), TaskId{0});
  staged.finish(3);
  CHECK_EQ(staged.take(), TaskId{0});
  staged.finish(1);
  CHECK_EQ(staged.take(), TaskId{2});
  CHECK_EQ(staged.scheduler.figures().peak_charged_bytes, 100);
  CHECK_THROWS(ErrorKind::value, staged.need(101), "needs 101 bytes and the scheduler has 100");
}

TW_TEST(scheduler_counts_real_use_by_quality) {
  Staged staged(budget(100));
  staged.need(30, TaskQuality::guaranteed);
  staged.need(30, TaskQuality::burstable);
  staged.need(100, TaskQuality::best_effort);
  for (const TaskId id : {1, 2, 3}) CHECK_EQ(staged.take(), id);
  CHECK_EQ(staged.scheduler.figures().charged_bytes, 60);
  for (const TaskId id : {1, 2, 3}) staged.scheduler.set_use(id, 35);
  CHECK_EQ(staged.scheduler.figures().charged_bytes, 30 + 35 + 35);
  staged.need(1, TaskQuality::best_effort);
  CHECK_EQ(staged.take(), TaskId{0});
  staged.scheduler.set_use(2, 5);
  CHECK_EQ(staged.take(), TaskId{4});
  CHECK_EQ(staged.scheduler.figures(2).peak_use_bytes, 35);
}

TW_TEST(scheduler_asks_the_probe) {
  SchedulerOptions options = budget(100);
  options.probe = [](void*, TaskId id) { return id == 1 ? std::int64_t{90} : std::int64_t{-1}; };
  Scheduler scheduler(options);
  TaskEnds ends;
  scheduler.submit({.estimate_bytes = 10, .probed = true}, ends);
  scheduler.submit({.estimate_bytes = 20}, ends);
  CHECK_EQ(scheduler.take(0, 0).id, TaskId{1});
  CHECK_EQ(scheduler.take(0, 0).id, TaskId{0});
  scheduler.finish(1, TaskState::completed);
  CHECK_EQ(scheduler.take(0, 0).id, TaskId{2});
}

TW_TEST(scheduler_stops_small_tasks_for_one_that_waited_long) {
  Staged staged(budget(100));
  staged.need(60);
  staged.take();
  staged.need(100);
  staged.need(10);
  CHECK_EQ(staged.take(), TaskId{3});
  staged.now = 10 * kSecond;
  staged.need(10);
  CHECK_EQ(staged.take(), TaskId{0});  // task 2 is a barrier now
  staged.finish(1);
  staged.finish(3);
  CHECK_EQ(staged.take(), TaskId{2});
}

TW_TEST(scheduler_keeps_dependencies) {
  Staged staged;
  const std::vector<TaskId> both = {staged.submit(), staged.submit()};
  staged.submit({.after = both});
  staged.take();
  staged.take();
  CHECK_EQ(staged.take(), TaskId{0});
  staged.finish(1);
  CHECK_EQ(staged.take(), TaskId{0});
  staged.finish(2);
  CHECK_EQ(staged.take(), TaskId{3});
  const std::vector<TaskId> unknown = {9};
  CHECK_THROWS(ErrorKind::value, staged.submit({.after = unknown}), "no task 9");
}

TW_TEST(scheduler_cancels_a_chain_of_any_length) {
  Staged staged;
  TaskId last = staged.submit();
  for (int i = 0; i < 10000; ++i) {
    const std::vector<TaskId> after = {last};
    last = staged.submit({.after = after});
  }
  staged.take();
  const TaskEnds ends = staged.finish(1, TaskState::failed);
  CHECK_EQ(ends.size(), std::size_t{10000});
  CHECK_EQ(ends.back().blame, last - 1);
  CHECK(ends.back().cause == TaskCause::dependency);
  const std::vector<TaskId> lost = {last};
  const TaskId late = staged.submit({.after = lost});
  CHECK(staged.scheduler.state(late) == TaskState::cancelled);
}

TW_TEST(scheduler_refuses_illegal_steps) {
  Staged staged;
  staged.submit();
  CHECK_THROWS(ErrorKind::runtime, staged.finish(1), "task 1 is pending, not running");
  staged.take();
  CHECK_THROWS(ErrorKind::value, staged.finish(1, TaskState::pending), "not pending");
  staged.finish(1);
  CHECK_THROWS(ErrorKind::runtime, staged.finish(1), "task 1 is completed, not running");
  CHECK_THROWS(ErrorKind::value, staged.finish(2), "no task 2");
  CHECK(!staged.scheduler.cancel(1, staged.ends));
  staged.scheduler.close(false);
  CHECK_THROWS(ErrorKind::runtime, staged.submit(), "closed");
}

TW_TEST(scheduler_paces_a_group) {
  Staged staged;
  for (int i = 0; i < 3; ++i) staged.submit({.share = 0.25, .group = "g"});
  staged.submit();
  CHECK_EQ(staged.take(), TaskId{1});
  CHECK_EQ(staged.take(), TaskId{4});  // the group runs one task at a time
  staged.now = 2 * kSecond;
  staged.finish(1);
  staged.now = 8 * kSecond - 1;
  CHECK_EQ(staged.take(), TaskId{0});
  staged.now = 8 * kSecond;
  CHECK_EQ(staged.take(), TaskId{2});
  CHECK_THROWS(ErrorKind::value, staged.submit({.share = 0.5, .group = "g"}), "has share 0.25");
  CHECK_THROWS(ErrorKind::value, staged.submit({.share = 0.5}), "name it with group=");
}

TW_TEST(scheduler_ends_tasks_whose_time_is_up) {
  Staged staged(budget(100));
  staged.submit({.estimate_bytes = 60, .timeout_ns = 5});
  staged.submit({.estimate_bytes = 60, .timeout_ns = 7});
  staged.take();
  staged.now = 6;
  TaskEnds ends = staged.scheduler.expire();
  CHECK_EQ(ends.size(), std::size_t{1});
  CHECK(ends[0].running);
  CHECK(staged.scheduler.stop_cause(1) == TaskCause::timeout);
  CHECK_EQ(staged.scheduler.figures().charged_bytes, 60);
  staged.now = 7;
  ends = staged.scheduler.expire();
  CHECK_EQ(ends.size(), std::size_t{1});
  CHECK(staged.scheduler.state(2) == TaskState::failed);
  staged.finish(1);
  CHECK(staged.scheduler.state(1) == TaskState::failed);
}

TW_TEST(scheduler_forgets_old_records) {
  SchedulerOptions options;
  options.history = 100;
  Staged staged(options);
  for (int i = 0; i < 3000; ++i) {
    const TaskId id = staged.submit();
    CHECK_EQ(staged.take(), id);
    staged.finish(id);
  }
  CHECK_EQ(staged.scheduler.records().size(), std::size_t{100});
  CHECK_THROWS(ErrorKind::value, staged.scheduler.state(1), "forgotten");
  CHECK_EQ(staged.scheduler.figures().completed, std::int64_t{3000});
}

TW_TEST(scheduler_handles_many_blocked_tasks) {
  Staged staged(budget(100));
  staged.need(50);
  staged.take();
  for (int i = 0; i < 100000; ++i) staged.need(60);
  // Linear work for each of these would take minutes under a sanitizer.
  for (int i = 0; i < 20000; ++i) {
    const TaskId small = staged.need(1);
    CHECK_EQ(staged.take(), small);
    staged.finish(small);
  }
  CHECK_EQ(staged.take(), TaskId{0});
}

TW_TEST(scheduler_serves_many_threads) {
  constexpr int kSubmitters = 3, kWorkers = 4, kTasks = 2000;
  SchedulerOptions options = budget(1000);
  options.policy = TaskPolicy::priority;
  options.history = 500;
  Scheduler scheduler(options);
  std::atomic<std::int64_t> used{0}, ran{0}, ended{0};
  std::vector<std::thread> threads;
  for (int w = 0; w < kWorkers; ++w)
    threads.emplace_back([&, w] {
      std::mt19937 random(w);
      while (const Scheduler::Taken taken = scheduler.take(w, -1)) {
        current_task = taken.id;
        const auto bytes = reinterpret_cast<std::intptr_t>(taken.payload);
        CHECK(used.fetch_add(bytes) + bytes <= 1000);
        if (random() % 64 == 0) std::this_thread::yield();
        scheduler.set_use(taken.id, bytes);
        used -= bytes;
        const bool failed = random() % 8 == 0;
        ++ran;
        ended +=
            scheduler.finish(taken.id, failed ? TaskState::failed : TaskState::completed).size();
      }
    });
  std::vector<std::thread> submitters;
  for (int s = 0; s < kSubmitters; ++s)
    submitters.emplace_back([&, s] {
      std::mt19937 random(100 + s);
      for (int i = 0; i < kTasks; ++i) {
        const std::int64_t bytes = 1 + random() % 600;
        TaskEnds ends;
        const TaskId id = scheduler.submit({.estimate_bytes = bytes,
                                            .timeout_ns = random() % 10 ? 0 : kSecond * 100,
                                            .priority = static_cast<int>(random() % 5),
                                            .payload = reinterpret_cast<void*>(bytes)},
                                           ends);
        if (random() % 16 == 0) {
          try {
            scheduler.cancel(id, ends);
          } catch (const Error&) {  // ended and forgotten by now
          }
        }
        if (random() % 16 == 0) {
          const std::vector<TaskId> after = {id};
          try {
            scheduler.submit({.after = after}, ends);
          } catch (const Error&) {
          }
        }
        ended += ends.size();
        if (random() % 100 == 0) scheduler.figures();
        if (random() % 100 == 0) scheduler.expire();
      }
    });
  for (std::thread& thread : submitters) thread.join();
  CHECK(scheduler.await_idle(-1));
  scheduler.close(false);
  for (std::thread& thread : threads) thread.join();
  const SchedulerFigures figures = scheduler.figures();
  CHECK_EQ(figures.pending + figures.running, 0);
  CHECK_EQ(figures.completed + figures.failed + figures.cancelled, figures.submitted);
  CHECK_EQ(ran + ended, figures.submitted);
  CHECK_EQ(figures.charged_bytes, 0);
}

TW_TEST(scheduler_wakes_sleepers) {
  Scheduler scheduler({});
  std::atomic<int> ran{0};
  std::vector<std::thread> workers;
  for (int w = 0; w < 3; ++w)
    workers.emplace_back([&, w] {
      while (const Scheduler::Taken taken = scheduler.take(w, -1)) {
        ++ran;
        scheduler.finish(taken.id, TaskState::completed);
      }
    });
  std::thread watcher([&] {
    while (scheduler.await_deadline()) scheduler.expire();
  });
  TaskEnds ends;
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(i % 2));
    scheduler.submit({.timeout_ns = i % 5 ? 0 : 100 * kSecond}, ends);
    scheduler.submit({.share = 0.9, .group = "paced"}, ends);
  }
  CHECK(scheduler.await_idle(-1));
  CHECK_EQ(ran.load(), 100);
  scheduler.close(false);
  for (std::thread& worker : workers) worker.join();
  watcher.join();
}

TW_TEST(scheduler_of_a_parent_is_refused_in_a_fork) {
  Scheduler scheduler({});
  const pid_t child = fork();
  if (child == 0) {
    TaskEnds ends;
    try {
      scheduler.submit({}, ends);
    } catch (const Error& error) {
      _exit(error.message.find("forked") == std::string::npos);
    }
    _exit(2);
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
}

}  // namespace tw
