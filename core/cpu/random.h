// Counter-based random bits (Philox 4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers:
// as easy as 1, 2, 3", SC 2011): number i of a stream depends on seed and i alone, not on threads.
#pragma once
#include <cstdint>

namespace tw {

// out[j] = word (first + j) of the stream `seed`, 32 bits each. `first` is a multiple of 4.
void philox_words(std::uint64_t seed, std::uint64_t first, std::int64_t count, std::uint32_t* out);

}  // namespace tw
