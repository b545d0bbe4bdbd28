// Blocks are written and read under the pool's lock, except for one that is brought back aside
// because it is expected next.
#include "core/memory/quota_pool.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/fault.h"
#include "core/memory/background_work.h"
#include "core/memory/events.h"

namespace tw {

struct QuotaPool::Managed : Block, LedgerEntry {
  Block* inner = nullptr;  // of the memory's own source
  // Where the contents are while they are not in memory. Kept here too, because a forked child goes
  // on with a tier of its own.
  std::shared_ptr<SpillTier> tier;
  std::uint64_t copy = 0;
  bool ahead = false;  // the contents are in memory as well, the same
  Managed *left_before = nullptr, *left_after = nullptr;  // neighbours among the spilled
  Managed* next_spare = nullptr;

  std::size_t asked() const { return Block::bytes; }
  PoolMemory::Piece piece() const { return {data, inner}; }
  PoolMemory::Piece take_piece() { return {std::exchange(data, nullptr), inner}; }
  void put(const PoolMemory::Piece& piece) {
    data = piece.data;
    inner = piece.inner;
  }
  std::int64_t charged() const { return LedgerEntry::bytes; }
};

// Takes the pool's lock; gives way meanwhile where the ledger needs what the caller holds.
class QuotaPool::Lock : public std::unique_lock<std::mutex> {
 public:
  explicit Lock(QuotaPool& pool) : std::unique_lock<std::mutex>(pool.mutex_, std::try_to_lock) {
    while (!owns_lock())
      if (pool.ledger_->gives_way())
        try_lock();
      else
        lock();
  }
};

namespace {

// Of the quota: copies ahead are of so much, and made when no more than that is free. A copy that
// is not needed costs the bus; a block that leaves without one costs the stream that needs its
// room.
constexpr std::int64_t kAheadPart = 8;

// Pools of this process, so that a fork finds their locks free.
struct Pools {
  std::mutex mutex;
  std::vector<QuotaPool*> list;
};
Pools& pools() {
  static Pools* const instance = new Pools;
  return *instance;
}

}  // namespace

std::shared_ptr<QuotaPool> QuotaPool::create(std::int64_t quota_bytes, std::string spill_parent,
                                             std::unique_ptr<Ledger> ledger) {
  const bool may_spill = !spill_parent.empty();
  const std::int64_t limit =
      quota_bytes < 0 ? std::numeric_limits<std::int64_t>::max() : quota_bytes;
  return create(quota_bytes, may_spill,
                std::make_unique<HeapMemory>(limit, std::move(spill_parent)), std::move(ledger));
}

std::shared_ptr<QuotaPool> QuotaPool::create(std::int64_t quota_bytes, bool may_spill,
                                             std::unique_ptr<PoolMemory> memory,
                                             std::unique_ptr<Ledger> ledger) {
  std::shared_ptr<QuotaPool> pool(
      new QuotaPool(quota_bytes, may_spill, std::move(memory), std::move(ledger)));
  std::lock_guard guard(pools().mutex);
  pools().list.push_back(pool.get());
  return pool;
}

QuotaPool::QuotaPool(std::int64_t quota_bytes, bool may_spill, std::unique_ptr<PoolMemory> memory,
                     std::unique_ptr<Ledger> ledger)
    : quota_(quota_bytes),
      may_spill_(may_spill),
      memory_(std::move(memory)),
      ledger_(std::move(ledger)) {}

QuotaPool::~QuotaPool() {
  {
    std::lock_guard guard(pools().mutex);
    std::erase(pools().list, this);
  }
  while (spare_) delete std::exchange(spare_, spare_->next_spare);
}

const AtFork QuotaPool::guarded_(
    ForkOrder::quota_pools,
    [] {
      pools().mutex.lock();
      for (QuotaPool* pool : pools().list) Lock(*pool).release();
    },
    [] {
      for (QuotaPool* pool : pools().list) pool->mutex_.unlock();
      pools().mutex.unlock();
    },
    [] {
      for (QuotaPool* pool : pools().list) pool->forget_after_fork();
    });

// What a thread of the parent was bringing back has to be fetched anew.
void QuotaPool::forget_after_fork() {
  new (&arrived_) std::condition_variable;  // the old one counts threads that are gone
  if (Managed* block = std::exchange(arriving_, nullptr)) {
    memory_->release(block->take_piece(), block->asked());
    ledger_->unpin(*block);
    ledger_->spill(*block);
  }
}

QuotaPool::Managed& QuotaPool::managed(Block& block) { return static_cast<Managed&>(block); }

bool QuotaPool::may_leave(const Managed& block) const {
  return may_spill_ && block.charged() >= static_cast<std::int64_t>(kSmallestSpill);
}

QuotaPool::Managed* QuotaPool::new_block() {
  if (!spare_) return new Managed;
  Managed* block = std::exchange(spare_, spare_->next_spare);
  block->next_spare = nullptr;
  return block;
}

// ---- allocation ----

Block* QuotaPool::allocate(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max()) / 2)
    fail(ErrorKind::memory, "pool: cannot allocate ", bytes, " bytes");
  const std::int64_t charged = memory_->charged(bytes);
  if (!pressure_.empty()) [[unlikely]]
    tell_pressure(charged);
  Lock lock(*this);
  if (fault_point()) fail(ErrorKind::memory, "pool: cannot allocate ", bytes, " bytes (a test)");
  make_room(charged);
  Managed* block = new_block();
  try {
    block->put(memory_->allocate(bytes));
  } catch (...) {
    block->next_spare = std::exchange(spare_, block);
    throw;
  }
  block->source = this;
  block->Block::bytes = bytes;
  static_cast<LedgerEntry&>(*block) = {charged};
  ledger_->add(*block);
  if (live_blocks_++ == 0) self_ = shared_from_this();
  return block;
}

