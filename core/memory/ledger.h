// What a pool with a quota knows of its blocks, and what it decides: which may stay in memory. The
// mechanism (memory and files) is the pool's. A ledger in pure Python is the reference that this
// one is held against.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tw {

// Where a block's bytes are. Whoever keeps the entry says so, in one place (QuotaPool::step).
enum class Residence : std::uint8_t {
  nowhere,   // not in use
  resident,  // in memory alone
  leaving,   // in memory, while they are copied to the tier below
  copied,    // in memory, and the same below: the block can leave at once
  away,      // below alone
  arriving,  // below, while they are copied into memory
};
constexpr bool is_in_flight(Residence residence) {
  return residence == Residence::leaving || residence == Residence::arriving;
}

// A block as its ledger sees it; the pool's own record of the block derives from this.
struct LedgerEntry {
  std::int64_t bytes = 0;
  std::uint32_t pins = 0;
  Residence residence = Residence::nowhere;
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
  // The block has memory again. What is copied there meanwhile is pinned, as is what leaves.
  virtual void restore(LedgerEntry& block) = 0;
  virtual void remove(LedgerEntry& block) = 0;
  virtual LedgerFigures figures() const = 0;
  virtual void reset_peaks() = 0;
};

// `quota_bytes` < 0: no bound. Without `may_spill` nothing ever leaves.
std::unique_ptr<Ledger> make_ledger(std::int64_t quota_bytes, bool may_spill);

}  // namespace tw
