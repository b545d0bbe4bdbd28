// Few bytes from and to the host without a copy: they come as arguments of the launch, which the
// driver keeps, and go to memory of the host that the GPU writes to.
#include "prelude.cuh"

// The driver takes 4 KiB of arguments.
struct ShortMessage { int64_t n; unsigned char* to; unsigned char data[48]; };
struct LongMessage { int64_t n; unsigned char* to; unsigned char data[4064]; };
struct Reply { int64_t n; unsigned char* to; const unsigned char* from; };

template <int threads, class Parameter> TW_DEVICE void deliver(const Parameter& p, const unsigned char* data) {
  for (int64_t i = threadIdx.x; i < p.n; i += threads) p.to[i] = data[i];
}

TW_KERNEL(short_message, ShortMessage, 32) { deliver<32>(p, p.data); }
TW_KERNEL(long_message, LongMessage, 256) { deliver<256>(p, p.data); }
TW_KERNEL(reply, Reply, 256) { deliver<256>(p, p.from); }
