// Choices are few: one for each combination that a program has ever used.
#include "core/runtime/choice.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "core/base/fork.h"

namespace tw {

namespace {

std::mutex mutex;  // guards what `interned` keeps
const AtFork guarded(ForkOrder::choices, [] { mutex.lock(); }, [] { mutex.unlock(); });

}  // namespace

void Choice::force(const OpKernels* op, const Kernel* kernel) {
  std::erase_if(forced, [op](const auto& entry) { return entry.first == op; });
  if (!kernel) return;
  forced.emplace_back(op, kernel);
  std::sort(forced.begin(), forced.end());
}

const Choice* interned(const Choice& choice) {
  static auto* const all = new std::vector<std::unique_ptr<const Choice>>;
  if (choice == Choice()) return nullptr;
  const std::lock_guard lock(mutex);
  for (const auto& known : *all)
    if (*known == choice) return known.get();
  return all->emplace_back(std::make_unique<const Choice>(choice)).get();
}

}  // namespace tw
