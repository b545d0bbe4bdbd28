#include "core/cuda/memory/spill_tiers.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/cuda/gpu/gpu.h"
#include "core/cuda/memory/pinned.h"

namespace tw::cuda {

namespace {

Address address_of(const void* data) { return reinterpret_cast<Address>(data); }

// ---- pinned memory, above files ----

class PinnedMemory final : public PoolMemory {
 public:
  explicit PinnedMemory(std::string spill_parent) : spill_parent_(std::move(spill_parent)) {}
  std::int64_t charged(std::size_t bytes) const override {
    return static_cast<std::int64_t>(charged_bytes(bytes));
  }
  Piece allocate(std::size_t bytes) override {
    Block* const block = PinnedBlocks::all().allocate(bytes);
    return {block->data, block};
  }
  void release(const Piece& piece, std::size_t) noexcept override {
    PinnedBlocks::all().release(piece.inner);
  }
  PoolStats stats() override { return PinnedBlocks::all().stats(); }
  void reset_peaks() override {}
  std::int64_t trim() override { return PinnedBlocks::all().trim(); }
  std::shared_ptr<SpillTier> make_tier() override { return SpillFolder::create(spill_parent_); }
  // A file is written by the host, which waits for the copy from the GPU.
  void before_copy(const Piece& piece) override {
    PinnedBlocks::all().wait_for_copies(static_cast<PinnedBlock&>(*piece.inner));
  }

 private:
  const std::string spill_parent_;
};

class PinnedTier final : public SpillTier {
 public:
  PinnedTier(Gpu& gpu, const HostTier& below)
      : gpu_(gpu),
        host_(QuotaPool::create(below.quota_bytes, !below.spill_parent.empty(),
                                std::make_unique<PinnedMemory>(below.spill_parent),
                                make_ledger(below.quota_bytes, !below.spill_parent.empty()))) {}

  std::uint64_t write(const void* from, std::size_t bytes) override {
    const Turn turn(*this);
    Block* const block = room_for(bytes);
    try {
      in_place(*block, [&] {
        copy(*block, *gpu_.download, "download", address_of(block->data), address_of(from), bytes);
      });
    } catch (...) {
      host_->release(block);
      throw;
    }
    return reinterpret_cast<std::uint64_t>(block);
  }
  bool has_room(std::size_t bytes) const override {
    const std::int64_t quota = host_->quota_bytes();
    const auto charged = static_cast<std::int64_t>(charged_bytes(bytes));
    return quota < 0 || host_->figures().live_bytes + charged <= quota;
  }
  void read(std::uint64_t number, void* to, std::size_t bytes) const override {
    const Turn turn(*this);
    Block& block = *reinterpret_cast<Block*>(number);
    in_place(block, [&] {
      copy(block, *gpu_.upload, "upload", address_of(to), address_of(block.data), bytes);
    });
  }
  void remove(std::uint64_t number) const noexcept override {
    host_->release(reinterpret_cast<Block*>(number));
  }
  bool is_own() const override { return owner_ == getpid(); }
  const std::string& path() const override {
    folder_ = host_->spill_path();
    return folder_;
  }
  QuotaPool& host() const { return *host_; }

 private:
  Block* room_for(std::size_t bytes) {
    try {
      return with_room([&] { return host_->allocate(bytes); });
    } catch (const Error& error) {
      fail(error.kind, "pool on device '", gpu_.name,
           "': no room below it in host memory: ", error.what());
    }
  }
  // A thread that copies, from before it asks for room until its block may leave again.
  class Turn {
   public:
    explicit Turn(const PinnedTier& tier) : tier_(tier) {
      const std::lock_guard lock(tier.mutex_);
      ++tier.at_work_;
    }
    ~Turn() {
      const std::lock_guard lock(tier_.mutex_);
      --tier_.at_work_;
      ++tier_.ended_;
      tier_.turn_ended_.notify_all();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    const PinnedTier& tier_;
  };
  // f() asks the host's memory for room. Where blocks of other threads at work are in the way, it
  // waits for one of them.
  template <class F> auto with_room(F&& f) const -> decltype(f()) {
    for (;;) {
      std::unique_lock lock(mutex_);
      const std::uint64_t before = ended_;
      lock.unlock();
      try {
        return f();
      } catch (const Error& error) {
        if (error.kind != ErrorKind::memory) throw;
        lock.lock();
        if (at_work_ == 1 && ended_ == before) throw;
        --at_work_;
        turn_ended_.wait(lock, [&] { return ended_ != before; });
        ++at_work_;
      }
    }
  }
  // While f() runs, no other thread drives the block out.
  template <class F> void in_place(Block& block, F&& f) const {
    const bool held = with_room([&] { return host_->use(block); });
    try {
      f();
    } catch (...) {
      if (held) host_->unpin(block);
      throw;
    }
    if (held) host_->unpin(block);
  }
  void copy(Block& block, GpuStream& stream, const char* direction, Address to, Address from,
            std::size_t bytes) const {
    PinnedBlock& pinned = *PinnedBlocks::find(&block);
    gpu_.enter();
    PinnedBlocks::all().follow(pinned, stream);
    {
      const Copier::CopyTimer timer(gpu_.copier, stream, direction, bytes);
      check(driver().copy(to, from, bytes, stream.handle), "memory cannot be copied");
    }
    PinnedBlocks::all().add_copy(pinned, std::make_shared<const Mark>(stream));
  }

