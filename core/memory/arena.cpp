// Layout of an arena from lifetimes, the recorder of lifetimes, and the source that follows a plan.
#include "core/memory/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "core/memory/pages.h"
#include "core/memory/pool.h"

namespace tw {

namespace {

// Below this the quadratic layout takes less time than the kernels of the pass it serves.
constexpr std::size_t kFewBlocks = 1024;

std::size_t padded(std::size_t bytes) {
  return std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

// ---- layout ----

struct Change {
  std::uint32_t tick;
  bool begins;
  std::size_t block;
};

std::vector<Change> changes_of(const ArenaPlan& plan) {
  std::vector<Change> changes;
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    changes.push_back({plan.blocks[i].begin, true, i});
    changes.push_back({plan.blocks[i].end, false, i});
  }
  // Ticks differ, except for blocks that end together behind all others.
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.tick < b.tick; });
  return changes;
}

void add_up(ArenaPlan& plan, const std::vector<Change>& changes) {
  std::size_t inside = 0, all = 0;
  for (const Change& change : changes) {
    const PlannedBlock& block = plan.blocks[change.block];
    const std::size_t bytes = padded(block.bytes);
    all += change.begins ? bytes : -bytes;
    plan.live_bytes = std::max(plan.live_bytes, all);
    if (change.begins && block.own) ++plan.own_blocks;
    if (block.own) continue;
    inside += change.begins ? bytes : -bytes;
    plan.lower_bound_bytes = std::max(plan.lower_bound_bytes, inside);
    if (change.begins) plan.sum_bytes += bytes;
  }
}

// Free ranges of an arena that grows at its end.
class FreeRanges {
 public:
  std::size_t take(std::size_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit != by_size_.end()) {
      const auto [size, at] = *fit;
      remove(at, size);
      if (size > bytes) add(at + bytes, size - bytes);
      return at;
    }
    std::size_t at = end_;
    if (!by_place_.empty()) {  // the last range grows where it touches the end
      const auto [place, size] = *by_place_.rbegin();
      if (place + size == end_) {
        at = place;
        remove(place, size);
      }
    }
    end_ = at + bytes;
    return at;
  }
  void give(std::size_t at, std::size_t bytes) {
    auto next = by_place_.lower_bound(at);
    if (next != by_place_.begin()) {
      const auto [place, size] = *std::prev(next);
      if (place + size == at) {
        remove(place, size);
        at = place;
        bytes += size;
      }
    }
    next = by_place_.lower_bound(at);
    if (next != by_place_.end() && next->first == at + bytes) {
      const auto [place, size] = *next;
      remove(place, size);
      bytes += size;
    }
    add(at, bytes);
  }
  std::size_t end() const { return end_; }

 private:
  void add(std::size_t at, std::size_t bytes) {
    by_place_[at] = bytes;
    by_size_.insert({bytes, at});
  }
  void remove(std::size_t at, std::size_t bytes) {
    by_place_.erase(at);
    by_size_.erase({bytes, at});
  }
  std::map<std::size_t, std::size_t> by_place_;
  std::set<std::pair<std::size_t, std::size_t>> by_size_;
  std::size_t end_ = 0;
};

std::size_t lay_out_by_time(const ArenaPlan& plan, const std::vector<Change>& changes,
                            std::vector<std::size_t>& offsets) {
  FreeRanges ranges;
  for (const Change& change : changes) {
    const PlannedBlock& block = plan.blocks[change.block];
    if (block.own) continue;
    if (change.begins)
      offsets[change.block] = ranges.take(padded(block.bytes));
    else
      ranges.give(offsets[change.block], padded(block.bytes));
  }
  return ranges.end();
}

