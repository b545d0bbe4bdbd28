// Blocks are copied without the pool's lock: a block that is in flight belongs to the thread that
// copies it, and others leave it alone until it has arrived or left.
#include "core/memory/quota_pool.h"

#include <algorithm>
#include <cassert>
#include <exception>

#include "core/base/error.h"
#include "core/base/fault.h"
#include "core/base/frontend_lock.h"
#include "core/memory/background_work.h"
#include "core/memory/events.h"

namespace tw {

struct QuotaPool::Managed : Block, LedgerEntry {
  Block* inner = nullptr;  // of the memory's own source
  Copy copy;               // while the bytes are below
  bool dropped = false;    // released in flight: who copies it puts it away
  Managed *left_before = nullptr, *left_after = nullptr;  // neighbours among the spilled
  Managed* next_spare = nullptr;
  Managed *live_before = nullptr, *live_after = nullptr;
  const char* tensor = "";  // that it is for, where that was announced

  std::size_t asked() const { return Block::bytes; }
  PoolMemory::Piece piece() const { return {data, inner}; }
  PoolMemory::Piece take_piece() { return {std::exchange(data, nullptr), inner}; }
  void put(const PoolMemory::Piece& piece) {
    data = piece.data;
    inner = piece.inner;
  }
  std::int64_t charged() const { return LedgerEntry::bytes; }
};

// Keeps a block in memory, once it is there, for a scope in which the lock may be free.
class QuotaPool::Awaited {
 public:
  Awaited(QuotaPool& pool, Managed& block) : pool_(pool), block_(block) {
    pool.awaited_.push_back(&block);
    pool.ledger_->pin(block);
  }
  ~Awaited() {
    std::vector<Managed*>& all = pool_.awaited_;
    all.erase(std::find(all.begin(), all.end(), &block_));
    pool_.ledger_->unpin(block_);
  }
  Awaited(const Awaited&) = delete;
  Awaited& operator=(const Awaited&) = delete;

 private:
  QuotaPool& pool_;
  Managed& block_;
};

namespace {

// Of the quota: copies ahead are of so much, and made when no more than that is free. A copy that
// is not needed costs the bus; a block that leaves without one costs the stream that needs its
// room.
constexpr std::int64_t kAheadPart = 8;

// What a block's bytes may do next.
[[maybe_unused]] bool may_step(Residence from, Residence to) {
  switch (from) {
    case Residence::nowhere: return to == Residence::resident;
    case Residence::resident: return to == Residence::leaving || to == Residence::nowhere;
    case Residence::leaving: return to != Residence::leaving && to != Residence::arriving;
    case Residence::copied:
      return to == Residence::resident || to == Residence::away || to == Residence::nowhere;
    case Residence::away: return to == Residence::arriving || to == Residence::nowhere;
    case Residence::arriving:
      return to == Residence::resident || to == Residence::away || to == Residence::nowhere;
  }
  return false;
}

// Of the thread that brings blocks back beside the program, one after the other: it must not wait
// for one that is behind its own, of another pool.
thread_local bool runs_prefetch = false;

// Where the program is, for events that are told when the frontend's lock is free.
const char* position_for_events() { return logs_memory() && source_line ? source_line() : ""; }

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
      for (QuotaPool* pool : pools().list) pool->mutex_.lock();
    },
    [] {
      for (QuotaPool* pool : pools().list) pool->mutex_.unlock();
      pools().mutex.unlock();
    },
    [] {
      for (QuotaPool* pool : pools().list) pool->forget_after_fork();
    });

