// A log of what happens to the memory of tensors: what was allocated, released, spilled and brought
// back, when, by which op, for which line of the user's program. Bounded: the oldest go first.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace tw {

enum class MemoryEventKind : std::uint8_t { allocate, release, spill, restore };
const char* name_of(MemoryEventKind kind);

struct MemoryEvent {
  MemoryEventKind kind;
  std::int64_t ns;                 // since the log began
  std::uint64_t block;             // equal for all events of one block while it lives
  std::int64_t bytes, live_bytes;  // of the block; of all tensors in memory after the event
  std::string op, tensor, source;  // empty where unknown
};

// Read by every allocation of a tensor, on any thread.
extern std::atomic<bool> memory_log_on;
inline bool logs_memory() { return memory_log_on.load(std::memory_order_relaxed); }

// Starts an empty log of at most `capacity` events; the running one ends.
void start_memory_log(std::size_t capacity);
// Ends the log and returns its events; `dropped` counts those that had to go.
std::deque<MemoryEvent> stop_memory_log(std::int64_t& dropped);
void note_memory(MemoryEventKind kind, const void* block, std::size_t bytes);
// The tensor that the newest allocation of this thread's op is for.
void note_tensor(std::string description);
// Names the op to which all events since the last call belong.
void note_op(const std::string& op);
// Where the user's program is, as "file:line"; installed by the frontend.
extern std::string (*source_position)();

}  // namespace tw
