// Each transfer is one job of the process's queues.
#include "core/runtime/transfer.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/memory/background.h"
#include "core/runtime/task.h"

namespace tw {

namespace {

// Two reads keep a disk busy while a third would take processors from the kernels; one write or
// copy at a time already fills a bus.
constexpr int kReads = 2, kWrites = 1, kCopies = 1, kBackground = 1;
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

Future copy_memory(const Device& device, void* to, const void* from, std::int64_t bytes,
                   int priority) {
  auto work = [&device, to, from, bytes](const JobControl& control) {
    for (std::int64_t at = 0; at < bytes; at += kPieceBytes) {
      control.stop_if_cancelled();
      device.copy(device, static_cast<char*>(to) + at, static_cast<const char*>(from) + at,
                  static_cast<std::size_t>(std::min(bytes - at, kPieceBytes)));
    }
    return bytes;
  };
  return submit("copy", std::move(work), priority);
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
