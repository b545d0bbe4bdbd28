// Pools with a quota: blocks leave, come back and keep their contents, from many threads.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "core/memory/quota_pool.h"
#include "core/ops/copy/create.h"
#include "core/runtime/transfers/transfer.h"
#include "core/tensor/access.h"
#include "core/tests/check.h"

namespace tw {

namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMiB = 1 << 20;

// A folder of the test's own, removed with it.
struct Folder {
  std::string path = (fs::temp_directory_path() / "tilewright-test-XXXXXX").string();
  Folder() { CHECK(mkdtemp(path.data())); }
  ~Folder() { fs::remove_all(path); }
};

std::shared_ptr<QuotaPool> make_pool(std::int64_t quota, const std::string& folder) {
  return QuotaPool::create(quota, folder, make_ledger(quota, !folder.empty()));
}

void fill(QuotaPool& pool, Block* block, int value) {
  pool.use(*block);
  std::memset(block->data, value, block->bytes);
  pool.unpin(*block);
}
bool holds(QuotaPool& pool, Block* block, int value) {
  pool.use(*block);
  const auto* bytes = static_cast<const unsigned char*>(block->data);
  bool same = true;
  for (std::size_t i = 0; i < block->bytes; i += 511) same &= bytes[i] == value;
  pool.unpin(*block);
  return same;
}
std::vector<Block*> filled_blocks(QuotaPool& pool, int count, std::size_t bytes) {
  std::vector<Block*> blocks;
  for (int i = 0; i < count; ++i) {
    blocks.push_back(pool.allocate(bytes));
    fill(pool, blocks.back(), i);
  }
  return blocks;
}

}  // namespace

TW_TEST(quota_pool_blocks_come_back_as_they_left) {
  const Folder folder;
  const auto pool = make_pool(4 * kMiB, folder.path);
  const std::vector<Block*> blocks = filled_blocks(*pool, 12, kMiB);
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < 12; ++i) CHECK(holds(*pool, blocks[i], i));
  CHECK(pool->figures().peak_live_bytes <= static_cast<std::int64_t>(4 * kMiB));
  CHECK(pool->figures().restores >= 30);
  for (Block* block : blocks) pool->release(block);
  CHECK_EQ(pool->figures().live_bytes, 0);
  CHECK_EQ(pool->figures().spilled_bytes, 0);
}

TW_TEST(quota_pool_keeps_what_a_launch_uses) {
  const Folder folder;
  const auto pool = make_pool(3 * kMiB, folder.path);
  std::vector<Block*> blocks = filled_blocks(*pool, 3, kMiB);
  void* const at = blocks[0]->data;
  for (Block* block : blocks) CHECK(pool->use(*block));
  CHECK_THROWS(ErrorKind::memory, pool->allocate(kMiB), "raise quota_bytes");
  CHECK(blocks[0]->data == at);
  for (Block* block : blocks) pool->unpin(*block);
  blocks.push_back(pool->allocate(kMiB));
  CHECK(!blocks[0]->data);
  for (Block* block : blocks) pool->release(block);
}

// Other launches, whose own pins end meanwhile, do not end those of an outer one.
TW_TEST(quota_pool_launches_nest) {
  const Folder folder;
  const auto pool = make_pool(3 * kMiB, folder.path);
  const BlockSourceGuard source(pool.get());
  constexpr std::int64_t kCount = kMiB / 4;
  std::vector<Tensor> tensors;
  for (int i = 0; i < 6; ++i) tensors.push_back(full({kCount}, i, DType::float32));
  Access outer;
  const float* const first = outer.as<float>(tensors[0]);
  for (int round = 0; round < 3; ++round)
    for (int i = 1; i < 6; ++i) {
      Access inner;
      CHECK_EQ(inner.as<float>(tensors[0]), first);
      CHECK_EQ(inner.as<float>(tensors[static_cast<std::size_t>(i)])[7], static_cast<float>(i));
      CHECK_EQ(first[7], 0.0f);
    }
  tensors.clear();
  CHECK_EQ(first[7], 0.0f);  // also without its tensor
  CHECK_EQ(pool->figures().pinned_bytes, static_cast<std::int64_t>(kMiB));
}

namespace {

// The processor's memory, as if copies to files went on beside the program.
class CopiedBeside final : public PoolMemory {
 public:
  CopiedBeside(std::int64_t limit, const std::string& folder) : heap_(limit, folder) {}
  bool copies_beside() const override { return true; }
  std::int64_t charged(std::size_t bytes) const override { return heap_.charged(bytes); }
  Piece allocate(std::size_t bytes) override { return heap_.allocate(bytes); }
  void release(const Piece& piece, std::size_t bytes) noexcept override {
    heap_.release(piece, bytes);
  }
  PoolStats stats() override { return heap_.stats(); }
  void reset_peaks() override { heap_.reset_peaks(); }
  std::int64_t trim() override { return heap_.trim(); }
  std::shared_ptr<SpillTier> make_tier() override { return heap_.make_tier(); }

