// Arena plans: layouts against a brute-force check, recording, and passes that leave their plan.
#include "core/memory/arena.h"

#include <cstring>
#include <random>

#include "core/autograd/backward.h"
#include "core/autograd/planner.h"
#include "core/memory/pool.h"
#include "core/ops/copy/create.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/tests/check.h"

namespace tw {

namespace {

ArenaPlan plan_of(std::vector<PlannedBlock> blocks) {
  ArenaPlan plan;
  plan.blocks = std::move(blocks);
  lay_out(plan);
  return plan;
}

bool overlap(const PlannedBlock& a, const PlannedBlock& b) {
  const bool in_time = a.begin < b.end && b.begin < a.end;
  return in_time && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

void check_layout(const ArenaPlan& plan) {
  CHECK(plan.lower_bound_bytes <= plan.arena_bytes && plan.arena_bytes <= plan.sum_bytes);
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    const PlannedBlock& a = plan.blocks[i];
    if (a.own) continue;
    CHECK_EQ(a.offset % kAlignment, 0u);
    CHECK(a.offset + a.bytes <= plan.arena_bytes);
    for (std::size_t j = 0; j < i; ++j)
      if (!plan.blocks[j].own) CHECK(!overlap(a, plan.blocks[j]));
  }
}

// Random allocations and releases, as a recorder would see them.
std::vector<PlannedBlock> random_blocks(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<PlannedBlock> blocks;
  std::vector<std::size_t> live;
  std::uint32_t tick = 0;
  while (blocks.size() < count || !live.empty()) {
    if (blocks.size() < count && (live.empty() || random() % 3)) {
      live.push_back(blocks.size());
      blocks.push_back({.bytes = random() % 5 == 0 ? random() % 100000 : random() % 1000,
                        .begin = tick++,
                        .end = 0,
                        .own = random() % 20 == 0});
      continue;
    }
    std::swap(live[random() % live.size()], live.back());
    blocks[live.back()].end = tick++;
    live.pop_back();
  }
  return blocks;
}

// What is alive of a pass, filled with a mark.
struct Held {
  Block* block;
  std::size_t bytes;
  char mark;
};
Held take(BlockSource& source, std::size_t bytes, char mark) {
  Block* block = source.allocate(bytes);
  std::memset(block->data, mark, bytes);
  return {block, bytes, mark};
}
void give(const Held& held) {
  const char* p = static_cast<const char*>(held.block->data);
  for (std::size_t i = 0; i < held.bytes; ++i) CHECK_EQ(p[i], held.mark);
  held.block->source->release(held.block);
}

Tensor leaf(const Shape& shape, double value) {
  Tensor x = full(shape, value, DType::float32);
  set_requires_grad(x, true);
  return x;
}

}  // namespace

TW_TEST(arena_layouts_keep_living_blocks_apart) {
  for (unsigned seed = 0; seed < 30; ++seed) check_layout(plan_of(random_blocks(300, seed)));
  check_layout(plan_of(random_blocks(3000, 99)));  // beyond the layout by size
  check_layout(plan_of({}));
}

TW_TEST(arena_layout_of_a_chain_is_two_blocks) {
  std::vector<PlannedBlock> blocks;
  for (std::uint32_t i = 0; i < 50; ++i)
    blocks.push_back({.bytes = 1000, .begin = 2 * i, .end = 2 * i + 3});
  const ArenaPlan plan = plan_of(blocks);
  CHECK_EQ(plan.arena_bytes, 2048u);
  CHECK_EQ(plan.lower_bound_bytes, 2048u);
  CHECK_EQ(plan.sum_bytes, 50u * 1024);
}

TW_TEST(arena_recorder_sees_lifetimes) {
  ArenaRecorder recorder;
  Block* a = recorder.allocate(100);
  recorder.begin_step();
  Block* b = recorder.allocate(std::size_t{1} << 40);  // addresses only
  recorder.release(a);
  Block* c = recorder.allocate(300);
  Block* d = recorder.allocate(400);
  recorder.expose(c);
  recorder.release(c);
  recorder.release(b);
  recorder.end();
  recorder.release(d);
  const ArenaPlan plan = recorder.plan();
  CHECK_EQ(plan.blocks.size(), 4u);
  CHECK_EQ(plan.own_blocks, 2u);
  CHECK(!plan.blocks[0].own && !plan.blocks[1].own && plan.blocks[2].own && plan.blocks[3].own);
  CHECK_EQ(plan.steps.size(), 1u);
  CHECK_EQ(plan.steps[0], 1u);
  check_layout(plan);
}

TW_TEST(arena_passes_that_follow_the_plan_allocate_nothing_more) {
  const std::int64_t live = pool_stats().live_bytes;
  ArenaPlan plan = plan_of({{100, 0, 2}, {200, 1, 4}, {300, 3, 6, true}, {100, 5, 7}});
  const std::int64_t before = pool_stats().allocations;
  Arena* arena = Arena::open(std::move(plan), nullptr);
  CHECK_EQ(pool_stats().allocations - before, 2);
  const Held a = take(*arena, 100, 'a'), b = take(*arena, 200, 'b');
  give(a);
  const Block own = *arena->allocate(300);
  CHECK(!own.source);  // the default pool's
  give(b);
  const Held d = take(*arena, 100, 'd');
  CHECK_EQ(arena->fallbacks(), 0u);
  CHECK_EQ(pool_stats().allocations - before, 2);
  arena->close();  // d keeps the arena
  give(d);
  pool_release(own.data, 300);
  CHECK_EQ(pool_stats().live_bytes, live);
}

TW_TEST(arena_passes_that_leave_the_plan_stay_apart) {
  const std::int64_t live = pool_stats().live_bytes;
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::vector<PlannedBlock> blocks = random_blocks(60, seed);
    for (PlannedBlock& block : blocks) block.own = false;
    std::mt19937 random(seed);
    Arena* arena = Arena::open(plan_of(blocks), nullptr);
    std::vector<Held> held;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      // Kept longer than planned, or of another size.
      const std::size_t bytes = blocks[i].bytes + (random() % 8 == 0);
      Block* block = arena->allocate(bytes);
      if (!block->source) {
        pool_release(block->data, bytes);
        if (bytes != blocks[i].bytes) arena->begin_step(i);  // no steps: the end of the plan
        continue;
      }
      std::memset(block->data, static_cast<char>(i), bytes);
      held.push_back({block, bytes, static_cast<char>(i)});
      while (held.size() > 3) {
        const std::size_t at = random() % held.size();
        give(held[at]);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    arena->close();
    for (const Held& each : held) give(each);
  }
  CHECK_EQ(pool_stats().live_bytes, live);
}

namespace {

// Counts what it hands out; its memory is the default pool's.
class Counting final : public BlockSource {
 public:
  Block* allocate(std::size_t bytes) override {
    ++allocations;
    ++live;
    return new Block{this, bytes, pool_allocate(bytes)};
  }
  void release(Block* block) noexcept override {
    --live;
    pool_release(block->data, block->bytes);
    delete block;
  }
  bool use(Block&) override { return false; }
  void pin(Block&) override { ++pins; }
  void unpin(Block&) noexcept override { --pins; }
  int allocations = 0, live = 0, pins = 0;
};

}  // namespace

TW_TEST(planned_pass_takes_its_arena_from_the_source_in_force) {
  const Tensor x = leaf({40, 40}, 0.01), w = leaf({40, 40}, 0.02);
  const Tensor loss = sum(exp(matmul(tanh(x), w)), {}, false);
  Counting source;
  {
    const BlockSourceGuard guard(&source);
    backward({loss}, {}, {.plan = true});
    CHECK_EQ(last_plan().fallbacks, 0u);
    CHECK_EQ(source.allocations, 1 + static_cast<int>(last_plan().survivors));
    CHECK_EQ(source.live, 2);  // the two gradients
    CHECK_EQ(source.pins, 0);
  }
  x.extras().grad = Tensor();
  w.extras().grad = Tensor();
  CHECK_EQ(source.live, 0);
}

TW_TEST(planned_pass_leaves_nothing_behind) {
  const auto step = [] {
    const Tensor x = leaf({8, 8}, 0.5);
    Tensor y = x;
    for (int i = 0; i < 10; ++i) y = tanh(y) * x;
    backward({sum(y, {}, false)}, {}, {.plan = true});
    CHECK_EQ(last_plan().fallbacks, 0u);
  };
  step();
  const std::int64_t live = pool_stats().live_bytes;
  for (int i = 0; i < 5; ++i) step();
  CHECK_EQ(pool_stats().live_bytes, live);
}

}  // namespace tw
