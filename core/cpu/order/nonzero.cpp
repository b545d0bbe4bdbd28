// Positions of what is true, on raw pointers: eight elements, a byte each, are one word.
#include <algorithm>
#include <bit>
#include <cstring>

#include "core/cpu/isa/families.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/order/problems.h"
#include "core/runtime/thread_pool.h"

namespace tw {

namespace {

using std::int64_t;
using std::uint64_t;

static_assert(std::endian::native == std::endian::little);  // the first byte is the lowest
constexpr int64_t kWordBytes = 8;
// Pieces that a thread takes at a time: 256 KB, large enough to hide the hand-over.
constexpr int64_t kGrain = 4;

uint64_t word_at(const char* x, int64_t bytes = kWordBytes) {
  uint64_t word = 0;
  std::memcpy(&word, x, static_cast<std::size_t>(bytes));
  return word;
}

int64_t sum_of_bytes(uint64_t word) {
  constexpr uint64_t kEven = 0x00ff00ff00ff00ff;
  return static_cast<int64_t>(((word & kEven) + (word >> 8 & kEven)) * 0x0001000100010001 >> 48);
}

// Adds words whose bytes are 0 or 1, no more at a time than a byte holds.
int64_t count_true(const char* x, int64_t n) {
  int64_t total = 0;
  while (n >= kWordBytes) {
    const int64_t words = std::min<int64_t>(n / kWordBytes, 255);
    uint64_t sums = 0;
    for (int64_t i = 0; i < words; ++i) sums += word_at(x + i * kWordBytes);
    total += sum_of_bytes(sums);
    x += words * kWordBytes;
    n -= words * kWordBytes;
  }
  return total + sum_of_bytes(word_at(x, n));
}

// ---- counts ----

void set_up_counts(const Call& call, void* problem) {
  *static_cast<CountsProblem*>(problem) = {call.in[0].count, call.attributes[0],
                                           call.out[0].count - 1, nullptr, nullptr};
}
void bind_counts(void* problem, void* const* at) {
  auto& p = *static_cast<CountsProblem*>(problem);
  p.x = static_cast<const char*>(at[0]);
  p.y = static_cast<int64_t*>(at[1]);
}
void run_counts(const void* problem) {
  const auto& p = *static_cast<const CountsProblem*>(problem);
  p.y[0] = 0;
  parallel_ranges(p.pieces, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      p.y[i + 1] = count_true(p.x + i * p.piece, std::min(p.piece, p.count - i * p.piece));
  });
  for (int64_t i = 0; i < p.pieces; ++i) p.y[i + 1] += p.y[i];
}

// ---- positions ----

void set_up_positions(const Call& call, void* problem) {
  auto& p = *static_cast<PositionsProblem*>(problem);
  const Meta& mask = call.in[0];
  p.count = mask.count;
  p.piece = call.attributes[0];
  p.pieces = call.in[1].count - 1;
  p.found = call.attributes[1];
  p.rank = mask.rank();
  for (int i = 0; i < p.rank; ++i) p.extents[i] = mask.size(i);
}
void bind_positions(void* problem, void* const* at) {
  auto& p = *static_cast<PositionsProblem*>(problem);
  p.x = static_cast<const char*>(at[0]);
  p.counts = static_cast<const int64_t*>(at[1]);
  p.y = static_cast<int64_t*>(at[2]);
}

// A place in the mask that only moves on: it divides where an axis ends in between.
struct Place {
  const PositionsProblem& p;
  int64_t at = 0;  // elements before it
  int64_t axes[kMaxRank] = {};

  void move_to(int64_t to) {
    axes[p.rank - 1] += to - at;
    at = to;
    for (int i = p.rank - 1; i > 0 && axes[i] >= p.extents[i]; --i) {
      axes[i - 1] += axes[i] / p.extents[i];
      axes[i] %= p.extents[i];
    }
  }
  void write(int64_t column) const {
    for (int i = 0; i < p.rank; ++i) p.y[i * p.found + column] = axes[i];
  }
};

// Writes the columns from `column` to `end`. A mask that another thread changes after it was
// counted has no more room than that, and position 0 for what is no longer there.
void find_in_piece(const PositionsProblem& p, int64_t piece, int64_t column, int64_t end) {
  Place place = {p};
  const int64_t stop = std::min(p.count, (piece + 1) * p.piece);
  for (int64_t i = piece * p.piece; i < stop && column < end; i += kWordBytes)
    for (uint64_t word = word_at(p.x + i, std::min(kWordBytes, stop - i)); word && column < end;
         word &= word - 1) {
      place.move_to(i + std::countr_zero(word) / 8);
      place.write(column++);
    }
  for (const Place first = {p}; column < end;) first.write(column++);
}
void run_positions(const void* problem) {
  const auto& p = *static_cast<const PositionsProblem*>(problem);
  parallel_ranges(p.pieces, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) find_in_piece(p, i, p.counts[i], p.counts[i + 1]);
  });
}

}  // namespace

void register_nonzero_kernels() {
  add_kernel<CountsProblem>("nonzero_counts", "adds words of eight, shared between threads",
                            {.set_up = set_up_counts,
                             .bind = bind_counts,
                             .run = run_counts,
                             .contiguous = 1,
                             .name = "words"});
  add_kernel<PositionsProblem>("nonzero_positions", "skips words of zeros, shared between threads",
                               {.set_up = set_up_positions,
                                .bind = bind_positions,
                                .run = run_positions,
                                .contiguous = 3,
                                .name = "words"});
}

}  // namespace tw
