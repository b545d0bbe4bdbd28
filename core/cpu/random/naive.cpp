// The definitions of random draws: the words of each element by Philox 4x32-10 (Salmon, Moraes,
// Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011), and what they become.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/random/random.h"

namespace tw {
namespace {

using std::int64_t;
using std::uint32_t;
using std::uint64_t;

// Word `at` of what is drawn: the counter's rounds, each two products whose halves are mixed.
uint32_t word_at(const RandomProblem& p, int64_t at) {
  const uint64_t word = p.key[1] + static_cast<uint64_t>(at), counter = word / 4;
  uint32_t c[4] = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  auto key0 = static_cast<uint32_t>(p.key[0]), key1 = static_cast<uint32_t>(p.key[0] >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = 0xD2511F53ull * c[0], second = 0xCD9E8D57ull * c[2];
    c[0] = static_cast<uint32_t>(second >> 32) ^ c[1] ^ key0;
    c[1] = static_cast<uint32_t>(second);
    c[2] = static_cast<uint32_t>(first >> 32) ^ c[3] ^ key1;
    c[3] = static_cast<uint32_t>(first);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c[word % 4];
}
uint64_t pair_at(const RandomProblem& p, int64_t i) {
  return uint64_t{word_at(p, 2 * i)} << 32 | word_at(p, 2 * i + 1);
}
// In [0, span), from the high half of a product.
uint64_t below(uint64_t span, uint64_t drawn) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(drawn) * span >> 64);
}

void draw_uniform(const RandomProblem& p) {
  for (int64_t i = 0; i < p.count; ++i)
    if (p.dtype == DType::float64)
      static_cast<double*>(p.y)[i] = static_cast<double>(pair_at(p, i) >> 11) * 0x1p-53;
    else
      static_cast<float*>(p.y)[i] = static_cast<float>(word_at(p, i) >> (32 - p.bits)) /
                                    static_cast<float>(uint64_t{1} << p.bits);
}
// Box and Muller's pairs, of the two halves of a block each.
void draw_normal(const RandomProblem& p) {
  const bool is_wide = p.dtype == DType::float64;
  const int64_t each = is_wide ? 2 : 1, bytes = is_wide ? 8 : 4;
  const RandomTable& table = *scalar_kernels().random;
  for (int64_t first = 0; first < p.count; first += kRandomBlock) {
    const int64_t n = std::min(kRandomBlock, p.count - first);
    std::vector<uint64_t> memory(n + 1);  // where words of float64 are read as pairs
    auto* const words = reinterpret_cast<uint32_t*>(memory.data());
    for (int64_t i = 0; i < (n + n % 2) * each; ++i) words[i] = word_at(p, first * each + i);
    (is_wide ? table.normal_double : table.normal_float)(words, n,
                                                         static_cast<char*>(p.y) + first * bytes);
  }
}
void draw_integers(const RandomProblem& p) {
  for (int64_t i = 0; i < p.count; ++i)
    static_cast<int64_t*>(p.y)[i] =
        static_cast<int64_t>(static_cast<uint64_t>(p.low) + below(p.span, pair_at(p, i)));
}
// Fisher and Yates: the swaps of the last elements first, each with an element before.
void draw_permutation(const RandomProblem& p) {
  auto* const y = static_cast<int64_t*>(p.y);
  for (int64_t i = 0; i < p.count; ++i) y[i] = i;
  for (int64_t i = p.count - 1; i > 0; --i)
    std::swap(y[i], y[below(static_cast<uint64_t>(i + 1), pair_at(p, i))]);
}
template <class T> void drop_as(const RandomProblem& p) {
  for (int64_t i = 0; i < p.count; ++i) {
    const float uniform = static_cast<float>(word_at(p, i) >> 8) * 0x1p-24f;
    const bool is_kept = uniform < static_cast<float>(p.keep);
    static_cast<T*>(p.y)[i] =
        static_cast<const T*>(p.x)[i] * (is_kept ? static_cast<T>(p.scale) : T(0));
  }
}
void drop(const RandomProblem& p) {
  p.dtype == DType::float64 ? drop_as<double>(p) : drop_as<float>(p);
}

// The class in whose share of the sum a uniform number falls.
void draw_again(const DrawnProblem& d) {
  for (int64_t row = 0; row < d.rows; ++row) {
    const double* const p = d.p + row * d.classes;
    double total = 0;
    int64_t last = 0;  // of those above 0, for numbers that rounding puts behind all shares
    for (int64_t i = 0; i < d.classes; ++i) {
      total += p[i];
      if (p[i] > 0) last = i;
    }
    for (int64_t j = row * d.samples; j < (row + 1) * d.samples; ++j) {
      int64_t at = 0;
      for (double sum = p[0]; at < last && sum <= d.u[j] * total; sum += p[at]) ++at;
      d.y[j] = at;
    }
  }
}
// Each class arrives after an exponential time of its rate, and the first to arrive are taken
// (Efraimidis, Spirakis, "Weighted random sampling with a reservoir", 2006).
void draw_once(const DrawnProblem& d) {
  for (int64_t row = 0; row < d.rows; ++row) {
    std::vector<double> arrivals(d.classes, __builtin_inf());
    for (int64_t i = 0; i < d.classes; ++i) {
      const double p = d.p[row * d.classes + i], u = d.u[row * d.classes + i];
      if (p > 0) arrivals[i] = -std::log1p(-u) / p;
    }
    for (int64_t j = 0; j < d.samples; ++j) {
      int64_t first = -1;
      for (int64_t i = 0; i < d.classes; ++i)
        if (arrivals[i] >= 0 && (first < 0 || arrivals[i] < arrivals[first])) first = i;
      d.y[row * d.samples + j] = first;
      arrivals[first] = -1;  // taken
    }
  }
}

template <class Problem, void (*op)(const Problem&)> void run(const void* problem) {
  op(*static_cast<const Problem*>(problem));
}

}  // namespace

void register_naive_random_kernels() {
  add_definition("random_uniform", run<RandomProblem, draw_uniform>);
  add_definition("random_normal", run<RandomProblem, draw_normal>);
  add_definition("random_integers", run<RandomProblem, draw_integers>);
  add_definition("random_permutation", run<RandomProblem, draw_permutation>);
  add_definition("dropout_by", run<RandomProblem, drop>);
  add_definition("multinomial_again", run<DrawnProblem, draw_again>);
  add_definition("multinomial_once", run<DrawnProblem, draw_once>);
}

}  // namespace tw
