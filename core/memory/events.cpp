#include "core/memory/events.h"

#include <chrono>
#include <mutex>
#include <unordered_map>

#include "core/memory/heap.h"

namespace tw {

std::atomic<bool> memory_log_on{false};
std::string (*source_position)() = nullptr;

namespace {

using Clock = std::chrono::steady_clock;

struct Log {
  std::mutex mutex;
  std::size_t capacity = 0;
  std::deque<MemoryEvent> events;
  std::size_t unnamed = 0;  // events at the end whose op is not known yet
  std::int64_t dropped = 0, live_bytes = 0;
  Clock::time_point began;
  std::unordered_map<const void*, std::uint64_t> numbers;  // of live blocks
  std::uint64_t last_number = 0;
};

// Never destroyed: tensors are released while the process exits.
Log& log() {
  static Log* const instance = new Log;
  return *instance;
}

}  // namespace

const char* name_of(MemoryEventKind kind) {
  constexpr const char* kNames[] = {"allocate", "release", "spill", "restore"};
  return kNames[static_cast<int>(kind)];
}

void start_memory_log(std::size_t capacity) {
  Log& l = log();
  std::lock_guard lock(l.mutex);
  l.capacity = capacity;
  l.events.clear();
  l.numbers.clear();
  l.unnamed = 0;
  l.dropped = 0;
  l.live_bytes = pool_stats().live_bytes;
  l.began = Clock::now();
  memory_log_on = true;
}

std::deque<MemoryEvent> stop_memory_log(std::int64_t& dropped) {
  Log& l = log();
  std::lock_guard lock(l.mutex);
  memory_log_on = false;
  dropped = l.dropped;
  return std::move(l.events);
}

void note_memory(MemoryEventKind kind, const void* block, std::size_t bytes) {
  const std::string source = source_position ? source_position() : "";
  Log& l = log();
  std::lock_guard lock(l.mutex);
  if (!logs_memory()) return;
  const auto charged = static_cast<std::int64_t>(charged_bytes(bytes));
  const bool grows = kind == MemoryEventKind::allocate || kind == MemoryEventKind::restore;
  l.live_bytes += grows ? charged : -charged;
  const auto [entry, added] = l.numbers.try_emplace(block, 0);
  if (added) entry->second = ++l.last_number;
  const std::chrono::nanoseconds since = Clock::now() - l.began;
  l.events.push_back({kind, since.count(), entry->second, charged, l.live_bytes, "", "", source});
  if (kind == MemoryEventKind::release) l.numbers.erase(entry);
  ++l.unnamed;
  if (l.events.size() <= l.capacity) return;
  l.events.pop_front();
  ++l.dropped;
}

void note_tensor(std::string description) {
  Log& l = log();
  std::lock_guard lock(l.mutex);
  if (!l.events.empty()) l.events.back().tensor = std::move(description);
}

void note_op(const std::string& op) {
  Log& l = log();
  std::lock_guard lock(l.mutex);
  const std::size_t count = l.events.size();
  for (std::size_t i = 0; i < l.unnamed && i < count; ++i) l.events[count - 1 - i].op = op;
  l.unnamed = 0;
}

}  // namespace tw
