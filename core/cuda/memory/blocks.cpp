#include "core/cuda/memory/blocks.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/base/fault.h"
#include "core/cuda/gpu/gpu.h"
#include "core/memory/events.h"
#include "core/memory/heap.h"

namespace tw::cuda {

namespace {

// The driver aligns to this, and widest loads want no more.
constexpr std::size_t kAlignment = 256;
// Larger ones are ranges: cutting one costs some 200 ns, a launch's tenth.
constexpr std::size_t kLargestBinned = 128 << 10;
constexpr std::size_t kChunkBytes = 2 << 20;  // the unit of the driver's own pages
constexpr std::size_t kPieceBytes = 32 << 20;

// Asking the driver about an event costs ten allocations.
constexpr std::uint64_t kLooks = 32;

std::size_t whole(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

std::size_t gpu_bytes(std::size_t bytes) {
  return charged_bytes(whole(std::max<std::size_t>(bytes, 1), kAlignment));
}

// ---- allocation ----

Block* GpuBlocks::allocate(std::size_t bytes) { return allocate_on(gpu_.current_stream(), bytes); }

GpuBlock* GpuBlocks::allocate_on(GpuStream& stream, std::size_t bytes) {
  if (bytes > SIZE_MAX / 4) fail(ErrorKind::memory, "device '", gpu_.name, "': out of memory");
  const std::lock_guard lock(mutex_);
  if (!parked_.empty() && memory_.allocations % kLooks == 0) [[unlikely]]
    unpark(false);
  Lane& lane = lane_of(stream);
  const std::size_t charged = gpu_bytes(bytes);
  GpuBlock* block;
  if (charged <= kLargestBinned) {
    const int size_class = size_class_of(charged);
    block = lane.bins[size_class];
    if (block) [[likely]]
      lane.bins[size_class] = block->next;
    else
      block = carve(lane, size_class, charged);
    ++block->chunk->live;
  } else {
    char* const memory = cut(lane, charged);
    block = new_block();
    block->data = memory;
    block->chunk = nullptr;
  }
  block->source = this;
  block->bytes = bytes;
  block->home = &stream;
  block->charged = charged;
  block->op = current_op();
  enlist(*block);
  ++memory_.allocations;
  memory_.live += charged;
  memory_.peak = std::max(memory_.peak, memory_.live);
  return block;
}

GpuBlocks::Lane& GpuBlocks::lane_of(const GpuStream& stream) {
  std::unique_ptr<Lane>& lane = lanes_[stream.number];
  if (!lane) lane = std::make_unique<Lane>();
  return *lane;
}

GpuBlock* GpuBlocks::new_block() {
  return spare_ ? std::exchange(spare_, spare_->next) : new GpuBlock;
}

GpuBlock* GpuBlocks::carve(Lane& lane, int, std::size_t bytes) {
  if (static_cast<std::size_t>(lane.fresh_end - lane.fresh) < bytes) {
    auto chunk = std::make_unique<GpuChunk>();
    chunk->memory = cut(lane, kChunkBytes);
    lane.fresh = chunk->memory;
    lane.fresh_end = chunk->memory + kChunkBytes;
    lane.chunks.push_back(std::move(chunk));
  }
  GpuBlock* const block = new_block();
  block->data = std::exchange(lane.fresh, lane.fresh + bytes);
  block->chunk = lane.chunks.back().get();
  return block;
}

char* GpuBlocks::cut(Lane& lane, std::size_t bytes) {
  if (char* memory = lane.regions.take(bytes)) return memory;
  if (!parked_.empty()) {
    unpark(false);
    if (char* memory = lane.regions.take(bytes)) return memory;
  }
  std::size_t added = whole(std::max(bytes, kPieceBytes), kChunkBytes);
  char* piece = take_from_driver(whole(bytes, kChunkBytes), added);
  if (!piece) {
    unpark(true);
    if (char* memory = lane.regions.take(bytes)) return memory;
    trim_locked();
    piece = take_from_driver(whole(bytes, kChunkBytes), added);
  }
  if (!piece) refuse(bytes);
  lane.regions.add(piece, added);
  return lane.regions.take(bytes);
}

// As much as wanted, or as little as will do; null where the driver has neither.
char* GpuBlocks::take_from_driver(std::size_t least, std::size_t& bytes) {
  gpu_.enter();
  for (const std::size_t wanted : {bytes, least}) {
    if (memory_.limit && memory_.reserved + wanted > memory_.limit) continue;
    Address memory = 0;
    ++memory_.driver_calls;
    const Result result = fault_point() ? kOutOfMemory : driver().allocate(&memory, wanted);
    if (result == kOutOfMemory) continue;
    check(result, "memory cannot be allocated");
    bytes = wanted;
    memory_.reserved += wanted;
    memory_.peak_reserved = std::max(memory_.peak_reserved, memory_.reserved);
    return reinterpret_cast<char*>(memory);
  }
  return nullptr;
}

// ---- release ----

void GpuBlocks::release(Block* released) noexcept {
  const std::lock_guard lock(mutex_);
  auto& block = static_cast<GpuBlock&>(*released);
  delist(block);
  ++memory_.releases;
  memory_.live -= block.charged;
  if (block.description) block.description.reset();
  if (block.arrival) settle(block);
  block.copied = nullptr;
  if (block.users) [[unlikely]]
    return park(block);
  recycle(block);
}

void GpuBlocks::recycle(GpuBlock& block) noexcept {
  Lane& lane = *lanes_[block.home->number];
  GpuBlock** list = &spare_;
  if (block.chunk) {
    --block.chunk->live;
    list = &lane.bins[size_class_of(block.charged)];
  } else {
    lane.regions.give(static_cast<char*>(block.data));
  }
  block.next = std::exchange(*list, &block);
}

// Contents that nobody waited for are still being written.
void GpuBlocks::settle(GpuBlock& block) {
  const MarkRef arrival = std::exchange(block.arrival, nullptr);
  const bool waits = !(block.informed & set_of(*block.home)) && &arrival->stream() != block.home;
  block.informed = 0;
  if (!waits) return;
  try {
    arrival->hold(*block.home);
  } catch (const Error&) {  // a GPU that failed does no more work
  }
}

void GpuBlocks::park(GpuBlock& block) noexcept {
  try {
    Parked parked{&block, {}};
    for (int number = 0; number < kMostStreams; ++number)
      if (block.users >> number & 1)
        parked.marks.push_back(std::make_shared<const Mark>(gpu_.stream_by_number(number)));
    parked_.push_back(std::move(parked));
    memory_.waiting += block.charged;
  } catch (...) {  // as above
    recycle(block);
  }
  block.users = 0;
}

void GpuBlocks::unpark(bool wait) {
  while (!parked_.empty()) {
    Parked& first = parked_.front();
    for (const MarkRef& mark : first.marks) {
      if (wait)
        mark->wait();
      else if (!mark->reached())
        return;
    }
    memory_.waiting -= first.block->charged;
    recycle(*first.block);
    parked_.pop_front();
  }
}

// ---- use ----

bool GpuBlocks::use(Block& used) {
  auto& block = static_cast<GpuBlock&>(used);
  GpuStream& stream = gpu_.current_stream();
  if (block.home != &stream || block.arrival) [[unlikely]]
    use_on(block, stream);
  return false;
}

// What is pinned is read or written from outside: by whom is not known, so it is all there.
void GpuBlocks::pin(Block& pinned) {
  MarkRef arrival;
  {
    const std::lock_guard lock(mutex_);
    arrival = static_cast<GpuBlock&>(pinned).arrival;
  }
  if (arrival) arrival->wait();
}

void GpuBlocks::use_on(GpuBlock& block, GpuStream& stream) {
  const std::lock_guard lock(mutex_);
  const StreamSet own = set_of(stream);
  if (block.home != &stream) block.users |= own;
  if (!block.arrival || block.informed & own || &block.arrival->stream() == &stream) return;
  block.arrival->hold(stream);
  block.informed |= own;
}

void GpuBlocks::follow(const GpuBlock& block, GpuStream& stream) {
  const std::lock_guard lock(mutex_);
  if (block.arrival) block.arrival->hold(stream);
  for (int number = 0; number < kMostStreams; ++number)
    if ((block.users | set_of(*block.home)) >> number & 1)
      order(gpu_.stream_by_number(number), stream);
}

void GpuBlocks::note_copy(GpuBlock& block, GpuStream& stream) {
  const std::lock_guard lock(mutex_);
  block.copied = std::make_shared<const Mark>(stream);
}

void GpuBlocks::hand_back(GpuBlock& block) {
  const std::lock_guard lock(mutex_);
  std::exchange(block.copied, nullptr)->hold(*block.home);
  block.arrival = nullptr;
  block.users = block.informed = 0;
}

void GpuBlocks::arrive(GpuBlock& block, GpuStream& stream) {
  const std::lock_guard lock(mutex_);
  block.arrival = std::make_shared<const Mark>(stream);
  block.informed = 0;
}

void GpuBlocks::describe(Block& block, std::string text) {
  static_cast<GpuBlock&>(block).description = std::make_unique<std::string>(std::move(text));
}

// ---- figures ----

void GpuBlocks::enlist(GpuBlock& block) {
  block.older = newest_;
  block.newer = nullptr;
  if (newest_) newest_->newer = &block;
  newest_ = &block;
}

void GpuBlocks::delist(GpuBlock& block) noexcept {
  (block.newer ? block.newer->older : newest_) = block.older;
  if (block.older) block.older->newer = block.newer;
}

void GpuBlocks::trim() {
  const std::lock_guard lock(mutex_);
  gpu_.enter();
  unpark(true);
  trim_locked();
}

void GpuBlocks::trim_locked() {
  for (const auto& lane : lanes_) {
    if (!lane) continue;
    trim_chunks(*lane);
    for (;;) {
      const Regions::Mapping piece = lane->regions.pop_oldest();
      if (!piece.memory) break;
      driver().release(reinterpret_cast<Address>(piece.memory));
      memory_.reserved -= piece.bytes;
    }
  }
}

// Chunks without a live block become free ranges again.
void GpuBlocks::trim_chunks(Lane& lane) {
  for (GpuBlock*& bin : lane.bins) {
    for (GpuBlock** at = &bin; *at;) {
      if ((*at)->chunk->live) {
        at = &(*at)->next;
        continue;
      }
      GpuBlock* const block = std::exchange(*at, (*at)->next);
      block->next = std::exchange(spare_, block);
    }
  }
  std::erase_if(lane.chunks, [&](const std::unique_ptr<GpuChunk>& chunk) {
    if (chunk->live) return false;
    if (lane.fresh_end == chunk->memory + kChunkBytes) lane.fresh = lane.fresh_end = nullptr;
    lane.regions.give(chunk->memory);
    return true;
  });
}

void GpuBlocks::set_limit(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  memory_.limit = bytes;
}

void GpuBlocks::reset_peaks() {
  const std::lock_guard lock(mutex_);
  memory_.peak = memory_.live;
  memory_.peak_reserved = memory_.reserved;
}

GpuMemory GpuBlocks::memory() const {
  const std::lock_guard lock(mutex_);
  return memory_;
}

void GpuBlocks::refuse(std::size_t bytes) const {
  const std::string bound =
      memory_.limit ? ", limit " + std::to_string(memory_.limit) : std::string();
  fail(ErrorKind::memory, "device '", gpu_.name, "': out of memory: ", bytes, " bytes asked for, ",
       memory_.live, " in use by tensors, ", memory_.reserved, " reserved of ",
       gpu_.facts.memory_bytes, bound, holders());
}

// The ops whose results are most of the live bytes, and the largest tensors that were observed.
std::string GpuBlocks::holders() const {
  constexpr std::size_t kMost = 5;
  std::map<std::string, std::pair<std::size_t, std::size_t>> by_op;  // bytes, blocks
  std::vector<const GpuBlock*> described;
  for (const GpuBlock* block = newest_; block; block = block->older) {
    auto& [bytes, count] = by_op[*block->op ? block->op : "no op"];
    bytes += block->charged;
    ++count;
    if (block->description) described.push_back(block);
  }
  if (by_op.empty()) return "";
  std::vector<std::pair<std::size_t, std::string>> ops;
  for (const auto& [op, held] : by_op)
    ops.emplace_back(held.first, op + " " + std::to_string(held.first) + " bytes in " +
                                     std::to_string(held.second) +
                                     (held.second == 1 ? " block" : " blocks"));
  std::sort(ops.rbegin(), ops.rend());
  std::string text = "; made by";
  for (std::size_t i = 0; i < std::min(ops.size(), kMost); ++i)
    text += (i ? ", " : " ") + ops[i].second;
  std::sort(described.begin(), described.end(),
            [](const GpuBlock* a, const GpuBlock* b) { return a->charged > b->charged; });
  for (std::size_t i = 0; i < std::min(described.size(), kMost); ++i)
    text += (i ? ", " : "; the largest: ") + *described[i]->description;
  if (described.empty()) text += "; inside tw.memory.record() shapes and lines are told as well";
  return text;
}

}  // namespace tw::cuda
