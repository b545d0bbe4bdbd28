// Memory of a GPU that another library shows us, or that we show to one: whose work waits for
// whose.
#pragma once
#include <cstdint>

#include "core/cuda/gpu/gpu.h"

namespace tw::cuda {

// Streams as other libraries name them: 1 and 2 are the driver's own, larger numbers addresses.
using ForeignStream = std::uint64_t;
inline constexpr ForeignStream kLegacyStream = 1, kPerThreadStream = 2;

// The number of the GPU that has the memory. Raises BufferError where none has.
int gpu_of_address(const void* address, const char* op);

// This thread's stream goes on after what was asked of the foreign one.
void follow_foreign(Gpu& gpu, ForeignStream stream);
// The foreign stream goes on after what this thread's was asked, and when the block's contents are
// there.
void lead_foreign(Gpu& gpu, Block* block, ForeignStream stream);
// The foreign library is done with a block, but its stream may not be: the memory serves again
// after that. A stream of a library's own may be gone by now, so that all is waited for.
void take_back_from_foreign(Gpu& gpu, Block* block, ForeignStream stream) noexcept;

// What this thread's stream is called elsewhere.
ForeignStream name_of_stream(Gpu& gpu);

}  // namespace tw::cuda
