// Where random numbers come from: counter-based streams.
#pragma once
#include <cstdint>

namespace tw {

// A stream and how far it has been read.
struct Generator {
  std::uint64_t seed;
  std::uint64_t position = 0;  // in 32-bit words, a multiple of 4
};

}  // namespace tw
