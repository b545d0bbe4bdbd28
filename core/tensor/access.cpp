// Pins of a launch.
#include "core/tensor/access.h"

#include <memory>

namespace tw {

void* Access::pin(Storage& storage) {
  alignas(64) static char nowhere[64];
  Block& block = *storage.block;
  if (modes.dry_run) return block.data ? block.data : nowhere;
  if (!block.source->use(block)) return block.data;
  try {
    held_ = new Held{Ref<Storage>(&storage), held_};
  } catch (...) {
    storage.unpin();
    throw;
  }
  return block.data;
}

void Access::release() noexcept {
  while (held_) {
    const std::unique_ptr<Held> held(std::exchange(held_, held_->next));
    held->storage->unpin();
  }
}

}  // namespace tw