void QuotaPool::make_room(std::int64_t bytes) {
  if (quota_ < 0) return;
  for (LedgerEntry* leaving : ledger_->make_room(bytes)) spill(static_cast<Managed&>(*leaving));
  copy_ahead(bytes);
}

void QuotaPool::release(Block* released) noexcept {
  std::shared_ptr<QuotaPool> last;  // the pool may end with this block, after the lock is free
  Managed& block = managed(*released);
  Lock lock(*this);
  wait_for(lock, block);
  ledger_->remove(block);
  if (block.data) memory_->release(block.take_piece(), block.asked());
  if (block.ahead) {
    forget_ahead(block);
  } else if (block.tier) {
    delist(block);
    forget_copy(block);
  }
  block.next_spare = std::exchange(spare_, &block);
  if (--live_blocks_ == 0) last = std::move(self_);
  if (streaming_) prefetch();
}

// ---- use ----

bool QuotaPool::use(Block& used) {
  Managed& block = managed(used);
  if (!may_leave(block)) {
    memory_->use(block.piece());
    return false;
  }
  Lock lock(*this);
  wait_for(lock, block);
  if (block.ahead) forget_ahead(block);  // the use may write
  if (block.data)
    ledger_->use(block);
  else
    restore(block);
  memory_->use(block.piece());
  ledger_->pin(block);
  return true;
}

void QuotaPool::pin(Block& pinned) {
  Lock lock(*this);
  Managed& block = managed(pinned);
  wait_for(lock, block);
  if (block.ahead) forget_ahead(block);
  if (!block.data) restore(block);
  memory_->expose(block.piece());
  ledger_->pin(block);
}

void QuotaPool::unpin(Block& pinned) noexcept {
  Lock lock(*this);
  ledger_->unpin(managed(pinned));
}

void QuotaPool::wait_for(Lock& lock, Managed& block) {
  while (arriving_ == &block) arrived_.wait(lock);
}

// ---- leaving and coming back ----

