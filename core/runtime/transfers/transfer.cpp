// Each transfer is one job of the process's queues.
#include "core/runtime/transfers/transfer.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/memory/background_work.h"
#include "core/memory/block.h"
#include "core/runtime/mode_changes.h"
#include "core/runtime/tasks/task.h"

namespace tw {

namespace {

// Two reads keep a disk busy while a third would take processors from the kernels; one write or
// copy at a time already fills a bus.
constexpr int kReads = 2, kWrites = 1, kCopies = 1, kBackground = 1;
// One fills the pinned memory that the next passes through while the bus is at work.
constexpr int kUploads = 2, kDownloads = 2;
// As long as a look at cancellation may take.
constexpr std::int64_t kPieceBytes = 8 << 20;

void check_range(const char* op, std::int64_t offset, std::int64_t bytes) {
  if (offset < 0) fail(ErrorKind::value, op, ": offset_bytes must be at least 0, got ", offset);
  if (bytes < 0 || offset > INT64_MAX - bytes)
    fail(ErrorKind::value, op, ": ", bytes, " bytes at offset ", offset, " are beyond any file");
}

Future submit(const char* queue, JobWork work, int priority) {
  return transfers().submit(queue, std::move(work), priority, current_task);
}

// The submitter's streams on devices, for a job of its own.
class StreamsGuard {
 public:
  explicit StreamsGuard(const void* streams) : before_(device_modes.taken()) {
    device_modes.put(streams);
  }
  ~StreamsGuard() { device_modes.put(before_.get()); }
  StreamsGuard(const StreamsGuard&) = delete;
  StreamsGuard& operator=(const StreamsGuard&) = delete;

