// Forks while every kind of thread is alive and in the middle of something: child and parent go on.
#include "core/base/fork.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/memory/events.h"
#include "core/memory/pool.h"
#include "core/memory/quota_pool.h"
#include "core/memory/scratch.h"
#include "core/runtime/choice.h"
#include "core/runtime/registry.h"
#include "core/runtime/scheduler.h"
#include "core/runtime/thread_pool.h"
#include "core/runtime/transfer.h"
#include "core/runtime/warning.h"
#include "core/tests/check.h"

namespace tw {

namespace {

namespace fs = std::filesystem;
constexpr std::size_t kBytes = 128 << 10;  // of a block, which is large enough to leave

// A pool of four blocks through which ten stream, so that some are brought back ahead of their use.
class Stream {
 public:
  explicit Stream(const std::string& folder)
      : pool_(QuotaPool::create(4 * kBytes, folder, make_ledger(4 * kBytes, true))) {
    for (int i = 0; i < 10; ++i) {
      blocks_.push_back(pool_->allocate(kBytes));
      pool_->use(*blocks_.back());
      std::memset(blocks_.back()->data, i, kBytes);
      pool_->unpin(*blocks_.back());
    }
  }
  ~Stream() {
    for (Block* block : blocks_) pool_->release(block);
  }
  Stream(const Stream&) = delete;
  bool holds() {
    bool right = true;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      pool_->release(pool_->allocate(2 * kBytes));  // what goes leaves room for what comes next
      pool_->use(*blocks_[i]);
      const auto* bytes = static_cast<const char*>(blocks_[i]->data);
      for (std::size_t at = 0; at < kBytes; at += 511) right &= bytes[at] == static_cast<char>(i);
      pool_->unpin(*blocks_[i]);
    }
    return right;
  }

 private:
  const std::shared_ptr<QuotaPool> pool_;
  std::vector<Block*> blocks_;
};

bool copies() {
  std::int64_t x = 4, y = 0;
  const Future future = copy_memory({&y, nullptr, nullptr}, {&x, nullptr, nullptr}, 8);
  future.wait();
  return future.result() == 8 && y == 4;
}
bool computes() {
  std::atomic<int> sum{0};
  parallel_chunks(10, [&](std::int64_t i) { sum += static_cast<int>(i); });
  return sum == 45;
}
bool allocates() {
  pool_release(pool_allocate(2 << 20), 2 << 20);
  return true;
}
bool starts_and_ends_threads() {
  std::thread([] {
    const Scratch scratch(5000);
    std::memset(scratch.as<char>(), 1, 5000);
    allocates();
  }).join();
  return true;
}
bool chooses() {
  force_kernel("matmul", "naive");
  const bool right = forced_kernel("matmul") == "naive";
  force_kernel("matmul", "");
  warn_once(std::to_string(now_ns()), "");
  return right;
}
bool observes() {
  const auto observer = std::make_shared<Observer>(Observer::Options{kMemoryEvents, false, 64});
  observe_everywhere(observer);
  allocates();
  stop_observing_everywhere(observer.get());
  return !observer->stopped();
}
bool schedules() {
  Scheduler scheduler({});
  scheduler.close(false);
  return true;
}

int status_of_child(const std::vector<std::function<bool()>>& works) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a child that hangs dies of it
    for (std::size_t i = 0; i < works.size(); ++i)
      for (int round = 0; round < 2; ++round)
        if (!works[i]()) _exit(static_cast<int>(i) + 1);
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace

TW_TEST(fork_finds_every_lock_free) {
  set_warning_sink([](const std::string&) {});
  std::string folder = (fs::temp_directory_path() / "tilewright-test-XXXXXX").string();
  CHECK(mkdtemp(folder.data()));
  const auto streams = [&] { return Stream(folder).holds(); };
  const std::vector<std::function<bool()>> works = {
      copies, computes, allocates, starts_and_ends_threads, chooses, observes, schedules, streams};
  {
    Stream kept(folder);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (const auto& work : works)
      threads.emplace_back([&] {
        while (!stop) CHECK(work());
      });
    threads.emplace_back([&] {
      while (!stop) CHECK(kept.holds());
    });
    for (int round = 0; round < 40; ++round) CHECK_EQ(status_of_child(works), 0);
    stop = true;
    for (std::thread& thread : threads) thread.join();
    CHECK(kept.holds());
  }
  fs::remove_all(folder);
}

}  // namespace tw
