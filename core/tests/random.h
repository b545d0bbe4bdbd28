// Numbers for tests, the same on every machine.
#pragma once
#include <cstdint>

namespace tw::test {

struct Random {  // xorshift
  std::uint64_t state = 88172645463325252u;
  std::uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  }
  std::int64_t below(std::int64_t n) { return std::int64_t(next() % std::uint64_t(n)); }
  double real() { return double(std::int64_t(next() >> 11)) / double(1ll << 52) - 1; }  // [-1, 1)
};

}  // namespace tw::test