 private:
  const std::shared_ptr<const void> before_;
};

void move_piece(const Device* device, Place to, Place from, std::int64_t at, std::int64_t bytes) {
  to.data = static_cast<char*>(to.data) + at;
  from.data = static_cast<char*>(from.data) + at;
  const Device& mover = device ? *device : cpu_device;
  const auto size = static_cast<std::size_t>(bytes);
  if (mover.move)
    mover.move(mover, to, from, size, true);
  else
    mover.copy(mover, to.data, from.data, size);
}

struct Row {
  std::int64_t index, place;  // in the file, in memory
  bool operator<(const Row& other) const { return index < other.index; }
};

std::vector<Row> rows_in_file_order(const std::vector<std::int64_t>& indices) {
  std::vector<Row> rows;
  rows.reserve(indices.size());
  for (std::int64_t index : indices) rows.push_back({index, std::ssize(rows)});
  if (!std::is_sorted(rows.begin(), rows.end())) std::sort(rows.begin(), rows.end());
  return rows;
}

// Memory of the rows [begin, end), which follow one another in the file; neighbours become one.
void collect_pieces(const Row* begin, const Row* end, std::int64_t row_bytes, char* to,
                    std::vector<iovec>& pieces) {
  pieces.clear();
  for (const Row* row = begin; row != end; ++row) {
    char* place = to + row->place * row_bytes;
    if (!pieces.empty() &&
        static_cast<char*>(pieces.back().iov_base) + pieces.back().iov_len == place)
      pieces.back().iov_len += static_cast<std::size_t>(row_bytes);
    else
      pieces.push_back({place, static_cast<std::size_t>(row_bytes)});
  }
}

// Rows that follow one another in the file.
struct Run {
  const Row *begin, *end;
  std::int64_t offset, bytes;
};

std::vector<Run> runs_of(const std::vector<Row>& rows, const FileRows& layout) {
  std::vector<Run> runs;
  const Row* const end = rows.data() + rows.size();
  for (const Row* first = rows.data(); first != end;) {
    const Row* last = first + 1;
    while (last != end && last->index == last[-1].index + 1) ++last;
    runs.push_back({first, last, layout.offset_bytes + first->index * layout.row_bytes,
                    (last - first) * layout.row_bytes});
    first = last;
  }
  return runs;
}

// In file order, so that disks go forward, with one call for a run. A disk that knows all runs
// before the first is waited for fetches them at the same time: 64 rows of 3 KiB took a quarter of
// the time. From memory, telling it would cost a tenth, so the first run says whether to.
void gather(SourceFile& file, const FileRows& layout, const std::vector<std::int64_t>& indices,
            char* to, const JobControl& control) {
  if (layout.row_bytes == 0) return;
  const std::vector<Row> rows = rows_in_file_order(indices);
  const std::vector<Run> runs = runs_of(rows, layout);
  if (runs.size() > 1 && !file.in_memory(runs[0].offset))
    for (const Run& run : runs) file.announce(run.offset, run.bytes);
  std::vector<iovec> pieces;
  for (const Run& run : runs) {
    control.stop_if_cancelled();
    collect_pieces(run.begin, run.end, layout.row_bytes, to, pieces);
    if (pieces.size() == 1)
      file.read(run.offset, pieces[0].iov_base, run.bytes, control);
    else
      file.read_pieces(run.offset, pieces);
  }
  file.refuse_change();
}

void check_indices(std::vector<std::int64_t>& indices, std::int64_t rows) {
  for (std::int64_t& index : indices) {
    if (index < -rows || index >= rows)
      fail(ErrorKind::index, "gather: index ", index, " is out of range for ", rows, " rows");
    if (index < 0) index += rows;
  }
}

// For no task: the memory it serves belongs to all.
void run_beside(void (*job)(void*), void* argument) {
  const auto work = [job, argument](const JobControl&) {
    job(argument);
    return std::int64_t{0};
  };
  transfers().submit("background", work, 0, 0);
}

[[maybe_unused]] const bool background_installed = (run_in_background = run_beside, true);

}  // namespace

JobQueues& transfers() {
  static JobQueues& queues = []() -> JobQueues& {
    JobQueues& created = job_queues();
    created.add_queue("read", kReads);
    created.add_queue("write", kWrites);
    created.add_queue("copy", kCopies);
    created.add_queue("upload", kUploads);
    created.add_queue("download", kDownloads);
    created.add_queue("background", kBackground);
    return created;
  }();
  return queues;
}

Future read_file(std::shared_ptr<SourceFile> file, std::int64_t offset, void* to,
                 std::int64_t bytes, int priority) {
  check_range("read", offset, bytes);
  auto work = [file = std::move(file), offset, to, bytes](const JobControl& control) {
    file->read(offset, to, bytes, control);
    return bytes;
  };
  return submit("read", std::move(work), priority);
}

Future write_file(std::string path, std::int64_t offset, const void* from, std::int64_t bytes,
                  int priority) {
  check_range("write", offset, bytes);
  auto work = [path = std::move(path), offset, from, bytes](const JobControl& control) {
    write_to_file(path, offset, from, bytes, control);
    return bytes;
  };
  return submit("write", std::move(work), priority);
}

Future copy_memory(const Place& to, const Place& from, std::int64_t bytes, int priority) {
  const Device* const device = from.on_device ? from.on_device : to.on_device;
  auto work = [to, from, bytes, device, streams = device_modes.taken()](const JobControl& control) {
    const StreamsGuard chosen(streams.get());
    for (std::int64_t at = 0; at < bytes; at += kPieceBytes) {
      control.stop_if_cancelled();
      move_piece(device, to, from, at, std::min(bytes - at, kPieceBytes));
    }
    // What goes on by itself has to be there.
    if (device) device->synchronize(*device);
    if (to.on_device && to.block) {
      to.block->source->pin(*to.block);
      to.block->source->unpin(*to.block);
    }
    return bytes;
  };
  const char* const queue = !device || (from.on_device && to.on_device) ? "copy"
                            : to.on_device                              ? "upload"
                                                                        : "download";
  return submit(queue, std::move(work), priority);
}

Future gather_file_rows(std::shared_ptr<SourceFile> file, FileRows layout,
                        std::vector<std::int64_t> indices, void* to, int priority) {
  check_indices(indices, layout.rows);
  auto work = [file = std::move(file), layout, indices = std::move(indices),
               to](const JobControl& control) {
    gather(*file, layout, indices, static_cast<char*>(to), control);
    return std::ssize(indices) * layout.row_bytes;
  };
  return submit("read", std::move(work), priority);
}

}  // namespace tw
