// A pool with memory and a quota of its own. Over the quota it spills cold blocks to the tier
// below, least recently used first, and brings them back when they are used. Where copies go on
// beside the program, the next blocks to leave are copied ahead: then they leave without a copy,
// and one that is used before that loses its copy. Thread-safe: who needs a block that is being
// copied waits for that one alone.
#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/fork.h"
#include "core/memory/block.h"
#include "core/memory/events.h"
#include "core/memory/ledger.h"
#include "core/memory/memory_source.h"
#include "core/memory/spill.h"

namespace tw {

class QuotaPool final : public BlockSource, public std::enable_shared_from_this<QuotaPool> {
 public:
  // `quota_bytes` < 0: no bound. Without `may_spill` nothing ever leaves.
  static std::shared_ptr<QuotaPool> create(std::int64_t quota_bytes, bool may_spill,
                                           std::unique_ptr<PoolMemory> memory,
                                           std::unique_ptr<Ledger> ledger);
  // Of the processor's memory. `spill_parent`: where the folder of files is made at the first
  // spill; empty: nothing is ever spilled.
  static std::shared_ptr<QuotaPool> create(std::int64_t quota_bytes, std::string spill_parent,
                                           std::unique_ptr<Ledger> ledger);
  ~QuotaPool() override;

  Block* allocate(std::size_t bytes) override;
  void release(Block* block) noexcept override;
  bool use(Block& block) override;
  void pin(Block& block) override;
  void unpin(Block& block) noexcept override;
  BlockSource* serving(const Device* device) override {
    return device == memory_->device() ? this : nullptr;
  }
  Block& holder(Block& block) override;
  void describe(Block& block, std::string text) override;
  std::shared_ptr<BlockSource> share() override { return shared_from_this(); }
  const Device* device() const { return memory_->device(); }

  PoolStats heap_figures();
  LedgerFigures figures();
  void reset_peaks();
  std::int64_t trim();
  // Writes out every block that is not in use or pinned; returns the bytes that left.
  std::int64_t spill_all();
  // Called on the allocating thread, outside locks, before live bytes rise to `level` of the quota:
  // what it frees need not be spilled.
  using PressureCall = std::function<void(std::int64_t live_bytes)>;
  void on_pressure(double level, PressureCall call);

  // Blocks that came back aside, before they were asked for.
  std::int64_t foreseen();
  // Blocks that left without a copy, because that was made ahead.
  std::int64_t left_ahead();
  std::int64_t quota_bytes() const { return quota_; }
  std::string spill_path();  // empty while there is no folder
  // Of the tier below, where it has some; null else.
  std::shared_ptr<SpillTier> tier();

 private:
  struct Managed;
  class Awaited;
  struct Pressure {
    double level;
    PressureCall call;
    bool above = false;
  };
  // A block's copy in a tier. Kept with the block: a forked child goes on with a tier of its own.
  struct Copy {
    std::shared_ptr<SpillTier> tier;
    std::uint64_t number = 0;
  };
  using Lock = std::unique_lock<std::mutex>;

  QuotaPool(std::int64_t quota_bytes, bool may_spill, std::unique_ptr<PoolMemory> memory,
            std::unique_ptr<Ledger> ledger);
  static Managed& managed(Block& block);
  bool may_leave(const Managed& block) const;
  Managed* new_block();
  // Called with the lock held; what takes it frees it for a while, to copy, to wait, or to remove
  // copies.
  void step(Managed& block, Residence to);
  void put_away(Managed& block);
  bool make_room(Lock& lock, std::int64_t bytes);
  bool leave(Lock& lock, Managed& block);
  Block* take(std::size_t bytes);
  std::vector<Holding> holdings();
  void leave_memory(Managed& block, const char* source);
  void copy_out(Lock& lock, Managed& block, Residence then);
  void copy_ahead(Lock& lock, Managed& made);
  void bring_back(Lock& lock, Managed& block);
  void fetch(Lock& lock, Managed& block);
  void begin_arrival(Managed& block);
  void end_arrival(Managed& block, bool came, const char* source);
  void wait_for(Lock& lock, const Managed* block);
  void drop_copy(Managed& block);
  void remove_outdated(Lock& lock);
  void prefetch();
  void give_up_prefetch();
  void enlist(Managed& block);
  void delist(Managed& block);
  void note(EventKind kind, const Managed& block, const char* source) const;
  // Called without the lock.
  Copy write_copy(const Managed& block);
  void read_copy(const Managed& block);
  std::shared_ptr<SpillTier> own_tier();
  void run_prefetch(Managed& block);
  void tell_pressure(std::int64_t bytes);
  void forget_after_fork();
  static const AtFork guarded_;

  std::mutex mutex_;               // guards everything below; never held while blocks are copied
  std::condition_variable moved_;  // a block is in flight no more
  const std::int64_t quota_;
  const bool may_spill_;
  const std::unique_ptr<PoolMemory> memory_;
  const std::unique_ptr<Ledger> ledger_;
  std::shared_ptr<SpillTier> tier_;
  bool makes_tier_ = false;
  Managed* spare_ = nullptr;  // recycled
  Managed* first_live_ = nullptr;
  Managed *first_spilled_ = nullptr, *last_spilled_ = nullptr;  // in the order they left
  std::vector<Managed*> in_flight_;                             // each pinned by who copies it
  std::vector<Managed*> awaited_;  // pinned by threads that wait for them, one each
  std::vector<Copy> outdated_;     // to be removed once the lock is free
  // Foresight: the block that comes next if the stream of the last ones goes on, and the one that
  // is to be read beside the program, until that begins.
  Managed *expected_ = nullptr, *queued_ = nullptr;
  bool forward_ = false, streaming_ = false, prefetches_ = false;
  std::int64_t foreseen_ = 0;
  std::vector<Managed*> ahead_;  // those that are copied
  std::int64_t ahead_bytes_ = 0, left_ahead_ = 0;
  std::int64_t live_blocks_ = 0;
  std::shared_ptr<QuotaPool> self_;  // held while blocks are live
  std::vector<Pressure> pressure_;
};

}  // namespace tw
