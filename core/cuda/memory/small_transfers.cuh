// Few bytes from and to the host without a copy: they come as arguments of the launch, which the
// driver keeps, and go to memory of the host that the GPU writes to.
#include "prelude.cuh"
#include "small_transfers_parameters.h"

template <int threads> TW_DEVICE void deliver(int64_t n, void* to, const void* from) {
  for (int64_t i = threadIdx.x; i < n; i += threads)
    static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
}

TW_KERNEL(short_message, ShortMessage, kWarpThreads) { deliver<kWarpThreads>(p.n, p.to, p.data); }
TW_KERNEL(long_message, LongMessage, kBlockThreads) { deliver<kBlockThreads>(p.n, p.to, p.data); }
TW_KERNEL(reply, Reply, kBlockThreads) { deliver<kBlockThreads>(p.n, p.to, p.from); }
