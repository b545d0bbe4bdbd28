#include "core/cuda/memory/copier.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "core/cuda/gpu/gpu.h"
#include "core/cuda/memory/pinned.h"

namespace tw::cuda {

namespace {

// A bus moves this in 40 us, four times what starting a copy costs; the processor fills the next
// slot meanwhile.
constexpr std::size_t kSlotBytes = 2 << 20;
// The driver itself puts this little into its queue; another stream's wait would cost more.
constexpr std::size_t kSmall = 64 << 10;
// How well times of events and of the host have to agree.
constexpr std::int64_t kNearNs = 20'000;

}  // namespace

Block* Arrivals::allocate(std::size_t bytes) {
  return gpu_.blocks.allocate_on(bytes > kSmall ? *gpu_.upload : gpu_.current_stream(), bytes);
}

// ---- what observers see ----

Copier::CopyTimer::CopyTimer(Copier& copier, const GpuStream& stream, const char* direction,
                             std::size_t bytes)
    : copier_(copier), stream_(stream) {
  if (!is_observed(kinds_of(EventKind::copy))) return;
  const std::lock_guard lock(copier_.observed_mutex_);
  if (copier_.observed_.empty()) copier_.set_clock();
  entry_ = {copier_.timed_event(), copier_.timed_event(), {}};
  entry_.event.kind = EventKind::copy;
  entry_.event.device = copier_.gpu_.name;
  entry_.event.op = current_op();
  entry_.event.kernel = direction;
  entry_.event.bytes = static_cast<double>(bytes);
  locate(entry_.event);
  check(driver().record_event(entry_.begin, stream_.handle), "an event cannot be recorded");
}

Copier::CopyTimer::~CopyTimer() {
  if (!entry_.begin) return;
  driver().record_event(entry_.end, stream_.handle);
  const std::lock_guard lock(copier_.observed_mutex_);
  copier_.observed_.push_back(std::move(entry_));
}

Event Copier::timed_event() {
  gpu_.enter();
  Event event = nullptr;
  check(driver().create_event(&event, 0), "no event can be made");
  return event;
}

// Events tell times between them as float milliseconds, so that zero has to be near.
void Copier::set_clock() {
  if (!clock_) {
    clock_ = &gpu_.add_stream(0);
    zero_ = timed_event();
  }
  // Between two looks at the host's clock, the nearest of a few: others may take the processor.
  std::int64_t nearest = INT64_MAX;
  for (int tried = 0; tried < 5 && nearest > kNearNs; ++tried) {
    const std::int64_t before = now_ns();
    check(driver().record_event(zero_, clock_->handle), "an event cannot be recorded");
    check(driver().wait_for_event(zero_), "an event cannot be waited for");
    const std::int64_t after = now_ns();
    nearest = after - before;
    zero_ns_ = before + nearest / 2;
  }
}

void Copier::tell(bool all) {
  std::deque<ObservedCopy> done;
  {
    const std::lock_guard lock(observed_mutex_);
    if (observed_.empty()) return;
    gpu_.enter();
    while (!observed_.empty()) {
      const Event end = observed_.front().end;
      if (all ? driver().wait_for_event(end) : driver().query_event(end)) break;
      ObservedCopy& first = observed_.front();
      float begin = 0, length = 0;
      driver().elapsed_time(&begin, zero_, first.begin);
      driver().elapsed_time(&length, first.begin, first.end);
      first.event.start_ns = zero_ns_ + static_cast<std::int64_t>(begin * 1e6f);
      first.event.ns = static_cast<std::int64_t>(length * 1e6f);
      driver().destroy_event(first.begin);
      driver().destroy_event(first.end);
      done.push_back(std::move(first));
      observed_.pop_front();
    }
  }
  for (ObservedCopy& each : done) publish(each.event);
}

// ---- copies ----

void Copier::move(const Place& to, const Place& from, std::size_t bytes, bool waits) {
  if (bytes == 0) return;
  GpuBlock *const target = gpu_.block_of(to.block), *const source = gpu_.block_of(from.block);
  if (target && source) return gpu_.copy_on(gpu_.current_stream(), to.data, from.data, bytes);
  if (bytes <= SmallTransfers::kMostBytes && (to.on_device == &gpu_) != (from.on_device == &gpu_) &&
      !(to.on_device && from.on_device))
    return move_small(to, from, bytes);
  if (bytes <= kSmall || (from.on_device && to.on_device) || (!target && !source))
    return within(to, from, bytes);
  if (target)
    upload(*target, to.data, from, bytes, waits);
  else
    download(to, *source, from.data, bytes, waits);
}

// Of little to or from the host: only its consumer on the host waits on it.
void Copier::move_small(const Place& to, const Place& from, std::size_t bytes) {
  GpuStream& stream = gpu_.current_stream();
  if (to.on_device)
    small_transfers_.send(stream, to.data, from.data, bytes);
  else
    small_transfers_.fetch(stream, to.data, from.data, bytes);
  const std::lock_guard lock(mutex_);
  ++(to.on_device ? figures_.small_uploads : figures_.small_downloads);
}

// Between GPUs, or of memory that is not the pool's, or of little: in the order of this thread's
// stream.
void Copier::within(const Place& to, const Place& from, std::size_t bytes) {
  GpuStream& stream = gpu_.current_stream();
  for (const Place* place : {&to, &from}) {
    Block* const holder = place->block ? &place->block->source->holder(*place->block) : nullptr;
    if (GpuBlock* const block = dynamic_cast<GpuBlocks*>(holder ? holder->source : nullptr)
                                    ? static_cast<GpuBlock*>(holder)
                                    : nullptr)
      if (block->home->gpu != &gpu_) order(block->home->gpu->current_stream(), stream);
  }
  gpu_.copy(to.data, from.data, bytes);
}

void Copier::upload(GpuBlock& to_block, void* to, const Place& from, std::size_t bytes,
                    bool waits) {
  GpuStream& stream = *gpu_.upload;
  gpu_.blocks.follow(to_block, stream);
  std::optional<CopyTimer> timer(std::in_place, *this, stream, "upload", bytes);
  PinnedBlock* const pinned = PinnedBlocks::find(from.block);
  if (pinned) {
    PinnedBlocks::all().follow(*pinned, stream);
    gpu_.copy_on(stream, to, from.data, bytes);
    PinnedBlocks::all().add_copy(*pinned, std::make_shared<const Mark>(stream));
  } else {
    stage_up(to, from.data, bytes);
  }
  timer.reset();
  gpu_.blocks.arrive(to_block, stream);
  if (pinned && waits) PinnedBlocks::all().use(*pinned);
  const std::lock_guard lock(mutex_);
  ++figures_.uploads;
  figures_.upload_bytes += bytes;
  if (!pinned) figures_.staged_bytes += bytes;
}

void Copier::download(const Place& to, GpuBlock& from_block, const void* from, std::size_t bytes,
                      bool waits) {
  GpuStream& stream = *gpu_.download;
  PinnedBlock* const pinned = PinnedBlocks::find(to.block);
  order(gpu_.current_stream(), stream);
  gpu_.blocks.use_on(from_block, stream);
  std::optional<CopyTimer> timer(std::in_place, *this, stream, "download", bytes);
  if (pinned) {
    PinnedBlocks::all().follow(*pinned, stream);
    gpu_.copy_on(stream, to.data, from, bytes);
    PinnedBlocks::all().add_copy(*pinned, std::make_shared<const Mark>(stream));
  } else {
    gpu_.synchronize(gpu_.current_stream());  // holding no lock
    stage_down(to.data, from, bytes);
  }
  timer.reset();
  if (waits || !pinned) gpu_.synchronize(stream);
  const std::lock_guard lock(mutex_);
  ++figures_.downloads;
  figures_.download_bytes += bytes;
  if (!pinned) figures_.staged_bytes += bytes;
}

// The slot that has been busy for longest, free.
char* Copier::slot(Ring& ring, int& index) {
  if (!ring.memory) {
    void* memory = nullptr;
    gpu_.enter();
    check(driver().allocate_host(&memory, kSlots * kSlotBytes, kHostIsPortable),
          "host memory cannot be pinned");
    ring.memory = static_cast<char*>(memory);
  }
  index = std::exchange(ring.next, (ring.next + 1) % kSlots);
  if (const MarkRef busy = std::exchange(ring.busy[static_cast<std::size_t>(index)], nullptr))
    busy->wait();
  return ring.memory + static_cast<std::size_t>(index) * kSlotBytes;
}

void Copier::stage_up(void* to, const void* from, std::size_t bytes) {
  const std::lock_guard lock(up_.mutex);
  for (std::size_t at = 0; at < bytes; at += kSlotBytes) {
    const std::size_t part = std::min(bytes - at, kSlotBytes);
    int index = 0;
    char* const room = slot(up_, index);
    std::memcpy(room, static_cast<const char*>(from) + at, part);
    gpu_.copy_on(*gpu_.upload, static_cast<char*>(to) + at, room, part);
    up_.busy[static_cast<std::size_t>(index)] = std::make_shared<const Mark>(*gpu_.upload);
  }
}

// The bus fills slots while the processor empties those before.
void Copier::stage_down(void* to, const void* from, std::size_t bytes) {
  const std::lock_guard lock(down_.mutex);
  const std::size_t parts = (bytes + kSlotBytes - 1) / kSlotBytes;
  const auto size = [&](std::size_t part) {
    return std::min(bytes - part * kSlotBytes, kSlotBytes);
  };
  std::array<std::pair<char*, MarkRef>, kSlots> filled;
  for (std::size_t part = 0; part < parts + kSlots; ++part) {
    auto& [room, mark] = filled[part % kSlots];
    if (part >= kSlots && part - kSlots < parts) {
      mark->wait();
      const std::size_t done = part - kSlots;
      std::memcpy(static_cast<char*>(to) + done * kSlotBytes, room, size(done));
      mark = nullptr;
    }
    if (part >= parts) continue;
    int index = 0;
    room = slot(down_, index);
    gpu_.copy_on(*gpu_.download, room, static_cast<const char*>(from) + part * kSlotBytes,
                 size(part));
    mark = std::make_shared<const Mark>(*gpu_.download);
  }
}

CopyFigures Copier::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

}  // namespace tw::cuda