// The threads that copied blocks, or waited for them, are the parent's. What was leaving is here
// still, what was arriving has to be fetched anew.
void QuotaPool::forget_after_fork() {
  new (&moved_) std::condition_variable;  // the old one counts threads that are gone
  makes_tier_ = prefetches_ = streaming_ = false;
  expected_ = queued_ = nullptr;
  outdated_.clear();
  for (Managed* block : std::exchange(awaited_, {})) ledger_->unpin(*block);
  for (Managed* block : std::vector<Managed*>(in_flight_)) {
    if (block->dropped)
      put_away(*block);
    else if (block->residence == Residence::leaving)
      step(*block, Residence::resident);
    else
      end_arrival(*block, false, "");
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

// ---- where a block's bytes are ----

// All that follows from a change of it is done here, except for memory and copies themselves.
void QuotaPool::step(Managed& block, Residence to) {
  const Residence from = std::exchange(block.residence, to);
  assert(may_step(from, to));
  if (is_in_flight(from)) {
    std::erase(in_flight_, &block);
    if (!block.dropped) ledger_->unpin(block);
    moved_.notify_all();
  }
  if (from == Residence::copied) {
    std::erase(ahead_, &block);
    ahead_bytes_ -= block.charged();
  }
  if (from == Residence::away && to == Residence::arriving) ledger_->restore(block);
  if (to == Residence::away) ledger_->spill(block);
  if (to == Residence::copied) {
    ahead_.push_back(&block);
    ahead_bytes_ += block.charged();
  }
  if (is_in_flight(to)) {
    in_flight_.push_back(&block);
    ledger_->pin(block);
  }
}

// Of a block that is released.
void QuotaPool::put_away(Managed& block) {
  if (block.residence == Residence::away || block.residence == Residence::arriving) delist(block);
  if (block.data) memory_->release(block.take_piece(), block.asked());
  if (block.copy.tier) drop_copy(block);
  step(block, Residence::nowhere);
  block.dropped = false;
  (block.live_before ? block.live_before->live_after : first_live_) = block.live_after;
  if (block.live_after) block.live_after->live_before = block.live_before;
  block.next_spare = std::exchange(spare_, &block);
}

void QuotaPool::drop_copy(Managed& block) { outdated_.push_back(std::exchange(block.copy, {})); }

void QuotaPool::remove_outdated(Lock& lock) {
  while (!outdated_.empty()) {
    std::vector<Copy> copies = std::exchange(outdated_, {});
    lock.unlock();
    for (const Copy& copy : copies) copy.tier->remove(copy.number);
    copies.clear();
    lock.lock();
  }
}

// Until the block (null: any) is in flight no more.
void QuotaPool::wait_for(Lock& lock, const Managed* block) {
  lock.unlock();
  {
    const UnlockedWait others;
    lock.lock();
    if (block)
      moved_.wait(lock, [block] { return !is_in_flight(block->residence); });
    else if (!in_flight_.empty())
      moved_.wait(lock);
    lock.unlock();  // nobody who holds it waits for the frontend's
  }
  lock.lock();
}

// ---- allocation ----

// Where the quota does not suffice, who holds it is told; no lock is held then.
Block* QuotaPool::allocate(std::size_t bytes) {
  try {
    return take(bytes);
  } catch (const Error& refused) {
    if (refused.kind != ErrorKind::memory) throw;
    throw Error(refused.kind, refused.message + largest_holders(holdings()));
  }
}

std::vector<Holding> QuotaPool::holdings() {
  const Lock lock(mutex_);
  std::vector<Holding> found;
  for (const Managed* block = first_live_; block; block = block->live_after) {
    if (block->residence == Residence::away) continue;
    Holding holding = logged_holding(static_cast<const Block*>(block));
    if (!*holding.tensor) holding.tensor = block->tensor;
    holding.bytes = static_cast<double>(block->charged());
    found.push_back(holding);
  }
  return found;
}

Block* QuotaPool::take(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max()) / 2)
    fail(ErrorKind::memory, "pool: cannot allocate ", bytes, " bytes");
  const char* const tensor = announced_tensor();
  const std::int64_t charged = memory_->charged(bytes);
  if (!pressure_.empty()) [[unlikely]]
    tell_pressure(charged);
  Lock lock(mutex_);
  if (fault_point()) fail(ErrorKind::memory, "pool: cannot allocate ", bytes, " bytes (a test)");
  make_room(lock, charged);
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
  block->tensor = tensor;
  block->live_before = nullptr;
  block->live_after = first_live_;
  if (first_live_) first_live_->live_before = block;
  first_live_ = block;
  step(*block, Residence::resident);
  ledger_->add(*block);
  if (live_blocks_++ == 0) self_ = shared_from_this();
  copy_ahead(lock, *block);
  return block;
}

