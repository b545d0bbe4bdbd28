// Files as transfers use them: whole reads and writes or an error that says how far they came.
#pragma once
#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core/runtime/transfers/job_queues.h"

namespace tw {

// A file to read from, opened on first use by whatever thread that is. Thread-safe. Once open it
// stays readable when its name is removed.
class SourceFile {
 public:
  explicit SourceFile(std::string path) : path_(std::move(path)) {}
  ~SourceFile();
  SourceFile(const SourceFile&) = delete;
  const std::string& path() const { return path_; }
  // When opened.
  std::int64_t size_bytes();
  // Fills `bytes` bytes from `offset` on.
  void read(std::int64_t offset, void* to, std::int64_t bytes, const JobControl& control);
  // Fills the pieces in turn from `offset` on; they are used up.
  void read_pieces(std::int64_t offset, std::vector<iovec>& pieces);
  // Whether the byte at `offset` could be read without waiting for a disk.
  bool in_memory(std::int64_t offset);
  // Lets the system fetch bytes that will be read soon.
  void announce(std::int64_t offset, std::int64_t bytes);
  // Raises OSError where the file has been written to or cut since it was opened.
  void refuse_change();

 private:
  struct Opened {
    int descriptor;
    std::int64_t size_bytes, changed_s, changed_ns;
  };
  const Opened& opened();
  const Opened* open_now() const;
  void refuse_end(std::int64_t offset, std::int64_t wanted, std::int64_t got);

  const std::string path_;
  std::atomic<const Opened*> opened_{nullptr};
};

// Writes at `offset`; creates the file, and keeps what it holds elsewhere.
void write_to_file(const std::string& path, std::int64_t offset, const void* from,
                   std::int64_t bytes, const JobControl& control);

}  // namespace tw
