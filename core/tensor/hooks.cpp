#include "core/tensor/hooks.h"

#include <algorithm>
#include <unordered_map>

#include "core/tensor/tensor.h"

namespace tw {

namespace {

// Never destroyed: tensors may end later.
std::unordered_map<std::uint64_t, HookList*>& places() {
  static auto& instance = *new std::unordered_map<std::uint64_t, HookList*>;
  return instance;
}

}  // namespace

std::uint64_t HookList::add(Hook hook) {
  static std::uint64_t last = 0;
  entries_.push_back({++last, std::move(hook)});
  places()[last] = this;
  ++held_functions;
  return last;
}

HookList::~HookList() {
  for (const HookEntry& entry : entries_) places().erase(entry.id);
  held_functions -= entries_.size();
}

void HookList::remove(std::uint64_t id) {
  const auto found = places().find(id);
  if (found == places().end()) return;
  auto& entries = found->second->entries_;
  places().erase(found);
  const auto entry = std::find_if(entries.begin(), entries.end(),
                                  [id](const HookEntry& hook) { return hook.id == id; });
  const Hook ends_last = std::move(entry->call);  // what it frees may come back here
  entries.erase(entry);
  --held_functions;
}

}  // namespace tw