void QuotaPool::copy_out(Managed& block) {
  if (!tier_ || !tier_->is_own()) tier_ = memory_->make_tier();
  memory_->before_copy(block.piece());
  block.copy = tier_->write(block.data, block.asked());
  memory_->after_copy(block.piece());
  block.tier = tier_;
}

void QuotaPool::spill(Managed& block) {
  if (block.ahead) {
    set_ahead(block, false);
    ++left_ahead_;
  } else {
    // Copies that are not needed yet make room for those that are.
    while (!ahead_.empty() && !tier_->has_room(block.asked())) forget_ahead(*ahead_.back());
    copy_out(block);
  }
  memory_->leave(block.piece());
  memory_->release(block.take_piece(), block.asked());
  ledger_->spill(block);
  enlist(block);
  note(EventKind::spill, block);
}

// The coldest blocks, when little is free: those that make_room will want next.
void QuotaPool::copy_ahead(std::int64_t bytes) {
  const std::int64_t part = quota_ / kAheadPart;
  if (!may_spill_ || !memory_->copies_beside() || ahead_bytes_ >= part) return;
  const LedgerFigures figures = ledger_->figures();
  // A pool that holds all it needs copies nothing.
  if (figures.spills == 0 || figures.live_bytes + bytes < quota_ - part) return;
  for (LedgerEntry* entry : ledger_->cold()) {
    Managed& block = static_cast<Managed&>(*entry);
    if (block.ahead) continue;
    if (ahead_bytes_ >= part || !tier_->is_own() || !tier_->has_room(block.asked())) return;
    try {
      copy_out(block);
    } catch (const Error&) {
      return;  // who needs the room will meet the error
    }
    set_ahead(block, true);
  }
}

void QuotaPool::set_ahead(Managed& block, bool ahead) {
  block.ahead = ahead;
  ahead_bytes_ += ahead ? block.charged() : -block.charged();
  if (ahead)
    ahead_.push_back(&block);
  else
    std::erase(ahead_, &block);
}

void QuotaPool::forget_ahead(Managed& block) {
  set_ahead(block, false);
  forget_copy(block);
}

void QuotaPool::restore(Managed& block) {
  make_room(block.charged());
  const PoolMemory::Piece piece = memory_->allocate(block.asked());
  try {
    memory_->before_arriving(piece);
    block.tier->read(block.copy, piece.data, block.asked());
    memory_->after_arriving(piece);
  } catch (...) {
    memory_->release(piece, block.asked());
    throw;
  }
  block.put(piece);
  ledger_->restore(block);
  note_restored(block);
  prefetch();
}

void QuotaPool::note(EventKind kind, const Managed& block) const {
  if (logs_memory())
    note_memory(kind, static_cast<const Block*>(&block), block.asked(), memory_->device_name());
}

Block& QuotaPool::holder(Block& block) {
  Block* const inner = managed(block).inner;
  return inner ? *inner : block;
}

void QuotaPool::describe(Block& block, std::string text) {
  if (Block* const inner = managed(block).inner) inner->source->describe(*inner, std::move(text));
}

void QuotaPool::forget_copy(Managed& block) {
  block.tier->remove(block.copy);
  block.tier = nullptr;
}

void QuotaPool::enlist(Managed& block) {
  block.left_before = last_spilled_;
  block.left_after = nullptr;
  (last_spilled_ ? last_spilled_->left_after : first_spilled_) = &block;
  last_spilled_ = &block;
}

void QuotaPool::delist(Managed& block) {
  if (expected_ == &block) expected_ = forward_ ? block.left_after : block.left_before;
  (block.left_before ? block.left_before->left_after : first_spilled_) = block.left_after;
  (block.left_after ? block.left_after->left_before : last_spilled_) = block.left_before;
}

