// Blocks that are being copied out of a pool with a quota, or back into it: who needs such a block
// waits for it, nobody else does. The disk stands still where a test says so, so that what happens
// meanwhile is known.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/frontend_lock.h"
#include "core/memory/background_work.h"
#include "core/memory/quota_pool.h"
#include "core/ops/copy/create.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/runtime/transfers/transfer.h"
#include "core/tensor/access.h"
#include "core/tests/check.h"

namespace tw {

namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMiB = 1 << 20;

// What a test waits for comes, or the test fails: long enough for any machine.
constexpr std::chrono::seconds kPatience(60);

// A disk whose writes or reads stand still, or fail, from a moment on.
class Disk {
 public:
  enum Direction { write, read };
  // After so many more.
  void hold(Direction direction, int after = 0) {
    const std::lock_guard lock(mutex_);
    gates_[direction].passing = after;
  }
  void let_go(Direction direction) {
    const std::lock_guard lock(mutex_);
    gates_[direction].passing = -1;
    changed_.notify_all();
  }
  // In a forked child, which has none of the threads that stand there.
  void begin_anew() {
    new (&changed_) std::condition_variable;
    for (Gate& gate : gates_) gate = {};
  }
  void fail_from_now(Direction direction, bool fails) {
    const std::lock_guard lock(mutex_);
    gates_[direction].fails = fails;
  }
  // Until so many stand at the gate.
  void wait_for(Direction direction, int standing) {
    std::unique_lock lock(mutex_);
    CHECK(
        changed_.wait_for(lock, kPatience, [&] { return gates_[direction].standing >= standing; }));
  }
  int begun(Direction direction) {
    const std::lock_guard lock(mutex_);
    return gates_[direction].begun;
  }
  void pass(Direction direction) {
    std::unique_lock lock(mutex_);
    Gate& gate = gates_[direction];
    ++gate.begun;
    if (gate.passing > 0) {
      --gate.passing;
    } else {
      ++gate.standing;
      changed_.notify_all();
      changed_.wait(lock, [&] { return gate.passing != 0; });
      --gate.standing;
    }
    if (gate.fails) fail(ErrorKind::os, direction == write ? "cannot write" : "cannot read");
    note_locked(direction == write ? "written" : "read");
  }
  // In the order in which it happened.
  void note(const std::string& what) {
    const std::lock_guard lock(mutex_);
    note_locked(what);
  }
  std::string story() {
    const std::lock_guard lock(mutex_);
    return std::exchange(story_, "");
  }

 private:
  struct Gate {
    int passing = -1;  // more; negative: all
    int standing = 0, begun = 0;
    bool fails = false;
  };
  void note_locked(const std::string& what) { story_ += (story_.empty() ? "" : ", ") + what; }

  std::mutex mutex_;
  std::condition_variable changed_;
  Gate gates_[2];
  std::string story_;
};

class TierOnDisk final : public SpillTier {
 public:
  TierOnDisk(std::shared_ptr<SpillTier> files, std::shared_ptr<Disk> disk)
      : files_(std::move(files)), disk_(std::move(disk)) {}
  std::uint64_t write(const void* from, std::size_t bytes) override {
    disk_->pass(Disk::write);
    return files_->write(from, bytes);
  }
  void read(std::uint64_t number, void* to, std::size_t bytes) const override {
    disk_->pass(Disk::read);
    files_->read(number, to, bytes);
  }
  void remove(std::uint64_t number) const noexcept override { files_->remove(number); }
  bool is_own() const override { return files_->is_own(); }
  const std::string& path() const override { return files_->path(); }

 private:
  const std::shared_ptr<SpillTier> files_;
  const std::shared_ptr<Disk> disk_;
};

class MemoryOverDisk final : public PoolMemory {
 public:
  MemoryOverDisk(std::int64_t limit, const std::string& folder, std::shared_ptr<Disk> disk)
      : heap_(limit, folder), disk_(std::move(disk)) {}
  std::int64_t charged(std::size_t bytes) const override { return heap_.charged(bytes); }
  Piece allocate(std::size_t bytes) override { return heap_.allocate(bytes); }
  void release(const Piece& piece, std::size_t bytes) noexcept override {
    heap_.release(piece, bytes);
  }
  PoolStats stats() override { return heap_.stats(); }
  void reset_peaks() override { heap_.reset_peaks(); }
  std::int64_t trim() override { return heap_.trim(); }
  std::shared_ptr<SpillTier> make_tier() override {
    return std::make_shared<TierOnDisk>(heap_.make_tier(), disk_);
  }