// Whether the lock was free meanwhile; when this returns, the room is there.
bool QuotaPool::make_room(Lock& lock, std::int64_t bytes) {
  if (quota_ < 0) return false;
  for (bool freed = false;;) {
    std::vector<LedgerEntry*> leaving;
    try {
      leaving = ledger_->make_room(bytes);
    } catch (const Error&) {
      if (in_flight_.empty()) throw;
      // What is in flight may leave, or may be made to.
      if (runs_prefetch && queued_)
        give_up_prefetch();
      else
        wait_for(lock, nullptr);
      freed = true;
      continue;
    }
    if (leaving.empty()) return freed;
    for (LedgerEntry* entry : leaving) {
      // The list is what was to be done before the lock was free.
      if (freed && ledger_->figures().live_bytes + bytes <= quota_) break;
      freed |= leave(lock, static_cast<Managed&>(*entry));
    }
  }
}

void QuotaPool::release(Block* released) noexcept {
  std::shared_ptr<QuotaPool> last;  // the pool may end with this block, after the lock is free
  Managed& block = managed(*released);
  Lock lock(mutex_);
  if (queued_ == &block) give_up_prefetch();
  ledger_->remove(block);
  if (is_in_flight(block.residence)) [[unlikely]]
    block.dropped = true;
  else
    put_away(block);
  if (--live_blocks_ == 0) last = std::move(self_);
  if (streaming_) prefetch();
  remove_outdated(lock);
}

// ---- use ----

bool QuotaPool::use(Block& used) {
  Managed& block = managed(used);
  if (!may_leave(block)) {
    memory_->use(block.piece());
    return false;
  }
  Lock lock(mutex_);
  if (block.residence != Residence::resident) [[unlikely]]
    bring_back(lock, block);
  ledger_->use(block);
  memory_->use(block.piece());
  ledger_->pin(block);
  return true;
}

void QuotaPool::pin(Block& pinned) {
  Lock lock(mutex_);
  Managed& block = managed(pinned);
  if (block.residence != Residence::resident) [[unlikely]]
    bring_back(lock, block);
  memory_->expose(block.piece());
  ledger_->pin(block);
}

void QuotaPool::unpin(Block& pinned) noexcept {
  const Lock lock(mutex_);
  ledger_->unpin(managed(pinned));
}

// Until the block is resident.
void QuotaPool::bring_back(Lock& lock, Managed& block) {
  const Awaited awaited(*this, block);
  while (block.residence != Residence::resident) {
    if (is_in_flight(block.residence)) {
      if (runs_prefetch && queued_ == &block)
        give_up_prefetch();
      else
        wait_for(lock, &block);
    } else if (block.residence == Residence::copied) {
      step(block, Residence::resident);  // the use may write
      drop_copy(block);
    } else if (!make_room(lock, block.charged())) {  // else another thread may have brought it
      fetch(lock, block);
      copy_ahead(lock, block);
    }
  }
  remove_outdated(lock);
}

// ---- leaving ----

// Makes a block leave, where it still may: it was listed before the lock was free, and may be
// another one by now. Whether the lock was free meanwhile.
bool QuotaPool::leave(Lock& lock, Managed& block) {
  if (block.pins || !may_leave(block)) return false;
  if (block.residence == Residence::copied) {
    ++left_ahead_;
    leave_memory(block, position_for_events());
    return false;
  }
  if (block.residence != Residence::resident) return false;
  // Copies that are not needed yet make room for those that are.
  while (!ahead_.empty() && !tier_->has_room(block.asked())) {
    Managed& other = *ahead_.back();
    step(other, Residence::resident);
    const Copy copy = std::exchange(other.copy, {});
    copy.tier->remove(copy.number);
  }
  copy_out(lock, block, Residence::away);
  return true;
}

void QuotaPool::leave_memory(Managed& block, const char* source) {
  memory_->leave(block.piece());
  memory_->release(block.take_piece(), block.asked());
  step(block, Residence::away);
  enlist(block);
  note(EventKind::spill, block, source);
}

