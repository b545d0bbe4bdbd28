// Temporary memory of kernels: a stack for each thread, apart from the pool that tensors live in,
// so that a planned pass allocates nothing. Kept for reuse.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tw {

struct ScratchStats {
  std::int64_t live_bytes;
  std::int64_t peak_live_bytes;  // of each thread for itself, added up: exact with one thread
  std::int64_t reserved_bytes;   // held from the system
};
ScratchStats scratch_stats();
void scratch_reset_peaks();
// Gives this thread's unused stack back to the system; returns the bytes given back.
std::int64_t scratch_trim();

// Temporary memory, 64-byte aligned, contents unspecified; given back at the end of scope, in
// reverse order of creation, by the thread that took it. Raises MemoryError.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes) {
    if (bytes) take(bytes);
  }
  ~Scratch() {
    if (bytes_) give();
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  template <class T> T* as() const { return static_cast<T*>(data_); }

 private:
  void take(std::size_t bytes);
  void give() noexcept;
  std::size_t bytes_ = 0;  // rounded up
  void* data_ = nullptr;
};

}  // namespace tw
