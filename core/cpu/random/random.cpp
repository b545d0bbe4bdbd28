// Random numbers of a key: which words each element takes, in parallel.
#include "core/cpu/random/random.h"

#include <algorithm>
#include <new>
#include <numeric>

#include "core/base/thresholds.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/memory/scratch.h"
#include "core/runtime/thread_pool.h"

namespace tw {

// ---- the ops' kernels and lowerings ----

namespace {

using std::int64_t;

// Calls body(first, count, words) for blocks of elements with `each` words an element.
template <class F> void each_block(const RandomProblem& p, int each, F&& body) {
  const RandomTable& table = *active_kernels().random;
  const std::uint64_t seed = p.key[0], first = p.key[1];  // a multiple of 4
  parallel_ranges(p.count, thresholds::kHeavyGrain, [&](int64_t begin, int64_t end) {
    std::uint32_t words[2 * kRandomBlock];
    for (int64_t at = begin; at < end; at += kRandomBlock) {
      const int64_t n = std::min(kRandomBlock, end - at);
      table.blocks(seed, (first + static_cast<std::uint64_t>(at * each)) / 4, (n * each + 3) / 4,
                   words);
      body(at, n, words);
    }
  });
}
std::uint64_t pair(const std::uint32_t* words, int64_t i) {
  return std::uint64_t{words[2 * i]} << 32 | words[2 * i + 1];
}

void run_uniform(const void* problem) {
  const auto& p = *static_cast<const RandomProblem*>(problem);
  const bool wide = p.dtype == DType::float64;
  const RandomTable& table = *active_kernels().random;
  const auto uniform = wide ? table.uniform_double : table.uniform_float;
  each_block(p, wide ? 2 : 1, [&](int64_t at, int64_t n, const std::uint32_t* words) {
    uniform(words, n, p.bits, static_cast<char*>(p.y) + at * (wide ? 8 : 4));
  });
}

// Pairs are those of one block of elements; each_block's last words are whole Philox blocks, so
// that the partner of the last of an odd number is there.
void run_normal(const void* problem) {
  const auto& p = *static_cast<const RandomProblem*>(problem);
  const bool wide = p.dtype == DType::float64;
  const RandomTable& table = *active_kernels().random;
  const auto normal = wide ? table.normal_double : table.normal_float;
  each_block(p, wide ? 2 : 1, [&](int64_t at, int64_t n, const std::uint32_t* words) {
    normal(words, n, static_cast<char*>(p.y) + at * (wide ? 8 : 4));
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

// Fisher and Yates: the swaps of the last elements first, each with an element before.
void run_permutation(const void* problem) {
  const auto& p = *static_cast<const RandomProblem*>(problem);
  int64_t* const y = static_cast<int64_t*>(p.y);
  std::iota(y, y + p.count, 0);
  const Scratch scratch(static_cast<std::size_t>(p.count) * sizeof(std::uint64_t));
  auto* const drawn = scratch.as<std::uint64_t>();
  each_block(p, 2, [&](int64_t at, int64_t n, const std::uint32_t* words) {
    for (int64_t i = 0; i < n; ++i) drawn[at + i] = pair(words, i);
  });
  for (int64_t i = p.count - 1; i > 0; --i) {
    const auto span = static_cast<unsigned __int128>(i + 1);
    std::swap(y[i], y[static_cast<int64_t>(drawn[i] * span >> 64)]);
  }
}

void run_dropout(const void* problem) {
  const auto& p = *static_cast<const RandomProblem*>(problem);
  const bool wide = p.dtype == DType::float64;
  const RandomTable& table = *active_kernels().random;
  const RandomTable::Dropout dropout = wide ? table.dropout_double : table.dropout_float;
  each_block(p, 1, [&](int64_t at, int64_t n, const std::uint32_t* words) {
    const int64_t offset = at * (wide ? 8 : 4);
    dropout(words, n, static_cast<float>(p.keep), p.scale, static_cast<const char*>(p.x) + offset,
            static_cast<char*>(p.y) + offset);
  });
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
  add_kernel<RandomProblem>("random_uniform", kHelp,
                            {.set_up =
                                 [](const Call& call, void* problem) {
                                   fresh(call, problem).bits = static_cast<int>(call.attributes[2]);
                                 },
                             .bind = bind_made,
                             .cost_ns = cost_ns,
                             .run = run_uniform,
                             .contiguous = 1});
  add_kernel<RandomProblem>(
      "random_normal", kHelp,
      {.set_up = [](const Call& call, void* problem) { fresh(call, problem); },
       .bind = bind_made,
       .cost_ns = cost_ns,
       .run = run_normal,
       .contiguous = 1});
  add_kernel<RandomProblem>("random_integers", kHelp,
                            {.set_up =
                                 [](const Call& call, void* problem) {
                                   RandomProblem& p = fresh(call, problem);
                                   p.low = call.attributes[1];
                                   p.span = static_cast<std::uint64_t>(call.attributes[2]) -
                                            static_cast<std::uint64_t>(p.low);
                                 },
                             .bind = bind_made,
                             .cost_ns = cost_ns,
                             .run = run_integers,
                             .contiguous = 1});
  add_kernel<RandomProblem>(
      "random_permutation", "the swaps on one thread",
      {.set_up = [](const Call& call, void* problem) { fresh(call, problem); },
       .bind = bind_made,
       .cost_ns = cost_ns,
       .run = run_permutation,
       .contiguous = 1});
  add_kernel<RandomProblem>("dropout_by", kHelp,
                            {.refuses = refuses_narrow,
                             .set_up =
                                 [](const Call& call, void* problem) {
                                   RandomProblem& p = fresh(call, problem);
                                   p.keep = 1 - call.attributes.real(0);
                                   p.scale = p.keep > 0 ? 1 / p.keep : 1;
                                 },
                             .bind = bind_dropout,
                             .cost_ns = cost_ns,
                             .run = run_dropout,
                             .contiguous = 3});
}

}  // namespace tw
