// The shared file of counts: mapped once, added to with atomic operations.
#include "blas/tally.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>

#include "core/base/env.h"

namespace tw::blas {

namespace {

using Word = std::atomic<std::uint64_t>;
static_assert(sizeof(Word) == 8 && Word::is_always_lock_free);  // as processes share them
constexpr std::size_t kBytes = kTallyWords * sizeof(Word);

Word* map_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat facts;
  const bool fits = file >= 0 && fstat(file, &facts) == 0 && facts.st_size == kBytes;
  void* words = fits ? mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : nullptr;
  if (file >= 0) close(file);
  if (fits && words != MAP_FAILED) return static_cast<Word*>(words);
  std::fprintf(stderr, "tilewright blas: TILEWRIGHT_BLAS_COUNT: %s is no file of %zu bytes\n",
               path.c_str(), kBytes);
  return nullptr;
}

// Null where nothing is counted. Mapped for as long as the process lives.
Word* words() {
  static Word* const mapped = [] {
    const std::string path = env_text("BLAS_COUNT");
    return path.empty() ? nullptr : map_file(path);
  }();
  return mapped;
}

void add(Word& word, std::uint64_t value) { word.fetch_add(value, std::memory_order_relaxed); }

}  // namespace

void count_call(Symbol symbol, double flops) noexcept {
  Word* const tally = words();
  if (!tally) return;
  const int i = 2 * static_cast<int>(symbol);
  add(tally[i], 1);
  add(tally[i + 1], static_cast<std::uint64_t>(flops));
}

void count_kernel(std::ptrdiff_t rung) noexcept {
  Word* const tally = words();
  if (tally && rung < kTallyKernels) add(tally[2 * kSymbols + rung], 1);
}

}  // namespace tw::blas
