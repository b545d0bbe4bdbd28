#include "core/tensor/storage.h"

#include <vector>

#include "core/base/free_list.h"
#include "core/memory/events.h"
#include "core/memory/pool.h"
#include "core/runtime/device.h"
#include "core/tensor/births.h"

namespace tw {

namespace {

Storage* unobserved_storage() {
  auto* const storage = new (FreeList<Storage>::take()) Storage();
  storage->run = modes.run;
  return storage;
}

Storage* fresh_storage() {
  Storage* const storage = unobserved_storage();
  if (Births::asked()) [[unlikely]]
    Births::note(*storage);
  return storage;
}

Ref<Storage> allocate_from(BlockSource& source, const Device* device, std::size_t bytes) {
  Block* block = source.allocate(bytes);
  Storage* const storage = fresh_storage();
  storage->bytes = bytes;
  storage->device = device;
  if (block->source)
    storage->block = block;
  else
    storage->data = block->data;
  return Ref<Storage>(storage);
}

Ref<Storage> allocate_on(const Device* device, std::size_t bytes) {
  void* data = device ? device->allocate(*device, bytes) : pool_allocate(bytes);
  Storage* const storage = fresh_storage();
  storage->data = data;
  storage->bytes = bytes;
  storage->device = device;
  return Ref<Storage>(storage);
}

[[gnu::noinline, gnu::cold]] void log_event(EventKind kind, const Storage* storage) {
  const void* id = storage->block ? static_cast<const void*>(storage->block) : storage;
  const Purpose purpose =
      note_memory(kind, id, storage->bytes, storage->device ? storage->device->name : "cpu");
  if (kind == EventKind::allocate && storage->block)
    storage->block->source->describe(*storage->block, purpose.text());
}

// Where a source is in force, or a device, or storages are observed.
[[gnu::noinline]] Ref<Storage> allocate_apart(std::size_t bytes) {
  const Device* const device = modes.device;
  BlockSource* source = modes.source ? modes.source->serving(device) : nullptr;
  if (!source && device) source = device->source;
  Ref<Storage> out = source ? allocate_from(*source, device, bytes) : allocate_on(device, bytes);
  if (logs_memory()) [[unlikely]]
    log_event(EventKind::allocate, out.get());
  return out;
}

// Memory that several storages may show. Whoever holds references holds the frontend's lock, which
// guards this list as well.
struct SharedMemory {
  Storage* storage;
  const char *low, *high;
  std::uint32_t holders;
};
std::vector<SharedMemory> shared_memory;

void forget_shared(std::uint32_t entry) noexcept {
  shared_memory[entry - 1].storage->shared_at = 0;
  if (entry != shared_memory.size()) {
    shared_memory[entry - 1] = shared_memory.back();
    shared_memory[entry - 1].storage->shared_at = entry;
  }
  shared_memory.pop_back();
}

}  // namespace

Births::~Births() {
  Births** place = &first_;
  while (*place != this) place = &(*place)->next_;
  *place = next_;
}

void Births::note(const Storage& storage) {
  for (Births* each = first_; each; each = each->next_) each->made_.insert(&storage);
}

[[gnu::hot]] Ref<Storage> Storage::allocate(std::size_t bytes) {
  // Observers of storages are asked for here alone: the way that is taken most needs no frame for
  // it.
  if (modes.device || modes.source || logs_memory() || Births::asked()) [[unlikely]]
    return allocate_apart(bytes);
  void* const data = pool_allocate(bytes);
  Storage* const storage = unobserved_storage();
  storage->data = data;
  storage->bytes = bytes;
  return Ref<Storage>(storage);
}

Ref<Storage> Storage::borrow(void* data, std::size_t bytes, bool writable, void* owner,
                             void (*give_back)(void*)) {
  Storage* const storage = fresh_storage();
  storage->data = data;
  storage->bytes = bytes;
  storage->writable = writable;
  storage->owner = owner;
  storage->give_back = give_back;
  return Ref<Storage>(storage);
}

void Storage::share(const char* low, const char* high) {
  if (!shared_at) {
    shared_memory.push_back({this, low, high, 0});
    shared_at = static_cast<std::uint32_t>(shared_memory.size());
  }
  SharedMemory& entry = shared_memory[shared_at - 1];
  if (low < entry.low) entry.low = low;
  if (high > entry.high) entry.high = high;
  ++entry.holders;
}

void Storage::unshare() noexcept {
  if (--shared_memory[shared_at - 1].holders == 0) forget_shared(shared_at);
}

void Storage::count_shared_change() {
  const SharedMemory& self = shared_memory[shared_at - 1];
  for (const SharedMemory& other : shared_memory)
    if (other.storage != this && other.low < self.high && self.low < other.high)
      ++other.storage->version;
}

// Memory that is not the pool's.
[[gnu::noinline]] static void destroy_apart(Storage* storage) noexcept {
  if (storage->block)
    storage->block->source->release(storage->block);
  else if (storage->give_back)
    storage->give_back(storage->owner);
  else
    storage->device->release(*storage->device, storage->data, storage->bytes);
  FreeList<Storage>::give(storage);
}

[[gnu::hot]] void Storage::destroy(Storage* storage) noexcept {
  if (storage->shared_at) [[unlikely]]
    forget_shared(storage->shared_at);
  if (logs_memory() && !storage->give_back) [[unlikely]]
    log_event(EventKind::release, storage);
  if (storage->block || storage->give_back || storage->device) [[unlikely]]
    return destroy_apart(storage);
  void* const data = storage->data;
  const std::size_t bytes = storage->bytes;
  FreeList<Storage>::give(storage);
  pool_release(data, bytes);
}

}  // namespace tw