// The smallest gap between the placed blocks that live at the same time.
std::size_t best_gap(const ArenaPlan& plan, const std::vector<std::size_t>& offsets,
                     const std::vector<std::size_t>& placed, const PlannedBlock& block) {
  const std::size_t bytes = padded(block.bytes);
  std::size_t end = 0, best = 0, best_size = SIZE_MAX;
  for (std::size_t i : placed) {  // by offset
    const PlannedBlock& other = plan.blocks[i];
    if (other.end <= block.begin || block.end <= other.begin) continue;
    if (offsets[i] > end && offsets[i] - end >= bytes && offsets[i] - end < best_size) {
      best = end;
      best_size = offsets[i] - end;
    }
    end = std::max(end, offsets[i] + padded(other.bytes));
  }
  return best_size == SIZE_MAX ? end : best;
}

std::size_t lay_out_by_size(const ArenaPlan& plan, std::vector<std::size_t>& offsets) {
  std::vector<std::size_t> order, placed;
  for (std::size_t i = 0; i < plan.blocks.size(); ++i)
    if (!plan.blocks[i].own) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return plan.blocks[a].bytes > plan.blocks[b].bytes;
  });
  std::size_t end = 0;
  for (std::size_t i : order) {
    offsets[i] = best_gap(plan, offsets, placed, plan.blocks[i]);
    end = std::max(end, offsets[i] + padded(plan.blocks[i].bytes));
    const auto at = std::upper_bound(placed.begin(), placed.end(), i,
                                     [&](auto a, auto b) { return offsets[a] < offsets[b]; });
    placed.insert(at, i);
  }
  return end;
}

}  // namespace

void lay_out(ArenaPlan& plan) {
  const std::vector<Change> changes = changes_of(plan);
  add_up(plan, changes);
  std::vector<std::size_t> offsets(plan.blocks.size());
  plan.arena_bytes = lay_out_by_time(plan, changes, offsets);
  if (plan.arena_bytes > plan.lower_bound_bytes && plan.blocks.size() <= kFewBlocks) {
    std::vector<std::size_t> others(plan.blocks.size());
    const std::size_t bytes = lay_out_by_size(plan, others);
    if (bytes < plan.arena_bytes) {
      plan.arena_bytes = bytes;
      offsets = std::move(others);
    }
  }
  for (std::size_t i = 0; i < offsets.size(); ++i) plan.blocks[i].offset = offsets[i];
}

// ---- recording ----

ArenaRecorder::~ArenaRecorder() {
  for (const Reserve& reserve : reserves_) munmap(reserve.memory, reserve.bytes);
}

