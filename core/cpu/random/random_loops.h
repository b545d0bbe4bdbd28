// Philox 4x32-10 and what becomes of its words, as loops that the compiler turns into vectors: the
// rounds run over many blocks side by side, word by word.
#pragma once
#include "core/cpu/simd/rows.h"
#include "core/cpu/math/functions.h"
#include "core/cpu/random/random.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;
using std::uint32_t;
using std::uint64_t;

constexpr int kTogether = kLanes<uint32_t> > 1 ? 4 * kLanes<uint32_t> : 1;

// The multipliers and key increments of the paper's table 2.
void philox_blocks(uint64_t seed, uint64_t block, int64_t blocks, uint32_t* out) {
  for (int64_t first = 0; first < blocks; first += kTogether) {
    uint32_t c[4][kTogether];
    for (int i = 0; i < kTogether; ++i) {
      const uint64_t counter = block + (uint64_t)(first + i);
      c[0][i] = (uint32_t)counter;
      c[1][i] = (uint32_t)(counter >> 32);
      c[2][i] = c[3][i] = 0;
    }
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int i = 0; i < kTogether; ++i) {
        const uint64_t p0 = 0xD2511F53ull * c[0][i], p1 = 0xCD9E8D57ull * c[2][i];
        c[0][i] = (uint32_t)(p1 >> 32) ^ c[1][i] ^ key0;
        c[1][i] = (uint32_t)p1;
        c[2][i] = (uint32_t)(p0 >> 32) ^ c[3][i] ^ key1;
        c[3][i] = (uint32_t)p0;
      }
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    const int count = blocks - first < kTogether ? (int)(blocks - first) : kTogether;
    uint32_t* const to = out + 4 * first;
    for (int i = 0; i < count; ++i)
      for (int word = 0; word < 4; ++word) to[4 * i + word] = c[word][i];
  }
}

// Numbers below 2^31, so that the conversion is one of signed integers.
void uniform_float(const uint32_t* words, int64_t n, int bits, void* to) {
  auto* y = (float*)to;
  const float unit = 1.0f / (float)(1 << bits);
  for (int64_t i = 0; i < n; ++i) y[i] = (float)(int)(words[i] >> (32 - bits)) * unit;
}
void uniform_double(const uint32_t* words, int64_t n, int, void* to) {
  auto* y = (double*)to;
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t both = (uint64_t)words[2 * i] << 32 | words[2 * i + 1];
    y[i] = (double)(int64_t)(both >> 11) * 0x1p-53;
  }
}

// Whole numbers from the high bits of words, as many as the type has digits; times kUnit they are
// in [0, 1).
template <class T> inline constexpr T kUnit = sizeof(T) == 4 ? (T)0x1p-24 : (T)0x1p-53;
template <class T> TW_INLINE Vec<T> whole_numbers(const IntLike<T>* words, int64_t at, int count) {
  constexpr int digits = sizeof(T) == 4 ? 24 : 53, bits = 8 * (int)sizeof(T);
  Vec<IntLike<T>> word = load_some(words + at, count);
  if constexpr (bits == 64) word = {word.v << 32 | (word.v >> 32 & 0xffffffff)};  // first is high
  const Vec<IntLike<T>> high = {(word.v >> (bits - digits)) & (((IntLike<T>)1 << digits) - 1)};
  return convert<T>(high);
}
// Box and Muller's pairs: n numbers from n words (float32) or 2 n (float64), rounded up to even.
// The first half of the words gives distances, the second angles, whose quadrants are split off
// before anything is rounded.
template <class T> void normal(const uint32_t* words, int64_t n, void* to) {
  auto* bits = (const IntLike<T>*)words;
  auto* y = (T*)to;
  const int64_t half = (n + 1) / 2, rest = n - half;
  each_vector<T>(half, [=](int64_t at, int count) TW_LAMBDA_INLINE {
    const Vec<T> distance = sqrt(log(fma(whole_numbers<T>(bits, at, count), -kUnit<T>, 1)) * -2);
    const Vec<T> turns = whole_numbers<T>(bits + half, at, count) * (4 * kUnit<T>);
    const Vec<T> shifted = turns + Format<T>::rounder;
    const Bits<T> quadrant = bit_cast<IntLike<T>>(shifted);
    const Vec<T> angle = (turns - (shifted - Format<T>::rounder)) * kHalfPi;
    const auto parts = sine_cosine<T>({quadrant, angle, 0});
    const Vec<T> s = parts.sine.sum(), c = parts.cosine.sum();
    const Mask<T> odd = {(quadrant & 1).v != 0};
    const auto turned = [=](Vec<T> x, int more) TW_LAMBDA_INLINE {
      const Bits<T> flip = Bits<T>((quadrant.v + (IntLike<T>)more) << (8 * (int)sizeof(T) - 2));
      return bit_cast<T>(bit_cast<IntLike<T>>(x) ^ (flip & sign_bit<T>()));
    };
    store_some(y + at, distance * turned(where(odd, s, c), 1), count);
    const int64_t left = rest - at;
    store_some(y + half + at, distance * turned(where(odd, c, s), 0),
               left < count ? (int)left : count);
  });
}

template <class T> void dropout(const uint32_t* words, int64_t n, float keep, double factor,
                                const void* from, void* to) {
  auto *x = (const T*)from, *y = (T*)to;
  const T scale = (T)factor;
  for (int64_t i = 0; i < n; ++i)
    y[i] = x[i] * ((float)(int)(words[i] >> 8) * 0x1p-24f < keep ? scale : (T)0);
}

}  // namespace

extern const RandomTable random_table;
const RandomTable random_table = {philox_blocks,  uniform_float,  uniform_double, normal<float>,
                                  normal<double>, dropout<float>, dropout<double>};

}  // namespace tw::TW_ISA_NAME
