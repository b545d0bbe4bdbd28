// The tier below memory: a folder of files, one for each block that left. The folder is locked
// while its process lives, so that what a killed process left behind is found and removed.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tw {

class SpillFolder {
 public:
  // Makes tilewright-spill-<process>-<random> in `parent`, after removing those of processes that
  // are gone. Raises OSError.
  static std::shared_ptr<SpillFolder> create(const std::string& parent);
  ~SpillFolder();
  SpillFolder(const SpillFolder&) = delete;
  SpillFolder& operator=(const SpillFolder&) = delete;

  // Writes a new file and returns its number. Raises OSError and leaves no file behind.
  std::uint64_t write(const void* from, std::size_t bytes);
  // Raises OSError where the file is gone, short or unreadable.
  void read(std::uint64_t number, void* to, std::size_t bytes) const;
  void remove(std::uint64_t number) const noexcept;
  const std::string& path() const { return path_; }
  // False in a child of the process that made it, which may read but not change it.
  bool is_own() const;
  std::string path_of(std::uint64_t number) const;

 private:
  SpillFolder(std::string path, int lock);
  void clear() const noexcept;
  static void clear_all() noexcept;

  const std::string path_;
  const int lock_;  // open file that carries the lock
  const pid_t owner_;
  std::uint64_t next_ = 0;
};

}  // namespace tw
