// Large blocks: ranges cut from mapped regions. A released range joins its free neighbours, so that
// many small requests leave room for a large one again. Not thread-safe; its heap locks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>

namespace tw {

class Regions {
 public:
  // Cuts `bytes` from the smallest free range that has them, of equals from the one released last,
  // the warmest in cache; null where none has.
  // `label`: what the block is for, as text that stays.
  char* take(std::size_t bytes, const char* label = "");
  // Calls visit(label, bytes) for each live range.
  template <class F> void each_live(F&& visit) const {
    for (const auto& [memory, range] : ranges_)
      if (!range->free) visit(range->label, range->bytes);
  }
  // Free bytes that the system has given and not got back.
  std::size_t idle_bytes() const { return free_bytes_ - purged_bytes_; }
  // Adds a fresh mapping as one free range.
  void add(char* memory, std::size_t bytes);
  // `memory` came from take(); returns its bytes.
  std::size_t give(char* memory) noexcept;
  // Bytes whose pages went back to the system and that count as reserved again when taken.
  std::size_t purged_bytes() const { return purged_bytes_; }
  std::size_t free_bytes() const { return free_bytes_; }
  std::size_t largest_free() const { return free_.empty() ? 0 : free_.rbegin()->bytes; }

  struct Mapping {
    char* memory = nullptr;  // null: none
    std::size_t bytes = 0, purged = 0;
  };
  // Forgets the wholly free region that was released longest ago, for its owner to unmap.
  Mapping pop_oldest();
  // The free range that was released longest ago, of those with pages that no more than `bytes`
  // have: forgotten where it is a whole region, for its owner to unmap; else its pages count as
  // given back, which its owner must do.
  Mapping pop_idle(std::size_t bytes, bool* whole);
  // Calls give_back(memory, bytes) for each free range that lies between live ones.
  template <class F> void purge(F&& give_back) {
    for (const Entry& entry : free_) {
      Range& range = *entry.range;
      if (range.purged == range.bytes) continue;
      give_back(range.memory, range.bytes);
      purged_bytes_ += range.bytes - range.purged;
      range.purged = range.bytes;
    }
  }

 private:
  struct Range;
  struct Entry {  // of a free range, ordered by size, then by age
    std::size_t bytes;
    std::uint64_t released;
    Range* range;
    bool operator<(const Entry& other) const {
      return bytes != other.bytes ? bytes < other.bytes : released < other.released;
    }
  };
  using Free = std::set<Entry>;
  struct Range {
    char* memory;
    std::size_t bytes;
    std::size_t purged = 0;
    const char* label = "";                     // of a live one
    Range *before = nullptr, *after = nullptr;  // neighbours in the region
    bool free = true;
    Free::iterator entry;   // where free
    Free::node_type spare;  // where live: what the release will need, so that it cannot fail
    bool whole() const { return !before && !after; }
  };

  void insert(Range* range, Free::node_type node) noexcept;
  Free::node_type remove(Range* range) noexcept;
  Mapping forget(Range* range);
  void absorb_next(Range* range) noexcept;
  void split(Range* range, std::size_t bytes);

  Free free_;
  std::unordered_map<char*, std::unique_ptr<Range>> ranges_;  // free and live
  std::size_t free_bytes_ = 0, purged_bytes_ = 0;
  std::uint64_t clock_ = 0;
};

}  // namespace tw
