// The table of optimizations (optimizations.inc): its rows, and which of them are off for the whole
// process. What is off for one thread is part of its Choice (core/runtime/choice.h), which is also
// where code asks: `uses(row)`.
#pragma once
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace tw {

// What an optimization saves.
enum class Reason : std::uint8_t {
  multiplications,
  memory_access,
  vectors,
  allocation,
  launches,
  cores,
  overhead
};
inline constexpr const char* kReasonNames[] = {
    "fewer multiplications", "better memory access", "vector and matrix instructions",
    "less allocation",       "fewer launches",       "more cores",
    "less work a call"};
// When a row can be off: in a block of one thread, at any time for all threads, or from the start.
enum class Scope : std::uint8_t { call, process, start };
inline constexpr const char* kScopeNames[] = {"call", "process", "start"};
// Whether results keep their bits where the row is off.
enum class Bits : std::uint8_t { same, differ };

enum class Optimization : std::uint8_t {
#define TW_OPTIMIZATION(name, reason, scope, bits, families, how, source) name,
#include "core/base/optimizations.inc"
#undef TW_OPTIMIZATION
};
#define TW_OPTIMIZATION(name, reason, scope, bits, families, how, source) +1
inline constexpr int kOptimizations =
#include "core/base/optimizations.inc"
    ;
#undef TW_OPTIMIZATION

struct OptimizationRow {
  const char* name;
  Reason reason;
  Scope scope;
  Bits bits;
  const char* families;  // separated by ", "
  const char* how;
  const char* source;
};
extern const OptimizationRow kOptimizationRows[kOptimizations];

// Some of the rows.
class OptimizationSet {
 public:
  constexpr OptimizationSet() = default;
  constexpr OptimizationSet(std::initializer_list<Optimization> rows) {
    for (const Optimization row : rows) add(row);
  }
  constexpr bool has(Optimization row) const { return words_[word_of(row)] & bit_of(row); }
  constexpr void add(Optimization row) { words_[word_of(row)] |= bit_of(row); }
  constexpr void remove(Optimization row) { words_[word_of(row)] &= ~bit_of(row); }
  constexpr bool empty() const { return (words_[0] | words_[1]) == 0; }
  constexpr bool meets(const OptimizationSet& other) const {
    return (words_[0] & other.words_[0]) | (words_[1] & other.words_[1]);
  }
  bool operator==(const OptimizationSet&) const = default;
  constexpr std::uint64_t word(int i) const { return words_[i]; }
  static constexpr OptimizationSet of_words(std::uint64_t low, std::uint64_t high) {
    OptimizationSet set;
    set.words_[0] = low, set.words_[1] = high;
    return set;
  }
  static constexpr int kWords = 2;
  static constexpr int word_of(Optimization row) { return static_cast<int>(row) / 64; }
  static constexpr std::uint64_t bit_of(Optimization row) {
    return std::uint64_t{1} << static_cast<int>(row) % 64;
  }

 private:
  std::uint64_t words_[kWords] = {};
};
static_assert(kOptimizations <= 64 * OptimizationSet::kWords);

// Rows that are off for all threads: by TILEWRIGHT_OFF, or set later.
extern std::atomic<std::uint64_t> off_for_all[OptimizationSet::kWords];
inline bool is_off_for_all(Optimization row) {
  return off_for_all[OptimizationSet::word_of(row)].load(std::memory_order_relaxed) &
         OptimizationSet::bit_of(row);
}
inline OptimizationSet rows_off_for_all() {
  return OptimizationSet::of_words(off_for_all[0].load(std::memory_order_relaxed),
                                   off_for_all[1].load(std::memory_order_relaxed));
}
// Rows of Scope::start keep what they were at the start. Choices that were made with the rows as
// they were before must be forgotten by the caller.
void set_off_for_all(const OptimizationSet& rows);

// Rows that TILEWRIGHT_OFF names, read once: for what is asked before `off_for_all` is ready.
// Unknown names count as none here; `unknown_in_environment` has them.
const OptimizationSet& off_at_start();
inline bool is_off_at_start(Optimization row) { return off_at_start().has(row); }
std::vector<std::string_view> unknown_in_environment();

// The row of a name; null where there is none.
const OptimizationRow* find_optimization(std::string_view name);
inline Optimization id_of(const OptimizationRow& row) {
  return static_cast<Optimization>(&row - kOptimizationRows);
}

}  // namespace tw