 private:
  HeapMemory heap_;
};

std::int64_t files_in(const std::string& folder) {
  const auto all = fs::recursive_directory_iterator(folder);
  return std::count_if(begin(all), end(all), [](const fs::directory_entry& entry) {
    return entry.path().extension() == ".bin";
  });
}

}  // namespace

TW_TEST(quota_pool_copies_the_next_blocks_ahead) {
  const Folder folder;
  constexpr std::int64_t kQuota = 16 * kMiB;
  const auto pool = QuotaPool::create(
      kQuota, true, std::make_unique<CopiedBeside>(kQuota, folder.path), make_ledger(kQuota, true));
  std::vector<Block*> blocks = filled_blocks(*pool, 16, kMiB);
  CHECK_EQ(pool->figures().spills, 0);  // all fits: nothing is copied
  blocks.push_back(pool->allocate(kMiB));
  fill(*pool, blocks.back(), 16);
  CHECK_EQ(pool->figures().spills, 1);
  CHECK_EQ(files_in(folder.path), 3);  // that one, and an eighth of the quota
  CHECK_EQ(pool->left_ahead(), 0);
  fill(*pool, blocks[1], 101);  // the copy of one ahead is not what it is any more
  CHECK_EQ(files_in(folder.path), 2);
  for (int i = 17; i < 40; ++i) {
    blocks.push_back(pool->allocate(kMiB));
    fill(*pool, blocks.back(), i);
  }
  CHECK(pool->left_ahead() > 20);
  for (int i = 0; i < 40; ++i) CHECK(holds(*pool, blocks[i], i == 1 ? 101 : i));
  for (Block* block : blocks) pool->release(block);
  CHECK_EQ(files_in(folder.path), 0);
  CHECK_EQ(pool->figures().live_bytes, 0);
}

TW_TEST(quota_pool_foresees_a_backward_pass) {
  const Folder folder;
  const auto pool = make_pool(8 * kMiB, folder.path);
  const std::vector<Block*> blocks = filled_blocks(*pool, 32, kMiB);
  for (int i = 31; i >= 0; --i) {
    CHECK(holds(*pool, blocks[i], i));
    pool->release(blocks[i]);
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  CHECK(pool->foreseen() > 0);
  CHECK_EQ(pool->figures().live_bytes, 0);
}

TW_TEST(quota_pool_serves_many_threads) {
  const Folder folder;
  const auto pool = make_pool(8 * kMiB, folder.path);  // a thread alone holds up to 10
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<std::pair<Block*, int>> mine;
      for (int i = 0; i < 150; ++i) {
        const std::size_t bytes = i % 3 == 0 ? 1000 : kMiB / 2 + i * 64;
        mine.push_back({pool->allocate(bytes), (t * 50 + i) & 255});
        fill(*pool, mine.back().first, mine.back().second);
        const auto [block, value] = mine[static_cast<std::size_t>(i * 7919) % mine.size()];
        CHECK(holds(*pool, block, value));
        if (i % 40 == 39) {
          static_cast<void>(pool->figures());
          pool->trim();
        }
        if (mine.size() < 30) continue;
        std::swap(mine[static_cast<std::size_t>(i) % mine.size()], mine.back());
        pool->release(mine.back().first);
        mine.pop_back();
      }
      for (const auto& [block, value] : mine) {
        CHECK(holds(*pool, block, value));
        pool->release(block);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(pool->figures().live_bytes, 0);
  CHECK_EQ(pool->figures().allocations, 600);
  CHECK(pool->figures().spills > 0);
}

TW_TEST(quota_pool_outlives_its_owner_while_blocks_live) {
  const Folder folder;
  auto pool = make_pool(2 * kMiB, folder.path);
  QuotaPool* const raw = pool.get();
  const std::vector<Block*> blocks = filled_blocks(*pool, 4, kMiB);
  pool.reset();
  for (int i = 0; i < 4; ++i) CHECK(holds(*raw, blocks[i], i));
  for (Block* block : blocks) raw->release(block);
  CHECK(fs::is_empty(folder.path));
}

TW_TEST(quota_pool_without_a_quota_never_spills) {
  const auto pool = make_pool(-1, "");
  const std::vector<Block*> blocks = filled_blocks(*pool, 20, kMiB);
  CHECK_EQ(pool->figures().spills, 0);
  for (Block* block : blocks) pool->release(block);
  CHECK(pool->trim() >= static_cast<std::int64_t>(20 * kMiB));
}

}  // namespace tw