Block* ArenaRecorder::allocate(std::size_t bytes) {
  if (reserves_.empty() || reserves_.back().bytes < bytes) {
    const std::size_t least =
        reserves_.empty() ? std::size_t{64} << 20 : 2 * reserves_.back().bytes;
    const std::size_t wanted = std::max(least, bytes);
    void* memory = mmap(nullptr, wanted, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      fail(ErrorKind::memory, "backward: cannot reserve ", wanted,
           " bytes of addresses for a plan");
    reserves_.push_back({static_cast<char*>(memory), wanted});
  }
  plan_.blocks.push_back({.bytes = bytes, .begin = tick_++, .end = 0});
  auto* block = new Recorded;
  block->source = this;
  block->bytes = bytes;
  block->data = reserves_.back().memory;
  block->index = plan_.blocks.size() - 1;
  return block;
}

void ArenaRecorder::release(Block* block) noexcept {
  auto* recorded = static_cast<Recorded*>(block);
  if (!ended_) plan_.blocks[recorded->index].end = tick_++;
  delete recorded;
}

void ArenaRecorder::expose(const Block* block) {
  if (block && block->source == this)
    plan_.blocks[static_cast<const Recorded*>(block)->index].own = true;
}

void ArenaRecorder::end() {
  ended_ = true;
  for (PlannedBlock& block : plan_.blocks) {
    if (block.end > block.begin) continue;
    block.own = true;
    block.end = tick_;
  }
}

ArenaPlan ArenaRecorder::plan() {
  lay_out(plan_);
  return std::move(plan_);
}

// ---- the pass ----

Arena::Arena(ArenaPlan plan, BlockSource* outer, const Device* device, BlockSource* before)
    : plan_(std::move(plan)),
      outer_(outer),
      device_(device),
      before_(before),
      slots_(plan_.blocks.size()) {
  pool_blocks_.reserve(plan_.own_blocks + 1);
  occupied_.reserve(16);
}

Arena* Arena::open(ArenaPlan plan, BlockSource* outer, const Device* device, BlockSource* before) {
  auto* arena = new Arena(std::move(plan), outer, device, before);
  try {
    arena->reserve();
  } catch (...) {
    arena->close();
    throw;
  }
  return arena;
}

// The arena is pinned: slots have an address for as long as they live.
void Arena::reserve() {
  if (plan_.arena_bytes > 0) {
    memory_ = take_outside(plan_.arena_bytes);
    if (memory_->source) memory_->source->pin(*memory_);
    if (!device_) poison(memory_->data, plan_.arena_bytes);
  }
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (plan_.blocks[i].own) slots_[i].own = take_outside(plan_.blocks[i].bytes);
}

// The arena itself stays in its place; the memory below may want to know of each use.
bool Arena::use(Block&) {
  if (device_ && memory_ && memory_->source->use(*memory_)) memory_->source->unpin(*memory_);
  return false;
}

Block* Arena::take_outside(std::size_t bytes) {
  if (outer_) return outer_->allocate(bytes);
  pool_blocks_.push_back({nullptr, bytes, pool_allocate(bytes)});
  return &pool_blocks_.back();
}

void Arena::give_outside(Block* block) noexcept {
  if (block->source)
    block->source->release(block);
  else
    pool_release(block->data, block->bytes);
}

bool Arena::occupy(std::size_t index) {
  const std::size_t begin = plan_.blocks[index].offset;
  const std::size_t end = begin + padded(plan_.blocks[index].bytes);
  const auto at = std::lower_bound(occupied_.begin(), occupied_.end(), begin,
                                   [](const Extent& e, std::size_t b) { return e.end <= b; });
  if (at != occupied_.end() && at->begin < end) return false;
  occupied_.insert(at, {begin, end});
  return true;
}

void Arena::begin_step(std::size_t step) {
  next_ = step < plan_.steps.size() ? plan_.steps[step] : plan_.blocks.size();
}

Block* Arena::allocate(std::size_t bytes) {
  if (next_ < slots_.size() && plan_.blocks[next_].bytes == bytes) {
    const std::size_t index = next_++;
    Slot& slot = slots_[index];
    if (slot.own) return std::exchange(slot.own, nullptr);
    if (!plan_.blocks[index].own && !slot.source && occupy(index)) {
      slot.source = this;
      slot.bytes = bytes;
      slot.data = static_cast<char*>(memory_->data) + plan_.blocks[index].offset;
      if (!device_) unpoison(slot.data, bytes);
      return &slot;
    }
  }
  ++fallbacks_;
  if (outer_) return outer_->allocate(bytes);
  fallback_ = {nullptr, bytes, pool_allocate(bytes)};
  return &fallback_;
}

void Arena::release(Block* block) noexcept {
  auto& slot = *static_cast<Slot*>(block);
  const std::size_t begin = plan_.blocks[static_cast<std::size_t>(&slot - slots_.data())].offset;
  const auto at = std::lower_bound(occupied_.begin(), occupied_.end(), begin,
                                   [](const Extent& e, std::size_t b) { return e.begin < b; });
  if (!device_) poison(slot.data, padded(slot.bytes));
  slot.source = nullptr;
  occupied_.erase(at);
  if (closed_ && occupied_.empty()) close();
}

void Arena::close() noexcept {
  closed_ = true;
  for (Slot& slot : slots_)
    if (slot.own) give_outside(std::exchange(slot.own, nullptr));
  if (!occupied_.empty()) return;
  if (memory_) {
    if (!device_) unpoison(memory_->data, plan_.arena_bytes);
    if (memory_->source) memory_->source->unpin(*memory_);
    give_outside(memory_);
  }
  delete this;
}

}  // namespace tw
