// The rounds of SHA-256, and its padding.
#include "core/base/sha256.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace tw {

namespace {

constexpr std::size_t kBlockBytes = 64;
constexpr int kRounds = 64;
using HashState = std::array<std::uint32_t, 8>;

// The first 32 bits of the fractions of square roots of the first primes, and of cube roots.
constexpr HashState kFirstState = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
constexpr std::uint32_t kRoundConstants[kRounds] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

template <class... Turns> std::uint32_t turned(std::uint32_t x, Turns... by) {
  return (std::rotr(x, by) ^ ...);
}

// A block as 16 numbers of big-endian bytes, and what follows from them for the other rounds.
std::array<std::uint32_t, kRounds> schedule_of(const unsigned char* block) {
  std::array<std::uint32_t, kRounds> w;
  for (std::size_t i = 0; i < 16; ++i) {
    const unsigned char* at = block + 4 * i;
    w[i] =
        std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 | at[3];
  }
  for (std::size_t i = 16; i < kRounds; ++i)
    w[i] = w[i - 16] + w[i - 7] + (turned(w[i - 15], 7, 18) ^ w[i - 15] >> 3) +
           (turned(w[i - 2], 17, 19) ^ w[i - 2] >> 10);
  return w;
}

void take_block(HashState& state, const unsigned char* block) {
  const auto w = schedule_of(block);
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < kRounds; ++i) {
    const std::uint32_t first =
        h + turned(e, 6, 11, 25) + ((e & f) ^ (~e & g)) + kRoundConstants[i] + w[i];
    const std::uint32_t second = turned(a, 2, 13, 22) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
  }
  const HashState add = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += add[i];
}

// What is left of the text, one bit, zeros, and the length in bits: one block or two.
void take_end(HashState& state, std::string_view rest, std::uint64_t bytes) {
  unsigned char end[2 * kBlockBytes] = {};
  if (!rest.empty()) std::memcpy(end, rest.data(), rest.size());
  end[rest.size()] = 0x80;
  const std::size_t size = rest.size() + 9 <= kBlockBytes ? kBlockBytes : 2 * kBlockBytes;
  for (std::size_t i = 0; i < 8; ++i)
    end[size - 1 - i] = static_cast<unsigned char>(bytes * 8 >> (8 * i));
  for (std::size_t at = 0; at < size; at += kBlockBytes) take_block(state, end + at);
}

}  // namespace

std::string sha256(std::string_view bytes) {
  HashState state = kFirstState;
  std::string_view rest = bytes;
  for (; rest.size() >= kBlockBytes; rest.remove_prefix(kBlockBytes))
    take_block(state, reinterpret_cast<const unsigned char*>(rest.data()));
  take_end(state, rest, bytes.size());
  std::string digits;
  for (const std::uint32_t word : state)
    for (int shift = 28; shift >= 0; shift -= 4) digits += "0123456789abcdef"[word >> shift & 15];
  return digits;
}

}  // namespace tw
