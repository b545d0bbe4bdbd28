// The default pool: one heap and a cache of small blocks for each thread. The hot path touches only
// its thread's cache: no lock, no atomic read-modify-write.
#include "core/memory/pool.h"

#include <pthread.h>

#include "core/base/fork.h"
#include "core/memory/heap.h"
#include "core/memory/scratch.h"

namespace tw {

namespace {

#ifdef __GLIBC__
// A module loaded at run time pays a call for each thread-local access in the default model;
// glibc sets room aside for small ones like this pointer.
#define TW_TLS_MODEL __attribute__((tls_model("initial-exec")))
#else
#define TW_TLS_MODEL
#endif
thread_local Cache* own_cache TW_TLS_MODEL = nullptr;
pthread_key_t exit_key;
Heap* the_heap = nullptr;  // set where any thread has a cache

Heap& heap();

// Runs after C++'s thread-local destructors, and again if one of the later ones allocates.
void on_thread_exit(void* cache) {
  own_cache = nullptr;
  heap().detach(static_cast<Cache*>(cache));
}

// Never destroyed: blocks may be released while the process exits.
Heap& heap() {
  static Heap* const instance = [] {
    the_heap = new Heap;
    pthread_key_create(&exit_key, on_thread_exit);
    return the_heap;
  }();
  return *instance;
}
// A child owns the forking thread's cache; what other threads had cached stays reserved there.
const AtFork guarded(ForkOrder::heap, [] { heap().mutex.lock(); }, [] { heap().mutex.unlock(); });

[[gnu::noinline, gnu::cold]] Cache* attach() {
  own_cache = heap().attach();
  pthread_setspecific(exit_key, own_cache);
  return own_cache;
}

inline Cache* cache_of_thread() { return own_cache ? own_cache : attach(); }

}  // namespace

// A thread's first block, in functions of their own: what comes after it needs no frame.
[[gnu::noinline, gnu::cold]] static void* allocate_first(std::size_t bytes) {
  Cache* const cache = attach();
  return the_heap->allocate(*cache, bytes);
}
[[gnu::noinline, gnu::cold]] static void release_first(void* block, std::size_t bytes) noexcept {
  Cache* const cache = attach();
  the_heap->release(*cache, block, bytes);
}

[[gnu::hot]] void* pool_allocate(std::size_t bytes) {
  if (!own_cache) [[unlikely]]
    return allocate_first(bytes);
  return the_heap->allocate(*own_cache, bytes);
}

[[gnu::hot]] void pool_release(void* block, std::size_t bytes) noexcept {
  if (!own_cache) [[unlikely]]
    return release_first(block, bytes);
  the_heap->release(*own_cache, block, bytes);
}

PoolStats pool_stats() { return heap().stats(); }
void pool_reset_peaks() { heap().reset_peaks(); }
std::int64_t pool_trim() { return heap().trim(*cache_of_thread()) + scratch_trim(); }

}  // namespace tw
