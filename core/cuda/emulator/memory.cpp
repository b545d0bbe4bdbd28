// The stand-in driver's memory: of GPUs, which the program cannot touch, and pinned memory of the
// host, which both may; what is given back is gone at once, so that late work on it is a fault.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "state.h"

namespace emulated {

namespace {

constexpr std::size_t kPage = 4096;

struct Allocation {
  Guarded guarded;
  std::size_t bytes;
  int gpu;  // -1: pinned memory of the host
};
std::map<Address, Allocation> allocations;  // by their first byte
std::map<int, std::size_t> used_bytes;      // by GPU
int openings = 0;

void protect_all(int access) {
  for (const auto& [start, block] : allocations)
    if (block.gpu >= 0) mprotect(block.guarded.pages, block.guarded.bytes - kPage, access);
}

const Allocation* find(Address at) {
  const auto next = allocations.upper_bound(at);
  if (next == allocations.begin()) return nullptr;
  const auto& [start, block] = *std::prev(next);
  return at < start + block.bytes ? &block : nullptr;
}

Result release(Address at, bool pinned) {
  const auto found = allocations.find(at);
  if (found == allocations.end() || (found->second.gpu < 0) != pinned) return kInvalid;
  const Allocation block = found->second;
  munmap(block.guarded.pages, block.guarded.bytes);
  if (!pinned) used_bytes[block.gpu] -= block.bytes;
  allocations.erase(found);
  return kSuccess;
}

}  // namespace

char* allocate_guarded(std::size_t bytes, Guarded& out) {
  const std::size_t whole = (bytes + kPage - 1) / kPage * kPage + kPage;
  void* pages = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  // Opening and closing large blocks around each launch costs by the page.
  if (whole >= (std::size_t{4} << 20)) madvise(pages, whole, MADV_HUGEPAGE);
  out = {static_cast<char*>(pages), whole};
  mprotect(out.pages + whole - kPage, kPage, PROT_NONE);
  char* const start = out.pages + (whole - kPage - bytes) / 256 * 256;
  std::memset(start, 0xCB, bytes < (64 << 20) ? bytes : 0);  // nobody may count on zeros
  return start;
}

Opened::Opened() {
  if (openings++ == 0) protect_all(PROT_READ | PROT_WRITE);
}
Opened::~Opened() {
  if (--openings == 0) protect_all(PROT_NONE);
}

Place place_of(Address at) {
  const Allocation* const block = find(at);
  return !block ? Place::pageable : block->gpu < 0 ? Place::pinned : Place::device;
}

}  // namespace emulated

using namespace emulated;

extern "C" {

Result cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = static_cast<std::size_t>(setting("TW_EMULATED_MEMORY", std::int64_t{4} << 30));
  return kSuccess;
}
Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(mutex);
  cuDeviceTotalMem_v2(total, 0);
  *free = *total - used_bytes[current_gpu()];
  return kSuccess;
}

Result cuMemAlloc_v2(Address* at, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  std::size_t total = 0;
  cuDeviceTotalMem_v2(&total, 0);
  std::size_t& used = used_bytes[current_gpu()];
  if (lost) return lost;
  if (bytes == 0) return kInvalid;
  if (used + bytes > total) return kNoMemory;
  Guarded guarded;
  char* const start = allocate_guarded(bytes, guarded);
  if (!start) return kNoMemory;
  *at = reinterpret_cast<Address>(start);
  allocations[*at] = {guarded, bytes, current_gpu()};
  mprotect(guarded.pages, guarded.bytes - kPage, PROT_NONE);
  used += bytes;
  return kSuccess;
}
// Waits for all work, as a GPU does.
Result cuMemFree_v2(Address at) {
  const std::lock_guard lock(mutex);
  const Result late = finish_all();
  const Result result = release(at, false);
  return result ? result : late;
}
Result cuMemHostAlloc(void** at, std::size_t bytes, unsigned) {
  const std::lock_guard lock(mutex);
  if (lost) return lost;
  if (bytes == 0) return kInvalid;
  Guarded guarded;
  *at = allocate_guarded(bytes, guarded);
  if (!*at) return kNoMemory;
  allocations[reinterpret_cast<Address>(*at)] = {guarded, bytes, -1};
  return kSuccess;
}
Result cuMemFreeHost(void* at) {
  const std::lock_guard lock(mutex);
  return release(reinterpret_cast<Address>(at), true);
}

// What a foreign address is: its kind (2: 1 of the host, 2 of a GPU), and the GPU's number (9).
Result cuPointerGetAttribute(void* value, int what, Address at) {
  const std::lock_guard lock(mutex);
  const Allocation* const block = find(at);
  if (!block) return kInvalid;
  if (what == 2) return *static_cast<unsigned*>(value) = block->gpu < 0 ? 1 : 2, kSuccess;
  if (what == 9) return *static_cast<int*>(value) = std::max(block->gpu, 0), kSuccess;
  return kInvalid;
}

}  // extern "C"
