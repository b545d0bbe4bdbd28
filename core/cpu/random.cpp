// Philox 4x32-10.
#include "core/cpu/random.h"

#include <algorithm>

#include "core/runtime/thread_pool.h"

namespace tw {

namespace {

struct Counter {
  std::uint32_t word[4];
};

// The multipliers and key increments of the paper's table 2.
Counter philox_block(std::uint64_t seed, std::uint64_t block) {
  Counter c = {{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0}};
  auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = 0xD2511F53ull * c.word[0], p1 = 0xCD9E8D57ull * c.word[2];
    c = {{static_cast<std::uint32_t>(p1 >> 32) ^ c.word[1] ^ key0, static_cast<std::uint32_t>(p1),
          static_cast<std::uint32_t>(p0 >> 32) ^ c.word[3] ^ key1, static_cast<std::uint32_t>(p0)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

// Words a thread makes at a time (about 20 us).
constexpr std::int64_t kGrain = 16384;

}  // namespace

void philox_words(std::uint64_t seed, std::uint64_t first, std::int64_t count, std::uint32_t* out) {
  parallel_ranges(count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; i += 4) {
      const Counter c = philox_block(seed, (first + static_cast<std::uint64_t>(i)) / 4);
      std::copy_n(c.word, std::min<std::int64_t>(4, end - i), out + i);
    }
  });
}

}  // namespace tw