// Copies a resident block to the tier below; `then`: where it is afterwards, if nobody asked for it
// meanwhile. Where the copy fails, it stays as it is.
void QuotaPool::copy_out(Lock& lock, Managed& block, Residence then) {
  step(block, Residence::leaving);
  const char* const source = position_for_events();
  std::exception_ptr failure;
  lock.unlock();
  {
    const UnlockedWait others;
    Copy copy;
    try {
      copy = write_copy(block);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    const bool wanted = block.pins > 1;
    block.copy = std::move(copy);
    if (block.dropped) {
      failure = nullptr;  // its room is free all the same
      put_away(block);
    } else if (failure || wanted) {
      step(block, Residence::resident);
      if (block.copy.tier) drop_copy(block);
    } else if (then == Residence::away) {
      leave_memory(block, source);
    } else {
      step(block, then);
    }
    lock.unlock();  // nobody who holds it waits for the frontend's
  }
  lock.lock();
  remove_outdated(lock);
  if (failure) std::rethrow_exception(failure);
}

QuotaPool::Copy QuotaPool::write_copy(const Managed& block) {
  Copy copy{own_tier()};
  memory_->before_copy(block.piece());
  copy.number = copy.tier->write(block.data, block.asked());
  try {
    memory_->after_copy(block.piece());
  } catch (...) {
    copy.tier->remove(copy.number);
    throw;
  }
  return copy;
}

// Of this process, made where there is none.
std::shared_ptr<SpillTier> QuotaPool::own_tier() {
  Lock lock(mutex_);
  moved_.wait(lock, [this] { return !makes_tier_; });
  if (tier_ && tier_->is_own()) return tier_;
  makes_tier_ = true;
  lock.unlock();
  std::shared_ptr<SpillTier> made;
  std::exception_ptr failure;
  try {
    made = memory_->make_tier();
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  makes_tier_ = false;
  moved_.notify_all();
  if (failure) std::rethrow_exception(failure);
  return tier_ = made;
}

// The coldest blocks, when little is free: those that make_room will want next. All but the one
// that was made or brought back just now.
void QuotaPool::copy_ahead(Lock& lock, Managed& made) {
  const std::int64_t part = quota_ / kAheadPart;
  if (!may_spill_ || !memory_->copies_beside() || ahead_bytes_ >= part) return;
  const LedgerFigures figures = ledger_->figures();
  // A pool that holds all it needs copies nothing.
  if (figures.spills == 0 || figures.live_bytes < quota_ - part) return;
  const Awaited awaited(*this, made);
  for (LedgerEntry* entry : ledger_->cold()) {
    Managed& block = static_cast<Managed&>(*entry);
    if (block.residence != Residence::resident || block.pins || !may_leave(block)) continue;
    if (ahead_bytes_ >= part || !tier_->is_own() || !tier_->has_room(block.asked())) return;
    try {
      copy_out(lock, block, Residence::copied);
    } catch (const Error&) {
      return;  // who needs the room will meet the error
    }
  }
}

// ---- coming back ----

// Of a block that is away, where there is room.
void QuotaPool::fetch(Lock& lock, Managed& block) {
  begin_arrival(block);
  const char* const source = position_for_events();
  std::exception_ptr failure;
  lock.unlock();
  {
    const UnlockedWait others;
    try {
      read_copy(block);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    end_arrival(block, !failure, source);
    lock.unlock();  // nobody who holds it waits for the frontend's
  }
  lock.lock();
  if (failure) std::rethrow_exception(failure);
  prefetch();
}

void QuotaPool::begin_arrival(Managed& block) {
  const PoolMemory::Piece piece = memory_->allocate(block.asked());
  try {
    memory_->before_arriving(piece);
  } catch (...) {
    memory_->release(piece, block.asked());
    throw;
  }
  block.put(piece);
  step(block, Residence::arriving);
}

void QuotaPool::read_copy(const Managed& block) {
  block.copy.tier->read(block.copy.number, block.data, block.asked());
  memory_->after_arriving(block.piece());
}

// Blocks come back in the order they left (data, epoch after epoch) or the other way round (a
// backward pass). A block that came as expected says that the stream goes on.
void QuotaPool::end_arrival(Managed& block, bool came, const char* source) {
  if (block.dropped) return put_away(block);
  if (!came) {
    memory_->release(block.take_piece(), block.asked());
    return step(block, Residence::away);
  }
  streaming_ = expected_ == &block;
  if (!streaming_) forward_ = block.left_before == nullptr && block.left_after != nullptr;
  expected_ = forward_ ? block.left_after : block.left_before;
  delist(block);
  drop_copy(block);
  step(block, Residence::resident);
  note(EventKind::restore, block, source);
}

// Starts to bring back the block expected next, where it fits without driving another one out.
void QuotaPool::prefetch() {
  Managed* const block = expected_;
  if (!run_in_background || !streaming_ || !block || prefetches_) return;
  if (block->residence != Residence::away) return;
  if (ledger_->figures().live_bytes + block->charged() > quota_) return;
  try {
    begin_arrival(*block);
  } catch (const Error&) {
    return;  // it can come when it is needed
  }
  prefetches_ = true;
  queued_ = block;
  struct Job {
    std::shared_ptr<QuotaPool> pool;
    Managed* block;
  };
  run_in_background(
      [](void* argument) {
        const std::unique_ptr<Job> job(static_cast<Job*>(argument));
        runs_prefetch = true;
        job->pool->run_prefetch(*job->block);
        runs_prefetch = false;
      },
      new Job{shared_from_this(), block});
}

void QuotaPool::run_prefetch(Managed& block) {
  Lock lock(mutex_);
  if (queued_ != &block) return;
  queued_ = nullptr;
  lock.unlock();
  bool came = true;
  try {
    read_copy(block);
  } catch (const Error&) {
    came = false;  // whoever needs it will meet the error
  }
  lock.lock();
  prefetches_ = false;
  if (came) {
    foreseen_ += !block.dropped;
  } else if (!block.dropped) {
    streaming_ = false;
    expected_ = nullptr;
  }
  end_arrival(block, came, "");
  prefetch();
  remove_outdated(lock);
}

// Where its reading has not begun.
void QuotaPool::give_up_prefetch() {
  prefetches_ = false;
  end_arrival(*std::exchange(queued_, nullptr), false, "");
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

std::int64_t QuotaPool::spill_all() {
  Lock lock(mutex_);
  const std::int64_t before = ledger_->figures().live_bytes;
  for (LedgerEntry* block : ledger_->cold()) leave(lock, static_cast<Managed&>(*block));
  return before - ledger_->figures().live_bytes;
}

// ---- what others see of a block ----

void QuotaPool::note(EventKind kind, const Managed& block, const char* source) const {
  if (logs_memory())
    note_memory(kind, static_cast<const Block*>(&block), block.asked(), memory_->device_name(),
                source);
}

Block& QuotaPool::holder(Block& block) {
  Block* const inner = managed(block).inner;
  return inner ? *inner : block;
}

void QuotaPool::describe(Block& block, std::string text) {
  if (Block* const inner = managed(block).inner) inner->source->describe(*inner, std::move(text));
}

// ---- figures ----

void QuotaPool::on_pressure(double level, PressureCall call) {
  const Lock lock(mutex_);
  pressure_.push_back({level, std::move(call)});
}

void QuotaPool::tell_pressure(std::int64_t bytes) {
  std::vector<PressureCall> calls;
  std::int64_t live;
  {
    const Lock lock(mutex_);
    live = ledger_->figures().live_bytes + bytes;
    for (Pressure& pressure : pressure_) {
      const bool above = static_cast<double>(live) >= pressure.level * static_cast<double>(quota_);
      if (above && !pressure.above) calls.push_back(pressure.call);
      pressure.above = above;
    }
  }
  if (calls.empty()) return;
  const MidCall ops_of_calls;
  for (const PressureCall& call : calls) call(live);
}

PoolStats QuotaPool::heap_figures() {
  const Lock lock(mutex_);
  return memory_->stats();
}

LedgerFigures QuotaPool::figures() {
  const Lock lock(mutex_);
  return ledger_->figures();
}

void QuotaPool::reset_peaks() {
  const Lock lock(mutex_);
  ledger_->reset_peaks();
  memory_->reset_peaks();
}

std::int64_t QuotaPool::trim() {
  const Lock lock(mutex_);
  return memory_->trim();
}

std::int64_t QuotaPool::foreseen() {
  const Lock lock(mutex_);
  return foreseen_;
}

std::int64_t QuotaPool::left_ahead() {
  const Lock lock(mutex_);
  return left_ahead_;
}

std::shared_ptr<SpillTier> QuotaPool::tier() {
  const Lock lock(mutex_);
  return tier_;
}

std::string QuotaPool::spill_path() {
  const Lock lock(mutex_);
  return tier_ ? tier_->path() : "";
}

}  // namespace tw