 private:
  HeapMemory heap_;
  const std::shared_ptr<Disk> disk_;
};

// A pool whose blocks are of one MiB, with the number of each in its bytes.
struct Scene {
  std::string folder = (fs::temp_directory_path() / "tilewright-test-XXXXXX").string();
  const std::shared_ptr<Disk> shared_disk = std::make_shared<Disk>();  // the last reader's
  Disk& disk = *shared_disk;
  std::shared_ptr<QuotaPool> pool;
  std::vector<Block*> blocks;

  Scene(double quota_mib, int count) {
    CHECK(mkdtemp(folder.data()));
    const auto quota = static_cast<std::int64_t>(quota_mib * kMiB);
    pool =
        QuotaPool::create(quota, true, std::make_unique<MemoryOverDisk>(quota, folder, shared_disk),
                          make_ledger(quota, true));
    for (int i = 0; i < count; ++i) {
      blocks.push_back(pool->allocate(kMiB));
      pool->use(*blocks.back());
      std::memset(blocks.back()->data, i, kMiB);
      pool->unpin(*blocks.back());
    }
    disk.story();
  }
  ~Scene() {
    if (pool) {
      for (Block* block : blocks)
        if (block) pool->release(block);
      wait_until([this] { return pool->figures().live_bytes == 0; });
      CHECK_EQ(pool->figures().live_bytes, 0);
      CHECK_EQ(pool->figures().spilled_bytes, 0);
      CHECK_EQ(pool->figures().pinned_bytes, 0);
      pool.reset();
    }
    wait_until_empty();
    fs::remove_all(folder);
  }
  // A reader beside the program keeps a pool until it is done, and that one its blocks of others.
  template <class F> static void wait_until(F holds) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!holds() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void wait_until_empty() {
    wait_until([this] { return fs::is_empty(folder); });
    CHECK(fs::is_empty(folder));
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  void check(int number) {
    Block& block = *blocks[static_cast<std::size_t>(number)];
    pool->use(block);
    const auto* bytes = static_cast<const unsigned char*>(block.data);
    CHECK(std::all_of(bytes, bytes + kMiB, [number](unsigned char b) { return b == number; }));
    pool->unpin(block);
  }
  void drop(int number) {
    pool->release(std::exchange(blocks[static_cast<std::size_t>(number)], nullptr));
  }
  std::int64_t files() const {
    const auto all = fs::recursive_directory_iterator(folder);
    return std::count_if(begin(all), end(all), [](const fs::directory_entry& entry) {
      return entry.path().extension() == ".bin";
    });
  }
};

// Stands for the frontend's lock; says when a thread gave it away to wait.
std::mutex frontend;
thread_local bool holds_frontend = false;
std::atomic<int> given_away{0};
class Frontend {
 public:
  Frontend() {
    frontend.lock();
    holds_frontend = true;
  }
  ~Frontend() {
    holds_frontend = false;
    frontend.unlock();
  }
  static void* release() {
    if (!holds_frontend) return nullptr;
    holds_frontend = false;
    ++given_away;
    frontend.unlock();
    return &frontend;
  }
  static void acquire(void*) {
    frontend.lock();
    holds_frontend = true;
  }
};
struct FrontendInstalled {
  FrontendInstalled() {
    given_away = 0;
    frontend_lock = {Frontend::release, Frontend::acquire};
  }
  ~FrontendInstalled() { frontend_lock = {nullptr, nullptr}; }
};
void wait_for_given_away(int count) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (given_away < count && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  CHECK(given_away >= count);
}

}  // namespace

TW_TEST(quota_pool_in_flight_a_written_block_holds_up_nobody_else) {
  Scene scene(4.5, 4);
  scene.disk.hold(Disk::write);
  Block* made = nullptr;
  std::thread writer([&] { made = scene.pool->allocate(kMiB); });
  scene.disk.wait_for(Disk::write, 1);
  scene.check(1);
  scene.check(2);
  Block* const small = scene.pool->allocate(1000);
  scene.drop(3);
  Block* const large = scene.pool->allocate(kMiB);
  CHECK_EQ(scene.pool->figures().spills, 0);
  scene.pool->trim();
  scene.disk.note("the others are done");
  scene.disk.let_go(Disk::write);
  writer.join();
  CHECK_EQ(scene.disk.story(), "the others are done, written");
  CHECK_EQ(scene.pool->figures().spills, 1);
  for (Block* block : {made, small, large}) scene.pool->release(block);
  scene.check(0);
}

TW_TEST(quota_pool_in_flight_a_read_block_holds_up_nobody_else) {
  Scene scene(4.5, 5);
  scene.disk.hold(Disk::read);
  std::thread reader([&] {
    scene.check(0);
    scene.disk.note("0 used");
  });
  scene.disk.wait_for(Disk::read, 1);
  for (const int resident : {2, 3, 4}) scene.check(resident);
  scene.pool->release(scene.pool->allocate(1000));
  scene.drop(4);
  scene.pool->release(scene.pool->allocate(kMiB));
  scene.disk.note("the others are done");
  scene.disk.let_go(Disk::read);
  reader.join();
  CHECK_EQ(scene.disk.story(), "written, the others are done, read, 0 used");
}

// Its bytes are in memory still: it stays, and the room is another block's.
TW_TEST(quota_pool_in_flight_who_needs_a_leaving_block_waits_and_has_it) {
  const FrontendInstalled installed;
  Scene scene(4.5, 4);
  scene.disk.hold(Disk::write);
  Block* made = nullptr;
  std::thread writer([&] { made = scene.pool->allocate(kMiB); });
  scene.disk.wait_for(Disk::write, 1);
  std::thread user([&] {
    const Frontend lock;
    scene.check(0);
    scene.disk.note("0 used");
  });
  wait_for_given_away(1);
  {
    const Frontend lock;  // who waits keeps nobody from it
    scene.check(2);
    scene.disk.note("2 used");
  }
  scene.disk.let_go(Disk::write);
  user.join();
  writer.join();
  const std::string story = scene.disk.story();
  CHECK(story == "2 used, written, 0 used, written" || story == "2 used, written, written, 0 used");
  CHECK_EQ(scene.disk.begun(Disk::read), 0);
  CHECK_EQ(scene.pool->figures().spills, 1);
  CHECK_EQ(scene.files(), 1);
  scene.pool->release(made);
  scene.check(1);
}

TW_TEST(quota_pool_in_flight_two_who_need_a_block_read_it_once) {
  const FrontendInstalled installed;
  Scene scene(4.5, 5);
  scene.disk.hold(Disk::read);
  const auto use = [&] {
    const Frontend lock;
    scene.check(0);
  };
  std::thread first(use);
  scene.disk.wait_for(Disk::read, 1);
  const int before = given_away;
  std::thread second(use);
  wait_for_given_away(before + 1);
  scene.disk.let_go(Disk::read);
  first.join();
  second.join();
  CHECK_EQ(scene.disk.begun(Disk::read), 1);
}

TW_TEST(quota_pool_in_flight_a_write_that_fails_leaves_the_block_to_who_waits) {
  const FrontendInstalled installed;
  Scene scene(4.5, 4);
  scene.disk.hold(Disk::write);
  scene.disk.fail_from_now(Disk::write, true);
  std::thread writer(
      [&] { CHECK_THROWS(ErrorKind::os, scene.pool->allocate(kMiB), "cannot write"); });
  scene.disk.wait_for(Disk::write, 1);
  std::thread user([&] {
    const Frontend lock;
    scene.check(0);
  });
  wait_for_given_away(1);
  scene.disk.let_go(Disk::write);
  writer.join();
  user.join();
  CHECK_EQ(scene.pool->figures().spills, 0);
  CHECK_EQ(scene.pool->figures().live_bytes, static_cast<std::int64_t>(4 * kMiB));
  scene.disk.fail_from_now(Disk::write, false);
  scene.pool->release(scene.pool->allocate(kMiB));
  for (int i = 0; i < 4; ++i) scene.check(i);
}

TW_TEST(quota_pool_in_flight_a_read_that_fails_is_everyones_error_and_can_be_tried_again) {
  const FrontendInstalled installed;
  Scene scene(4.5, 5);
  scene.disk.hold(Disk::read);
  scene.disk.fail_from_now(Disk::read, true);
  const auto use = [&] {
    const Frontend lock;
    CHECK_THROWS(ErrorKind::os, scene.pool->use(*scene.blocks[0]), "cannot read");
  };
  std::thread first(use);
  scene.disk.wait_for(Disk::read, 1);
  const int before = given_away;
  std::thread second(use);
  wait_for_given_away(before + 1);
  scene.disk.let_go(Disk::read);
  first.join();
  second.join();
  CHECK_EQ(scene.pool->figures().pinned_bytes, 0);
  scene.disk.fail_from_now(Disk::read, false);
  for (int i = 0; i < 5; ++i) scene.check(i);
}

TW_TEST(quota_pool_in_flight_a_leaving_block_may_be_dropped) {
  for (const bool fails : {false, true}) {
    Scene scene(4.5, 4);
    scene.disk.hold(Disk::write);
    scene.disk.fail_from_now(Disk::write, fails);
    Block* made = nullptr;
    std::thread writer([&] { made = scene.pool->allocate(kMiB); });  // its room is free either way
    scene.disk.wait_for(Disk::write, 1);
    scene.drop(0);
    CHECK_EQ(scene.pool->figures().live_bytes, static_cast<std::int64_t>(3 * kMiB));
    scene.disk.let_go(Disk::write);
    writer.join();
    CHECK_EQ(scene.files(), 0);
    CHECK_EQ(scene.pool->figures().spills, 0);
    scene.pool->release(made);
    for (int i = 1; i < 4; ++i) scene.check(i);
  }
}

namespace {

// Blocks 0 to 3 left, 3 and 2 came back, and 1 is on its way, because it is expected next.
void expect_the_next(Scene& scene) {
  for (const int number : {4, 5, 6, 7}) scene.drop(number);
  scene.disk.hold(Disk::read, 2);
  scene.check(3);
  scene.check(2);
  scene.disk.wait_for(Disk::read, 1);
}

}  // namespace

TW_TEST(quota_pool_in_flight_what_is_expected_next_is_waited_for_by_who_needs_it) {
  const FrontendInstalled installed;
  Scene scene(4.5, 8);
  expect_the_next(scene);
  std::thread user([&] {
    const Frontend lock;
    scene.check(1);
    scene.disk.note("1 used");
  });
  wait_for_given_away(1);
  scene.check(2);
  scene.disk.story();
  scene.disk.let_go(Disk::read);
  user.join();
  CHECK_EQ(scene.disk.story().substr(0, 4), "read");
  CHECK(scene.pool->foreseen() >= 1);
}

TW_TEST(quota_pool_in_flight_an_arriving_block_may_be_dropped) {
  Scene scene(4.5, 8);
  expect_the_next(scene);
  scene.drop(1);
  CHECK_EQ(scene.pool->figures().live_bytes, static_cast<std::int64_t>(2 * kMiB));
  scene.disk.let_go(Disk::read);
  scene.check(0);
  for (const int number : {2, 3}) scene.check(number);
}

TW_TEST(quota_pool_in_flight_a_pool_may_be_closed) {
  Scene scene(4.5, 8);
  expect_the_next(scene);
  for (int i = 0; i < 4; ++i) scene.drop(i);
  const std::weak_ptr<QuotaPool> pool = scene.pool;
  scene.pool.reset();
  CHECK(!pool.expired());  // the reader's
  scene.disk.let_go(Disk::read);
  scene.wait_until_empty();
}

TW_TEST(quota_pool_in_flight_room_that_a_block_leaves_is_waited_for) {
  const FrontendInstalled installed;
  Scene scene(2.5, 2);
  scene.pool->pin(*scene.blocks[1]);
  scene.disk.hold(Disk::write);
  Block *first = nullptr, *second = nullptr;
  std::thread writer([&] { first = scene.pool->allocate(3 * kMiB / 4); });
  scene.disk.wait_for(Disk::write, 1);
  std::thread other([&] {
    const Frontend lock;
    second = scene.pool->allocate(5 * kMiB / 8);  // nothing else may leave
  });
  wait_for_given_away(1);
  scene.disk.let_go(Disk::write);
  writer.join();
  other.join();
  CHECK(first && second);
  CHECK_EQ(scene.pool->figures().spills, 1);
  CHECK(scene.pool->figures().peak_live_bytes <= static_cast<std::int64_t>(5 * kMiB / 2));
  CHECK_THROWS(ErrorKind::memory, scene.pool->allocate(2 * kMiB), "raise quota_bytes");
  scene.pool->unpin(*scene.blocks[1]);
  for (Block* block : {first, second}) scene.pool->release(block);
}

// What is to leave is listed; when its turn comes, the record may be of another block.
TW_TEST(quota_pool_in_flight_a_record_that_serves_anew_does_not_leave_for_its_last_block) {
  Scene scene(4.5, 4);
  scene.disk.hold(Disk::write);
  Block* made = nullptr;
  std::thread writer([&] { made = scene.pool->allocate(kMiB * 26 / 10); });  // 0, 1 and 2 leave
  scene.disk.wait_for(Disk::write, 1);
  scene.drop(1);
  Block* const small = scene.pool->allocate(1000);
  CHECK(!scene.pool->use(*small));  // blocks of this size never leave
  std::memset(small->data, 77, 1000);
  scene.disk.let_go(Disk::write);
  writer.join();
  CHECK(small->data && static_cast<const char*>(small->data)[999] == 77);
  CHECK_EQ(scene.pool->figures().spills, 2);
  for (Block* block : {made, small}) scene.pool->release(block);
  for (const int left : {0, 2, 3}) scene.check(left);
}

TW_TEST(quota_pool_in_flight_a_forked_child_has_what_leaves_and_fetches_what_arrives_anew) {
  Scene scene(4.5, 6);  // 0 and 1 left
  scene.disk.hold(Disk::read);
  std::thread reader([&] { scene.check(0); });  // 2 leaves
  scene.disk.wait_for(Disk::read, 1);
  scene.disk.hold(Disk::write);
  Block* made = nullptr;
  std::thread writer([&] { made = scene.pool->allocate(kMiB); });  // 3 leaves
  scene.disk.wait_for(Disk::write, 1);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    run_in_background = nullptr;  // no threads here
    scene.disk.begin_anew();
    bool same = scene.pool->figures().pinned_bytes == 0;
    for (const int number : {3, 0, 1, 2, 5, 4, 3}) {
      Block& block = *scene.blocks[static_cast<std::size_t>(number)];
      scene.pool->use(block);
      same = same && static_cast<const unsigned char*>(block.data)[kMiB - 1] == number;
      scene.pool->unpin(block);
    }
    fs::remove_all(scene.pool->spill_path());  // its own, which an exit would remove
    _exit(same ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
  scene.disk.let_go(Disk::read);
  scene.disk.let_go(Disk::write);
  reader.join();
  writer.join();
  scene.pool->release(made);
  for (int i = 0; i < 6; ++i) scene.check(i);
}

namespace {

// Below a pool: blocks of another pool, as pinned memory is below a GPU's.
class TierOfPool final : public SpillTier {
 public:
  TierOfPool(QuotaPool& pool, Disk& gate) : pool_(pool), gate_(gate) {}
  std::uint64_t write(const void* from, std::size_t bytes) override {
    Block* const block = pool_.allocate(bytes);
    pool_.use(*block);
    std::memcpy(block->data, from, bytes);
    pool_.unpin(*block);
    blocks.push_back(block);
    return reinterpret_cast<std::uint64_t>(block);
  }
  void read(std::uint64_t number, void* to, std::size_t bytes) const override {
    gate_.pass(Disk::read);
    Block& block = *reinterpret_cast<Block*>(number);
    pool_.use(block);
    std::memcpy(to, block.data, bytes);
    pool_.unpin(block);
  }
  void remove(std::uint64_t number) const noexcept override {
    pool_.release(reinterpret_cast<Block*>(number));
  }
  bool is_own() const override { return true; }
  const std::string& path() const override { return path_; }

  std::vector<Block*> blocks;  // as they were written

 private:
  QuotaPool& pool_;
  Disk& gate_;
  const std::string path_;
};
class MemoryOverPool final : public PoolMemory {
 public:
  MemoryOverPool(std::int64_t limit, std::shared_ptr<SpillTier> tier)
      : heap_(limit, ""), tier_(std::move(tier)) {}
  std::int64_t charged(std::size_t bytes) const override { return heap_.charged(bytes); }
  Piece allocate(std::size_t bytes) override { return heap_.allocate(bytes); }
  void release(const Piece& piece, std::size_t bytes) noexcept override {
    heap_.release(piece, bytes);
  }
  PoolStats stats() override { return heap_.stats(); }
  void reset_peaks() override { heap_.reset_peaks(); }
  std::int64_t trim() override { return heap_.trim(); }
  std::shared_ptr<SpillTier> make_tier() override { return tier_; }

 private:
  HeapMemory heap_;
  const std::shared_ptr<SpillTier> tier_;
};

}  // namespace

// One thread reads ahead for all pools. What it reads for one may be what another has asked it to
// read next.
TW_TEST(quota_pool_in_flight_a_pool_above_another_does_not_wait_for_its_own_thread) {
  Scene below(4.5, 0);
  Disk gate;
  const auto tier = std::make_shared<TierOfPool>(*below.pool, gate);
  constexpr auto kQuota = static_cast<std::int64_t>(4.5 * kMiB);
  const auto above = QuotaPool::create(kQuota, true, std::make_unique<MemoryOverPool>(kQuota, tier),
                                       make_ledger(kQuota, true));
  std::vector<Block*> blocks;
  const auto use = [&](QuotaPool& pool, Block* block, bool fills, int value) {
    pool.use(*block);
    auto* const bytes = static_cast<unsigned char*>(block->data);
    if (fills) std::memset(bytes, value, kMiB);
    CHECK_EQ(int{bytes[kMiB - 1]}, value);
    pool.unpin(*block);
  };
  for (int i = 0; i < 8; ++i) {
    blocks.push_back(above->allocate(kMiB));
    use(*above, blocks.back(), true, i);
  }
  // Below, those of 0 and 1 leave, then two others.
  for (const std::size_t kept : {2, 3}) below.pool->pin(*tier->blocks[kept]);
  std::vector<Block*> others;
  for (int i = 0; i < 4; ++i) {
    others.push_back(below.pool->allocate(kMiB));
    use(*below.pool, others.back(), true, 100 + i);
  }
  for (const std::size_t kept : {2, 3}) below.pool->unpin(*tier->blocks[kept]);
  for (const std::size_t i : {2, 3}) below.pool->release(others[i]);
  for (const std::size_t i : {4, 5, 6, 7}) above->release(blocks[i]);
  // The thread is about to read 1 from below, and has been asked for the same there.
  gate.hold(Disk::read, 2);
  use(*above, blocks[3], false, 3);
  use(*above, blocks[2], false, 2);
  gate.wait_for(Disk::read, 1);
  use(*below.pool, others[1], false, 101);
  use(*below.pool, others[0], false, 100);
  gate.let_go(Disk::read);
  use(*above, blocks[1], false, 1);
  use(*above, blocks[0], false, 0);
  CHECK(above->foreseen() >= 1);
  for (const std::size_t i : {0, 1, 2, 3}) above->release(blocks[i]);
  for (const std::size_t i : {0, 1}) below.pool->release(others[i]);
}

// A call that is known by its shapes waits for an operand; what it goes on with stays, although
// others make hundreds of calls meanwhile, each of which would be kept in place of another one.
TW_TEST(quota_pool_in_flight_a_short_call_may_wait_for_its_operand) {
  const FrontendInstalled installed;
  Scene scene(1, 0);
  const BlockSourceGuard source(scene.pool.get());
  Tensor x, row;
  {
    const Frontend lock;
    x = full({100, 200}, 3.0, DType::float32);
    row = full({200}, 1.0, DType::float32);
    for (int i = 0; i < 3; ++i) static_cast<void>(x + row);
  }
  CHECK(scene.pool->spill_all() > 0);
  scene.disk.hold(Disk::read);
  std::thread caller([&] {
    const BlockSourceGuard own(scene.pool.get());
    const Frontend lock;
    const Tensor y = x + row;
    Access at;
    CHECK_EQ(y.shape()[0], 100);
    CHECK_EQ(at.as<float>(y)[100 * 200 - 1], 4.0f);
  });
  scene.disk.wait_for(Disk::read, 1);
  {
    const BlockSourceGuard outside(nullptr);
    const Frontend lock;
    const Tensor two = full({2}, 2.0, DType::float32);
    for (std::int64_t n = 1; n <= 3000; ++n)
      static_cast<void>(full({n, 2}, 1.0, DType::float32) * two);
  }
  scene.disk.let_go(Disk::read);
  caller.join();
  const Frontend lock;
  x = row = Tensor();
}

}  // namespace tw