  Gpu& gpu_;
  const std::shared_ptr<QuotaPool> host_;
  const pid_t owner_ = getpid();
  mutable std::string folder_;
  mutable std::mutex mutex_;  // guards what follows
  mutable std::condition_variable turn_ended_;
  mutable int at_work_ = 0;
  mutable std::uint64_t ended_ = 0;  // turns
};

// ---- the GPU's memory, above pinned memory ----

GpuBlock& gpu_block(const PoolMemory::Piece& piece) { return static_cast<GpuBlock&>(*piece.inner); }

class QuotaMemory final : public PoolMemory {
 public:
  QuotaMemory(Gpu& gpu, HostTier below) : gpu_(gpu), below_(std::move(below)) {}
  const Device* device() const override { return &gpu_; }
  const char* device_name() const override { return gpu_.name; }
  std::int64_t charged(std::size_t bytes) const override {
    return static_cast<std::int64_t>(gpu_bytes(bytes));
  }
  Piece allocate(std::size_t bytes) override {
    Block* const block = gpu_.blocks.allocate(bytes);
    ++stats_.allocations;
    stats_.live_bytes += charged(bytes);
    stats_.peak_live_bytes = std::max(stats_.peak_live_bytes, stats_.live_bytes);
    return {block->data, block};
  }
  void release(const Piece& piece, std::size_t bytes) noexcept override {
    ++stats_.releases;
    stats_.live_bytes -= charged(bytes);
    gpu_.blocks.release(piece.inner);
  }
  void use(const Piece& piece) override { gpu_.blocks.use(*piece.inner); }
  void expose(const Piece& piece) override { gpu_.blocks.pin(*piece.inner); }
  // What is free belongs to the GPU's own pool.
  PoolStats stats() override {
    PoolStats stats = stats_;
    stats.reserved_bytes = stats.live_bytes;
    stats.peak_reserved_bytes = stats.peak_live_bytes;
    return stats;
  }
  void reset_peaks() override { stats_.peak_live_bytes = stats_.live_bytes; }
  std::int64_t trim() override {
    const std::size_t before = gpu_.blocks.memory().reserved;
    gpu_.blocks.trim();
    return static_cast<std::int64_t>(before - gpu_.blocks.memory().reserved);
  }
  std::shared_ptr<SpillTier> make_tier() override {
    return std::make_shared<PinnedTier>(gpu_, below_);
  }
  bool copies_beside() const override { return true; }
  void before_copy(const Piece& piece) override {
    gpu_.blocks.follow(gpu_block(piece), *gpu_.download);
  }
  void after_copy(const Piece& piece) override {
    gpu_.blocks.note_copy(gpu_block(piece), *gpu_.download);
  }
  void leave(const Piece& piece) override { gpu_.blocks.hand_back(gpu_block(piece)); }
  // The memory served others before, in the order of its home.
  void before_arriving(const Piece& piece) override { order(*gpu_block(piece).home, *gpu_.upload); }
  void after_arriving(const Piece& piece) override {
    gpu_.blocks.arrive(gpu_block(piece), *gpu_.upload);
  }

 private:
  Gpu& gpu_;
  const HostTier below_;
  PoolStats stats_{};
};

}  // namespace

std::shared_ptr<QuotaPool> make_gpu_pool(Gpu& gpu, std::int64_t quota_bytes, HostTier below,
                                         std::unique_ptr<Ledger> ledger) {
  const bool may_spill = quota_bytes >= 0 && below.quota_bytes > 0;
  return QuotaPool::create(quota_bytes, may_spill,
                           std::make_unique<QuotaMemory>(gpu, std::move(below)), std::move(ledger));
}

HostFigures host_figures(QuotaPool& pool) {
  const auto tier = std::dynamic_pointer_cast<PinnedTier>(pool.tier());
  if (!tier) return {};
  return {tier->host().figures(), tier->host().spill_path()};
}

}  // namespace tw::cuda