// Blocks come back in the order they left (data, epoch after epoch) or the other way round (a
// backward pass). A block that came as expected says that the stream goes on.
void QuotaPool::note_restored(Managed& block) {
  streaming_ = expected_ == &block;
  if (!streaming_) forward_ = block.left_before == nullptr && block.left_after != nullptr;
  expected_ = forward_ ? block.left_after : block.left_before;
  delist(block);
  forget_copy(block);
  note(EventKind::restore, block);
}

// Starts to bring back the block expected next, where it fits without driving another one out.
void QuotaPool::prefetch() {
  Managed* block = expected_;
  if (!run_in_background || ledger_->gives_way()) return;
  if (!streaming_ || !block || arriving_) return;
  if (ledger_->figures().live_bytes + block->charged() > quota_) return;
  try {
    const PoolMemory::Piece piece = memory_->allocate(block->asked());
    memory_->before_arriving(piece);
    block->put(piece);
  } catch (const Error&) {
    return;  // it can come when it is needed
  }
  ledger_->restore(*block);
  ledger_->pin(*block);
  arriving_ = block;
  struct Job {
    std::shared_ptr<QuotaPool> pool;
    Managed* block;
  };
  run_in_background(
      [](void* argument) {
        const std::unique_ptr<Job> job(static_cast<Job*>(argument));
        job->pool->finish_prefetch(*job->block);
      },
      new Job{shared_from_this(), block});
}

void QuotaPool::finish_prefetch(Managed& block) {
  bool came = true;
  try {
    block.tier->read(block.copy, block.data, block.asked());
    memory_->after_arriving(block.piece());
  } catch (const Error&) {
    came = false;  // whoever needs it will meet the error
  }
  Lock lock(*this);
  arriving_ = nullptr;
  ledger_->unpin(block);
  if (came) {
    ++foreseen_;
    note_restored(block);
    prefetch();
  } else {
    memory_->release(block.take_piece(), block.asked());
    ledger_->spill(block);
    streaming_ = false;
    expected_ = nullptr;
  }
  arrived_.notify_all();
}

std::int64_t QuotaPool::spill_all() {
  Lock lock(*this);
  const std::int64_t before = ledger_->figures().live_bytes;
  for (LedgerEntry* block : ledger_->cold()) spill(static_cast<Managed&>(*block));
  return before - ledger_->figures().live_bytes;
}

// ---- figures ----

void QuotaPool::on_pressure(double level, PressureCall call) {
  Lock lock(*this);
  pressure_.push_back({level, std::move(call)});
}

void QuotaPool::tell_pressure(std::int64_t bytes) {
  std::vector<PressureCall> calls;
  std::int64_t live;
  {
    Lock lock(*this);
    live = ledger_->figures().live_bytes + bytes;
    for (Pressure& pressure : pressure_) {
      const bool above = static_cast<double>(live) >= pressure.level * static_cast<double>(quota_);
      if (above && !pressure.above) calls.push_back(pressure.call);
      pressure.above = above;
    }
  }
  if (calls.empty()) return;
  for (const PressureCall& call : calls) call(live);
}

PoolStats QuotaPool::heap_figures() {
  Lock lock(*this);
  return memory_->stats();
}

LedgerFigures QuotaPool::figures() {
  Lock lock(*this);
  return ledger_->figures();
}

void QuotaPool::reset_peaks() {
  Lock lock(*this);
  ledger_->reset_peaks();
  memory_->reset_peaks();
}

std::int64_t QuotaPool::trim() {
  Lock lock(*this);
  return memory_->trim();
}

std::int64_t QuotaPool::foreseen() {
  Lock lock(*this);
  return foreseen_;
}

std::int64_t QuotaPool::left_ahead() {
  Lock lock(*this);
  return left_ahead_;
}

std::shared_ptr<SpillTier> QuotaPool::tier() {
  Lock lock(*this);
  return tier_;
}

std::string QuotaPool::spill_path() {
  Lock lock(*this);
  return tier_ ? tier_->path() : "";
}

}  // namespace tw
