// A change keeps the value from before; one that is undone out of order hands that value to the
// change of the same part above it.
#include "core/runtime/mode_changes.h"

#include <algorithm>

#include "core/memory/block.h"

namespace tw {

namespace {

using Change = ThreadModes::Change;
using Part = Change::Part;

// The value of a part as a word: a small number is the address so many bytes into nothing.
const void* word(std::size_t value) { return reinterpret_cast<const void*>(value); }
const OpKernels* op_of(const void* of) { return static_cast<const OpKernels*>(of); }
Optimization row_of(const void* of) { return id_of(*static_cast<const OptimizationRow*>(of)); }
const void* value_of(Part part, const void* of) {
  switch (part) {
    case Part::none: return nullptr;
    case Part::grad: return word(modes.grad);
    case Part::autocast: return word(modes.autocast);
    case Part::batch_invariant: return word(is_batch_invariant());
    case Part::anomaly: return word(modes.anomaly);
    case Part::isa: return modes.choice ? modes.choice->isa : nullptr;
    case Part::forced: return modes.choice ? modes.choice->forced_for(op_of(of)) : nullptr;
    case Part::off: return word(modes.choice && modes.choice->off.has(row_of(of)));
  }
  return nullptr;
}

void set_value(Part part, const void* of, const void* value) {
  if (part == Part::grad) {
    modes.grad = value != nullptr;
    return;
  }
  if (part == Part::autocast) {
    modes.autocast = static_cast<std::uint8_t>(reinterpret_cast<std::uintptr_t>(value));
    modes.update_plain();
    return;
  }
  if (part == Part::anomaly) {
    modes.anomaly = value != nullptr;
    modes.update_plain();
    return;
  }
  if (part == Part::none) return;
  Choice choice = current_choice();
  if (part == Part::batch_invariant)
    choice.batch_invariant = value;
  else if (part == Part::isa)
    choice.isa = static_cast<const ActiveIsa*>(value);
  else if (part == Part::forced)
    choice.force(op_of(of), static_cast<const Kernel*>(value));
  else if (value)
    choice.off.add(row_of(of));
  else
    choice.off.remove(row_of(of));
  set_choice(choice);
}

void change(const void* owner, Part part, const void* of, const void* value) {
  ThreadModes& own = thread_modes();
  own.changes.push_back({owner, own.last_block, part, of, value_of(part, of)});
  set_value(part, of, value);
}

void undo(std::vector<Change>& changes, std::size_t index) {
  const Change undone = changes[index];
  changes.erase(changes.begin() + static_cast<std::ptrdiff_t>(index));
  for (std::size_t i = index; i < changes.size(); ++i)
    if (changes[i].part == undone.part && changes[i].of == undone.of) {
      changes[i].before = undone.before;
      return;
    }
  set_value(undone.part, undone.of, undone.before);
}

}  // namespace

ThreadModes& thread_modes() {
  // What runs as the thread ends has no observers any more.
  struct Own : ThreadModes {
    ~Own() {
      modes.observers = nullptr;
      modes.update_plain();
    }
  };
  static thread_local Own own;
  return own;
}

void ThreadModes::announce() {
  modes.observers = observers.empty() ? nullptr : &observers;
  modes.update_plain();
}

void enter_modes(const void* owner, const ModeChanges& changes) {
  ++thread_modes().last_block;
  change(owner, Part::none, nullptr, nullptr);  // also where nothing else changes
  if (changes.grad) change(owner, Part::grad, nullptr, word(*changes.grad));
  if (changes.autocast) change(owner, Part::autocast, nullptr, word(*changes.autocast));
  if (changes.batch_invariant)
    change(owner, Part::batch_invariant, nullptr, word(*changes.batch_invariant));
  if (changes.anomaly) change(owner, Part::anomaly, nullptr, word(*changes.anomaly));
  if (changes.isa) change(owner, Part::isa, nullptr, changes.isa);
  for (const auto& [op, kernel] : changes.forced) change(owner, Part::forced, op, kernel);
  for (const OptimizationRow* row : changes.off) change(owner, Part::off, row, word(true));
}

bool leave_modes(const void* owner) {
  std::vector<Change>& changes = thread_modes().changes;
  const auto newest = std::find_if(changes.rbegin(), changes.rend(),
                                   [owner](const Change& each) { return each.owner == owner; });
  if (newest == changes.rend()) return false;
  const std::uint64_t block = newest->block;
  for (std::size_t i = changes.size(); i-- > 0;)
    if (changes[i].block == block) undo(changes, i);
  return true;
}

void observe(std::shared_ptr<Observer> observer) {
  ThreadModes& own = thread_modes();
  own.observers.add(std::move(observer));
  own.announce();
}

void stop_observing(const Observer* observer) {
  ThreadModes& own = thread_modes();
  own.observers.remove(observer);
  own.announce();
}

DeviceModes device_modes;

std::unique_ptr<const InheritedModes> inherited_modes() {
  std::shared_ptr<const void> streams = device_modes.taken();
  if (modes.grad && !modes.anomaly && !modes.autocast && !modes.choice && !modes.device &&
      !modes.observers && !modes.source && !streams)
    return nullptr;
  return std::make_unique<const InheritedModes>(
      InheritedModes{modes.grad, modes.anomaly, modes.autocast, modes.choice, modes.device,
                     modes.observers ? *modes.observers : Observers(),
                     modes.source ? modes.source->share() : nullptr, std::move(streams)});
}

ModesGuard::ModesGuard(const InheritedModes* inherited)
    : before_(std::exchange(modes, Modes())),
      own_before_(std::move(thread_modes())),
      streams_before_(device_modes.taken()) {
  ThreadModes& own = thread_modes();
  own = {};
  if (inherited) {
    modes.grad = inherited->grad;
    modes.anomaly = inherited->anomaly;
    modes.autocast = inherited->autocast;
    modes.choice = inherited->choice;
    modes.in_full = modes.choice && modes.choice->wants_calls_in_full();
    modes.device = inherited->device;
    modes.source = inherited->source.get();
    own.observers = inherited->observers;
  }
  device_modes.put(inherited ? inherited->streams.get() : nullptr);
  own.announce();
}

ModesGuard::~ModesGuard() {
  device_modes.put(streams_before_.get());
  thread_modes() = std::move(own_before_);
  modes = before_;
}

}  // namespace tw
