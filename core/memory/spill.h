// Tiers below a pool's memory. The one there is: a folder of files, one for each block that left.
// It is locked while its process lives, so that what a killed process left is found and removed.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tw {

// Where blocks go that a pool has no room for: files below the processor's memory; for a device's
// pool pinned memory, with files below it in turn. Called on several threads at once, without the
// pool's lock where it says nothing else.
class SpillTier {
 public:
  virtual ~SpillTier() = default;
  // Keeps a copy and returns its number. Raises OSError and leaves nothing behind.
  virtual std::uint64_t write(const void* from, std::size_t bytes) = 0;
  // Whether it keeps so much without making room. Asked under the pool's lock.
  virtual bool has_room(std::size_t) const { return true; }
  // Raises OSError where the copy is gone, short or unreadable.
  virtual void read(std::uint64_t number, void* to, std::size_t bytes) const = 0;
  virtual void remove(std::uint64_t number) const noexcept = 0;
  // False in a child of the process that made it, which may read but not change it.
  virtual bool is_own() const = 0;
  // Where it is, for people.
  virtual const std::string& path() const = 0;
};

class SpillFolder final : public SpillTier {
 public:
  // Makes tilewright-spill-<process>-<random> in `parent`, after removing those of processes that
  // are gone. Raises OSError.
  static std::shared_ptr<SpillFolder> create(const std::string& parent);
  ~SpillFolder() override;
  SpillFolder(const SpillFolder&) = delete;
  SpillFolder& operator=(const SpillFolder&) = delete;

  std::uint64_t write(const void* from, std::size_t bytes) override;
  void read(std::uint64_t number, void* to, std::size_t bytes) const override;
  void remove(std::uint64_t number) const noexcept override;
  bool is_own() const override;
  const std::string& path() const override { return path_; }

 private:
  SpillFolder(std::string path, int lock);
  std::string path_of(std::uint64_t number) const;
  void clear() const noexcept;
  static void clear_all() noexcept;

  const std::string path_;
  const int lock_;  // open file that carries the lock
  const pid_t owner_;
  std::atomic<std::uint64_t> next_{0};
};

}  // namespace tw
