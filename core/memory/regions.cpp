#include "core/memory/regions.h"

#include <algorithm>

namespace tw {

void Regions::insert(Range* range, Free::node_type node) noexcept {
  range->free = true;
  node.value() = {range->bytes, ++clock_, range};
  range->entry = free_.insert(std::move(node)).position;
  free_bytes_ += range->bytes;
}

Regions::Free::node_type Regions::remove(Range* range) noexcept {
  free_bytes_ -= range->bytes;
  range->free = false;
  return free_.extract(range->entry);
}

// Joins a range that is in no list with the free one behind it.
void Regions::absorb_next(Range* range) noexcept {
  Range* next = range->after;
  remove(next);
  range->bytes += next->bytes;
  range->purged += next->purged;
  range->after = next->after;
  if (range->after) range->after->before = range;
  ranges_.erase(next->memory);
}

// Leaves `bytes` in a range that was just taken; the rest becomes a free range of its own.
void Regions::split(Range* range, std::size_t bytes) {
  char* memory = range->memory + bytes;
  Free scratch;  // makes the node
  Free::node_type node = scratch.extract(scratch.insert(Entry{}).first);
  auto rest = std::make_unique<Range>();
  rest->memory = memory;
  rest->bytes = range->bytes - bytes;
  Range* added = ranges_.emplace(memory, std::move(rest)).first->second.get();
  // Which bytes were purged is not known by place: those taken first count as given out again.
  added->purged = range->purged > bytes ? range->purged - bytes : 0;
  range->purged -= added->purged;
  range->bytes = bytes;
  added->before = range;
  added->after = range->after;
  if (added->after) added->after->before = added;
  range->after = added;
  insert(added, std::move(node));
}

char* Regions::take(std::size_t bytes, const char* label) {
  auto found = free_.lower_bound(Entry{bytes, 0, nullptr});
  if (found == free_.end()) return nullptr;
  found = std::prev(free_.upper_bound(Entry{found->bytes, UINT64_MAX, nullptr}));
  Range* range = found->range;
  range->spare = remove(range);
  if (range->bytes > bytes) {
    try {
      split(range, bytes);
    } catch (...) {
      insert(range, std::move(range->spare));
      throw;
    }
  }
  purged_bytes_ -= range->purged;
  range->purged = 0;
  range->label = label;
  return range->memory;
}

void Regions::add(char* memory, std::size_t bytes) {
  auto range = std::make_unique<Range>();
  range->memory = memory;
  range->bytes = bytes;
  Free scratch;
  Free::node_type node = scratch.extract(scratch.insert(Entry{}).first);
  Range* added = ranges_.emplace(memory, std::move(range)).first->second.get();
  insert(added, std::move(node));
}

std::size_t Regions::give(char* memory) noexcept {
  Range* range = ranges_.find(memory)->second.get();
  const std::size_t bytes = range->bytes;
  Free::node_type node = std::move(range->spare);
  if (range->after && range->after->free) absorb_next(range);
  if (Range* before = range->before; before && before->free) {
    node = remove(before);
    before->bytes += range->bytes;
    before->purged += range->purged;
    before->after = range->after;
    if (before->after) before->after->before = before;
    ranges_.erase(range->memory);
    range = before;
  }
  insert(range, std::move(node));
  return bytes;
}

Regions::Mapping Regions::pop_oldest() {
  const Entry* oldest = nullptr;
  for (const Entry& entry : free_)
    if (entry.range->whole() && (!oldest || entry.released < oldest->released)) oldest = &entry;
  return oldest ? forget(oldest->range) : Mapping();
}

Regions::Mapping Regions::pop_idle(std::size_t bytes, bool* whole) {
  const Entry* oldest = nullptr;
  for (const Entry& entry : free_) {
    const std::size_t paged = entry.bytes - entry.range->purged;
    if (paged && paged <= bytes && (!oldest || entry.released < oldest->released)) oldest = &entry;
  }
  if (!oldest) return {};
  Range* const range = oldest->range;
  *whole = range->whole();
  if (*whole) return forget(range);
  const Mapping mapping{range->memory, range->bytes, range->purged};
  purged_bytes_ += range->bytes - range->purged;
  range->purged = range->bytes;
  return mapping;
}

Regions::Mapping Regions::forget(Range* range) {
  const Mapping mapping{range->memory, range->bytes, range->purged};
  purged_bytes_ -= range->purged;
  remove(range);
  ranges_.erase(range->memory);
  return mapping;
}

}  // namespace tw
