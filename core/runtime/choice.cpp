// Choices are few: one for each combination that a program has ever used.
#include "core/runtime/choice.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "core/base/fork.h"
#include "core/memory/events.h"
#include "core/runtime/launch.h"
#include "core/runtime/registry.h"

namespace tw {

namespace {

std::mutex mutex;  // guards what `interned` keeps
const AtFork guarded(ForkOrder::choices, [] { mutex.lock(); }, [] { mutex.unlock(); });

// Rows that calls pass by on their way in full alone.
constexpr OptimizationSet kShortcuts = {Optimization::call_shortcuts, Optimization::call_cache};
const bool known_at_start = [] {
  set_calls_in_full(off_at_start().meets(kShortcuts));
  return true;
}();

std::size_t hash_of(const Choice& choice) {
  std::size_t hash = choice.batch_invariant;
  const auto add = [&hash](std::size_t word) { hash = (hash ^ word) * 0x9e3779b97f4a7c15u; };
  add(std::hash<const void*>()(choice.isa));
  for (int i = 0; i < OptimizationSet::kWords; ++i) add(choice.off.word(i));
  for (const auto& [op, kernel] : choice.forced) {
    add(std::hash<const void*>()(op));
    add(std::hash<const void*>()(kernel));
  }
  return hash;
}

}  // namespace

void Choice::force(const OpKernels* op, const Kernel* kernel) {
  std::erase_if(forced, [op](const auto& entry) { return entry.first == op; });
  if (!kernel) return;
  forced.emplace_back(op, kernel);
  std::sort(forced.begin(), forced.end());
}

bool Choice::forces_plain_op() const {
  return std::any_of(forced.begin(), forced.end(), [](const auto& entry) {
    return entry.first->lowering && entry.first->lowering->plain;
  });
}
bool Choice::wants_calls_in_full() const { return off.meets(kShortcuts) || forces_plain_op(); }

void turn_off_for_all(const OptimizationSet& rows) {
  set_off_for_all(rows);
  set_calls_in_full(rows_off_for_all().meets(kShortcuts));
  forget_choices();
}

void set_choice(const Choice& choice) {
  modes.choice = interned(choice);
  modes.in_full = modes.choice && modes.choice->wants_calls_in_full();
  modes.update_plain();
}

thread_local Used used;
void note_use(Optimization row) {
  if (observed()) used.rows.add(row);
}
void note_use(const Kernel& inner) {
  if (observed() && std::find(used.inner.begin(), used.inner.end(), &inner) == used.inner.end())
    used.inner.push_back(&inner);
}

void add_used(Event& event) {
  const Used seen = std::exchange(used, {});
  if (seen.rows.empty() && seen.inner.empty()) return;
  EventDetails details = event.details ? *event.details : EventDetails();
  details.optimizations = seen.rows;
  details.inner = seen.inner;
  event.details = std::make_shared<EventDetails>(std::move(details));
}

const Choice* interned(const Choice& choice) {
  static auto* const all = new std::unordered_multimap<std::size_t, const Choice>;
  if (choice == Choice()) return nullptr;
  const std::size_t hash = hash_of(choice);
  const std::lock_guard lock(mutex);
  const auto [first, past] = all->equal_range(hash);
  for (auto known = first; known != past; ++known)
    if (known->second == choice) return &known->second;
  return &all->emplace(hash, choice)->second;
}

}  // namespace tw
