// The engine's own threads: they spin briefly, then park on a futex; the caller takes part and
// claims what no worker has started. Fork-safe (a child starts with fresh workers), nested calls
// run inline.
#pragma once
#include <cstdint>
#include <type_traits>

namespace tw {

// Threads that parallel work may use, the caller included; at least 1.
// Default: TILEWRIGHT_THREADS, else min(affinity mask, cgroup quota).
int num_threads();
// Raises ValueError outside [1, 1024].
void set_num_threads(int count);
// Whether workers are bound to one processor each, the first of the mask left to the caller.
// Default: TILEWRIGHT_PIN_THREADS, else they roam. Takes effect with the next parallel work.
bool thread_pinning();
void set_thread_pinning(bool on);
// 0 on a calling thread, 1 .. num_threads()-1 on workers: the index for per-thread scratch.
int worker_index();

using ChunkBody = void (*)(void* context, std::int64_t chunk);
// Runs body(context, i) for each i in [0, chunks), in any order on any thread; returns when all
// are done. No more than `most_threads` are woken for it, the caller included. An exception thrown
// by a body is rethrown here after all chunks have finished or been dropped.
inline constexpr int kMostThreads = 1024;
void run_chunks(std::int64_t chunks, ChunkBody body, void* context,
                int most_threads = kMostThreads);

template <class F> void run_chunk(void* body, std::int64_t chunk) {
  (*static_cast<F*>(body))(chunk);
}
template <class F>
void parallel_chunks(std::int64_t chunks, F&& body, int most_threads = kMostThreads) {
  void* const context = const_cast<std::remove_cvref_t<F>*>(&body);
  run_chunks(chunks, run_chunk<std::remove_reference_t<F>>, context, most_threads);
}

// Splits [0, count) into pieces of `grain` (the last may be shorter), independent of the number of
// threads, and runs body(begin, end) for each.
template <class F> void parallel_ranges(std::int64_t count, std::int64_t grain, F&& body) {
  const std::int64_t chunks = (count + grain - 1) / grain;
  parallel_chunks(chunks, [&](std::int64_t i) {
    const std::int64_t begin = i * grain;
    body(begin, begin + grain < count ? begin + grain : count);
  });
}

}  // namespace tw
