// The native ledger: blocks that may leave stand in a list, coldest first.
#include "core/memory/ledger.h"

#include <algorithm>

#include "core/base/error.h"

namespace tw {

namespace {

class NativeLedger final : public Ledger {
 public:
  NativeLedger(std::int64_t quota_bytes, bool may_spill)
      : quota_(quota_bytes), may_spill_(may_spill) {}

  std::vector<LedgerEntry*> make_room(std::int64_t bytes) override {
    std::int64_t missing = quota_ < 0 ? 0 : figures_.live_bytes + bytes - quota_;
    std::vector<LedgerEntry*> leaving;
    for (LedgerEntry* block = coldest_; missing > 0 && block; block = block->warmer) {
      if (!may_leave(*block)) continue;
      leaving.push_back(block);
      missing -= block->bytes;
    }
    if (missing > 0) refuse(bytes, missing);
    return leaving;
  }

  std::vector<LedgerEntry*> cold() override {
    std::vector<LedgerEntry*> all;
    for (LedgerEntry* block = coldest_; block; block = block->warmer)
      if (may_leave(*block)) all.push_back(block);
    return all;
  }

  void add(LedgerEntry& block) override {
    ++figures_.allocations;
    enter(block);
  }

  void use(LedgerEntry& block) override {
    if (&block == warmest_ || !is_listed(block)) return;
    unlink(block);
    append(block);
  }

  void pin(LedgerEntry& block) override {
    if (block.pins++ == 0) figures_.pinned_bytes += block.bytes;
  }
  void unpin(LedgerEntry& block) override {
    if (--block.pins == 0) figures_.pinned_bytes -= block.bytes;
  }

  void spill(LedgerEntry& block) override {
    leave(block);
    ++figures_.spills;
    figures_.spilled_bytes += block.bytes;
    figures_.peak_spilled_bytes = std::max(figures_.peak_spilled_bytes, figures_.spilled_bytes);
  }

  void restore(LedgerEntry& block) override {
    ++figures_.restores;
    figures_.spilled_bytes -= block.bytes;
    enter(block);
  }

  void remove(LedgerEntry& block) override {
    if (block.pins) figures_.pinned_bytes -= block.bytes;
    if (block.residence == Residence::away)
      figures_.spilled_bytes -= block.bytes;
    else
      leave(block);
    ++figures_.releases;
  }

  LedgerFigures figures() const override { return figures_; }
  void reset_peaks() override {
    figures_.peak_live_bytes = figures_.live_bytes;
    figures_.peak_spilled_bytes = figures_.spilled_bytes;
  }

 private:
  bool may_leave(const LedgerEntry& block) const { return may_spill_ && !block.pins; }
  // While it is in memory.
  static bool is_listed(const LedgerEntry& block) {
    return block.bytes >= static_cast<std::int64_t>(kSmallestSpill);
  }

  void enter(LedgerEntry& block) {
    figures_.live_bytes += block.bytes;
    figures_.peak_live_bytes = std::max(figures_.peak_live_bytes, figures_.live_bytes);
    if (is_listed(block)) append(block);
  }
  void leave(LedgerEntry& block) {
    figures_.live_bytes -= block.bytes;
    if (is_listed(block)) unlink(block);
  }
  void append(LedgerEntry& block) {
    block.colder = warmest_;
    block.warmer = nullptr;
    (warmest_ ? warmest_->warmer : coldest_) = &block;
    warmest_ = &block;
  }
  void unlink(LedgerEntry& block) {
    (block.colder ? block.colder->warmer : coldest_) = block.warmer;
    (block.warmer ? block.warmer->colder : warmest_) = block.colder;
  }

  [[noreturn, gnu::cold]] void refuse(std::int64_t bytes, std::int64_t missing) const {
    fail(ErrorKind::memory, "pool: a block of ", bytes, " bytes does not fit the quota of ", quota_,
         " bytes: ", figures_.live_bytes, " are live and ",
         may_spill_ ? "what is neither in use nor small" : "nothing",
         " can be spilled, which leaves ", missing, " bytes too few; raise quota_bytes");
  }

  const std::int64_t quota_;
  const bool may_spill_;
  LedgerFigures figures_{};
  LedgerEntry *coldest_ = nullptr, *warmest_ = nullptr;
};

}  // namespace

std::unique_ptr<Ledger> make_ledger(std::int64_t quota_bytes, bool may_spill) {
  return std::make_unique<NativeLedger>(quota_bytes, may_spill);
}

}  // namespace tw
