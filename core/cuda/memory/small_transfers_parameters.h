// What the kernels of small_transfers.cuh are given.
#pragma once
#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

// A launch takes 4 KiB of arguments; fewer bytes take less time to hand over.
constexpr int kShortBytes = 48, kLongBytes = 4064;

template <int most> struct Message {
  int64_t n;
  void* to;
  char data[most];
};
using ShortMessage = Message<kShortBytes>;
using LongMessage = Message<kLongBytes>;

struct Reply {
  int64_t n;
  void* to;
  const void* from;
};

}  // namespace tw::cuda
