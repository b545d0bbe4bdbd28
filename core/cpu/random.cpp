// Philox 4x32-10.
#include "core/cpu/random.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <numeric>

#include "core/cpu/families.h"
#include "core/cpu/lowering.h"
#include "core/memory/scratch.h"
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

// ---- the ops' kernels and lowerings ----

namespace {

using std::int64_t;

constexpr int64_t kBlock = 1024;  // elements whose words are staged at once, in the L1 cache

struct RandomProblem {
  DType dtype;
  int64_t count;
  int bits;
  int64_t low;
  std::uint64_t span;
  double keep, scale;  // of dropout: the probability, and what the kept are multiplied by
  const std::uint64_t* key;
  const void* x;
  void* y;
};

// Calls body(first, count, words) for blocks of elements with `each` words an element.
template <class F> void each_block(const RandomProblem& p, int each, F&& body) {
  parallel_ranges(p.count, kGrain, [&](int64_t begin, int64_t end) {
    std::uint32_t words[2 * kBlock];
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t n = std::min(kBlock, end - at);
      philox_words(p.key[0], p.key[1] + static_cast<std::uint64_t>(at * each), n * each, words);
      body(at, n, words);
    }
  });
}
std::uint64_t pair(const std::uint32_t* words, int64_t i) {
  return static_cast<std::uint64_t>(words[2 * i]) << 32 | words[2 * i + 1];
}

void run_uniform(const void* problem) {
  const auto& p = *static_cast<const RandomProblem*>(problem);
  if (p.dtype == DType::float64)
    return each_block(p, 2, [&](int64_t at, int64_t n, const std::uint32_t* words) {
      double* const y = static_cast<double*>(p.y) + at;
      for (int64_t i = 0; i < n; ++i) y[i] = static_cast<double>(pair(words, i) >> 11) * 0x1p-53;
    });
  const float unit = std::ldexp(1.0f, -p.bits);
  each_block(p, 1, [&](int64_t at, int64_t n, const std::uint32_t* words) {
    float* const y = static_cast<float*>(p.y) + at;
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(words[i] >> (32 - p.bits)) * unit;
  });
}

// The high half of a 64 x 64 bit product: bias below span / 2^64.
void run_integers(const void* problem) {
  const auto& p = *static_cast<const RandomProblem*>(problem);
  const auto span = static_cast<unsigned __int128>(p.span);
  each_block(p, 2, [&](int64_t at, int64_t n, const std::uint32_t* words) {
    int64_t* const y = static_cast<int64_t*>(p.y) + at;
    for (int64_t i = 0; i < n; ++i)
      y[i] = static_cast<int64_t>(static_cast<std::uint64_t>(p.low) +
                                  static_cast<std::uint64_t>(pair(words, i) * span >> 64));
  });
}

void run_permutation(const void* problem) {
  const auto& p = *static_cast<const RandomProblem*>(problem);
  int64_t* const y = static_cast<int64_t*>(p.y);
  std::iota(y, y + p.count, 0);
  const Scratch scratch(static_cast<std::size_t>(2 * p.count) * sizeof(std::uint32_t));
  const auto* words = scratch.as<std::uint32_t>();
  philox_words(p.key[0], p.key[1], 2 * p.count, scratch.as<std::uint32_t>());
  for (int64_t i = p.count - 1; i > 0; --i) {
    const auto span = static_cast<unsigned __int128>(i + 1);
    std::swap(y[i], y[static_cast<int64_t>(pair(words, i) * span >> 64)]);
  }
}

template <class T> void dropout(const RandomProblem& p) {
  const float keep = static_cast<float>(p.keep);
  const T scale = static_cast<T>(p.scale);
  each_block(p, 1, [&](int64_t at, int64_t n, const std::uint32_t* words) {
    const T* const x = static_cast<const T*>(p.x) + at;
    T* const y = static_cast<T*>(p.y) + at;
    for (int64_t i = 0; i < n; ++i)
      y[i] = x[i] * (static_cast<float>(words[i] >> 8) * 0x1p-24f < keep ? scale : T(0));
  });
}
void run_dropout(const void* problem) {
  const auto& p = *static_cast<const RandomProblem*>(problem);
  p.dtype == DType::float64 ? dropout<double>(p) : dropout<float>(p);
}

RandomProblem& fresh(const Call& call, void* problem) {
  RandomProblem& p = *new (problem) RandomProblem{};
  p.dtype = call.out[0].dtype;
  p.count = call.out[0].count;
  return p;
}
void bind_made(void* problem, void* const* at) {
  RandomProblem& p = *static_cast<RandomProblem*>(problem);
  p.key = static_cast<const std::uint64_t*>(at[0]);
  p.y = at[1];
}
void bind_dropout(void* problem, void* const* at) {
  RandomProblem& p = *static_cast<RandomProblem*>(problem);
  p.x = at[0];
  p.key = static_cast<const std::uint64_t*>(at[1]);
  p.y = at[2];
}
const char* refuses_narrow(const Call& call) {
  const DType dtype = call.in[0].dtype;
  return dtype == DType::float32 || dtype == DType::float64 ? nullptr : kTooNarrow;
}
double cost_ns(const void* problem) {
  constexpr double ns_per_element = 1;
  return 50 +
         ns_per_element * static_cast<double>(static_cast<const RandomProblem*>(problem)->count);
}

constexpr char kHelp[] = "Philox words in blocks that stay in the first-level cache";
}  // namespace

void register_random_kernels() {
  add_kernel<RandomProblem>(
      "random_uniform", kHelp, nullptr,
      [](const Call& call, void* problem) {
        fresh(call, problem).bits = static_cast<int>(call.words[2]);
      },
      bind_made, cost_ns, run_uniform, 1);
  add_kernel<RandomProblem>(
      "random_integers", kHelp, nullptr,
      [](const Call& call, void* problem) {
        RandomProblem& p = fresh(call, problem);
        p.low = call.words[1];
        p.span = static_cast<std::uint64_t>(call.words[2]) - static_cast<std::uint64_t>(p.low);
      },
      bind_made, cost_ns, run_integers, 1);
  add_kernel<RandomProblem>(
      "random_permutation", "swaps in order, on one thread", nullptr,
      [](const Call& call, void* problem) { fresh(call, problem); }, bind_made, cost_ns,
      run_permutation, 1);
  add_kernel<RandomProblem>(
      "dropout_by", kHelp, refuses_narrow,
      [](const Call& call, void* problem) {
        RandomProblem& p = fresh(call, problem);
        p.keep = 1 - call.words.real(0);
        p.scale = p.keep > 0 ? 1 / p.keep : 1;
      },
      bind_dropout, cost_ns, run_dropout, 3);
}

}  // namespace tw
