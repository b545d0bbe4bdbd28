// What a pool with a quota knows of its blocks, and what it decides: which may stay in memory. The
// mechanism (memory and files) is the pool's; a pure-Python ledger of the same interface is the
// reference that this one is held against.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tw {

// A block as its ledger sees it; the pool's own record of the block derives from this.
struct LedgerEntry {
  std::int64_t bytes = 0;
  std::uint32_t pins = 0;
  bool spilled = false;
  LedgerEntry *colder = nullptr, *warmer = nullptr;  // neighbours among those that may leave
};

// Blocks below this stay where they are: a file operation costs as much as writing this many bytes.
inline constexpr std::size_t kSmallestSpill = 64 << 10;

struct LedgerFigures {
  std::int64_t live_bytes, peak_live_bytes;        // in memory
  std::int64_t spilled_bytes, peak_spilled_bytes;  // in files
  std::int64_t pinned_bytes;
  std::int64_t allocations, releases, spills, restores;
};

class Ledger {
 public:
  virtual ~Ledger() = default;
  // The blocks that must leave, coldest first, so that `bytes` more fit in; none that is pinned.
  // Raises MemoryError where all of them do not suffice.
  virtual std::vector<LedgerEntry*> make_room(std::int64_t bytes) = 0;
  // All that may leave, coldest first.
  virtual std::vector<LedgerEntry*> cold() = 0;
  // A new block in memory, its `bytes` set.
  virtual void add(LedgerEntry& block) = 0;
  virtual void use(LedgerEntry& block) = 0;
  virtual void pin(LedgerEntry& block) = 0;
  virtual void unpin(LedgerEntry& block) = 0;
  virtual void spill(LedgerEntry& block) = 0;
  virtual void restore(LedgerEntry& block) = 0;
  virtual void remove(LedgerEntry& block) = 0;
  virtual LedgerFigures figures() const = 0;
  virtual void reset_peaks() = 0;
  // Where the ledger's calls need what callers of the pool hold (an interpreter's lock), waiting
  // for the pool's lock must give way: lets others run for a moment and returns true.
  virtual bool gives_way() { return false; }
};

// `quota_bytes` < 0: no bound. Without `may_spill` nothing ever leaves.
std::unique_ptr<Ledger> make_ledger(std::int64_t quota_bytes, bool may_spill);

}  // namespace tw
