// Memory from the system: aligned mappings with huge pages, and marks for the address sanitizer.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "core/base/fault.h"
#include "core/base/optimizations.h"

#if defined(__SANITIZE_ADDRESS__)
#define TW_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TW_ASAN 1
#endif
#endif
#ifdef TW_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace tw {

inline constexpr std::size_t kHugePage = 2 << 20;

// Lets the address sanitizer see uses of released blocks and of the slack behind a request.
inline void poison([[maybe_unused]] void* block, [[maybe_unused]] std::size_t bytes) {
#ifdef TW_ASAN
  __asan_poison_memory_region(block, bytes);
#endif
}
inline void unpoison([[maybe_unused]] void* block, [[maybe_unused]] std::size_t bytes) {
#ifdef TW_ASAN
  __asan_unpoison_memory_region(block, bytes);
#endif
}

// Makes the system provide the page of memory that was mapped and not used yet: it is zero.
inline void touch([[maybe_unused]] char* fresh) {
#ifndef TW_ASAN
  *static_cast<volatile char*>(fresh) = 0;
#endif
}

inline char* map_pages(std::size_t bytes) {
  if (fault_point()) return nullptr;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

// Null when the system refuses. The excess of a padded mapping goes back at once.
inline char* map_aligned(std::size_t bytes, std::size_t alignment) {
  char* memory = map_pages(bytes);
  if (!memory || reinterpret_cast<std::uintptr_t>(memory) % alignment == 0) return memory;
  munmap(memory, bytes);
  memory = map_pages(bytes + alignment);
  if (!memory) return nullptr;
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(memory) % alignment;
  if (before) munmap(memory, before);
  munmap(memory + before + bytes, alignment - before);
  return memory + before;
}

inline char* map_block(std::size_t bytes, std::size_t alignment) {
  char* memory = map_aligned(bytes, alignment);
#ifdef MADV_HUGEPAGE
  // Fewer faults and TLB misses; a kernel without huge pages refuses and nothing is lost.
  if (memory && alignment == kHugePage)
    madvise(memory, bytes,
            is_off_at_start(Optimization::huge_pages) ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
#endif
  return memory;
}

}  // namespace tw
