#include "core/tensor/storage.h"

#include "core/base/free_list.h"
#include "core/memory/events.h"
#include "core/memory/pool.h"

namespace tw {

namespace {

[[gnu::noinline]] Ref<Storage> allocate_from(BlockSource& source, std::size_t bytes) {
  Block* block = source.allocate(bytes);
  auto* storage = new (FreeList<Storage>::take()) Storage();
  storage->data = block->data;
  storage->bytes = bytes;
  if (block->source) storage->block = block;
  return Ref<Storage>(storage);
}

[[gnu::noinline, gnu::cold]] void log_event(MemoryEventKind kind, const Storage* storage) {
  const void* id = storage->block ? static_cast<const void*>(storage->block) : storage;
  note_memory(kind, id, storage->bytes);
}

}  // namespace

Ref<Storage> Storage::allocate(std::size_t bytes) {
  Ref<Storage> out;
  if (block_source) [[unlikely]] {
    out = allocate_from(*block_source, bytes);
  } else {
    void* data = pool_allocate(bytes);  // may throw: before the header exists
    auto* storage = new (FreeList<Storage>::take()) Storage();
    storage->data = data;
    storage->bytes = bytes;
    out = Ref<Storage>(storage);
  }
  if (memory_log_on) [[unlikely]]
    log_event(MemoryEventKind::allocate, out.get());
  return out;
}

Ref<Storage> Storage::borrow(void* data, std::size_t bytes, bool writable, void* owner,
                             void (*give_back)(void*)) {
  auto* storage = new (FreeList<Storage>::take()) Storage();
  storage->data = data;
  storage->bytes = bytes;
  storage->writable = writable;
  storage->owner = owner;
  storage->give_back = give_back;
  return Ref<Storage>(storage);
}

void Storage::use_block() {
  block->source->use(*block);
  data = block->data;
}

void Storage::destroy(Storage* storage) noexcept {
  if (memory_log_on && !storage->give_back) [[unlikely]]
    log_event(MemoryEventKind::release, storage);
  if (storage->block) {
    storage->block->source->release(storage->block);
  } else if (storage->give_back) {
    storage->give_back(storage->owner);
  } else {
    pool_release(storage->data, storage->bytes);
  }
  FreeList<Storage>::give(storage);
}

}  // namespace tw
