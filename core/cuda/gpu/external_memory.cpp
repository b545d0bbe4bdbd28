#include "core/cuda/gpu/external_memory.h"

#include "core/base/error.h"

namespace tw::cuda {

namespace {

// As a stream of the GPU, for the length of a call.
GpuStream foreign(Gpu& gpu, ForeignStream stream) {
  return {&gpu, reinterpret_cast<Stream>(stream), -1, 0};
}

}  // namespace

int gpu_of_address(const void* address, const char* op) {
  constexpr unsigned kOnDevice = 2;
  unsigned kind = 0;
  int number = 0;
  Gpu::at(0).enter();
  const auto at = reinterpret_cast<Address>(address);
  if (driver().pointer_attribute(&kind, kPointerKind, at) || kind != kOnDevice ||
      driver().pointer_attribute(&number, kPointerDevice, at))
    fail(ErrorKind::buffer, op, ": the address ", address, " is not a GPU's memory");
  return number;
}

void follow_foreign(Gpu& gpu, ForeignStream stream) {
  GpuStream theirs = foreign(gpu, stream);
  Mark(theirs).hold(gpu.current_stream());
}

void lead_foreign(Gpu& gpu, Block* block, ForeignStream stream) {
  if (block && block->source->use(*block)) block->source->unpin(*block);
  const GpuStream theirs = foreign(gpu, stream);
  Mark(gpu.current_stream()).hold(theirs);
}

void take_back_from_foreign(Gpu& gpu, Block* block, ForeignStream stream) noexcept {
  try {
    gpu.enter();
    if (stream != kLegacyStream && stream != kPerThreadStream) {
      driver().synchronize();
      return;
    }
    GpuStream theirs = foreign(gpu, stream);
    const Mark mark(theirs);
    mark.hold(gpu.current_stream());
    if (GpuBlock* const own = gpu.block_of(block)) mark.hold(*own->home);
  } catch (const Error&) {  // a GPU that failed does no more work
  }
}

ForeignStream name_of_stream(Gpu& gpu) {
  return reinterpret_cast<std::uintptr_t>(gpu.current_stream().handle);
}

}  // namespace tw::cuda
