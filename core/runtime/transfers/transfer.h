// Copies that run beside the program: between files and memory, and between memories. Each returns
// at once; its memory must stay valid until the Future is done.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/runtime/device.h"
#include "core/runtime/transfers/job_queues.h"
#include "core/runtime/transfers/file.h"

namespace tw {

// The process's queues: read, write, copy, upload (to a device), download (from one), background.
JobQueues& transfers();

// Equal rows that follow one another in a file from `offset_bytes` on.
struct FileRows {
  std::int64_t offset_bytes, row_bytes, rows;
};

// Offsets and counts in bytes. Higher priority first. Raises ValueError for negative ones.
Future read_file(std::shared_ptr<SourceFile> file, std::int64_t offset, void* to,
                 std::int64_t bytes, int priority = 0);
Future write_file(std::string path, std::int64_t offset, const void* from, std::int64_t bytes,
                  int priority = 0);
// Within the CPU's memory or a device's, or between the two, behind what the calling thread asked
// of the device. The ranges must not overlap, and their blocks stay pinned until it is done.
Future copy_memory(const Place& to, const Place& from, std::int64_t bytes, int priority = 0);
// Rows at `indices`, in that order, one after another. Negative indices count from the end; raises
// IndexError for others outside the file. The future fails where the file changed since it was
// opened.
Future gather_file_rows(std::shared_ptr<SourceFile> file, FileRows layout,
                        std::vector<std::int64_t> indices, void* to, int priority = 0);

}  // namespace tw
