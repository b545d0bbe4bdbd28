// System calls go on after interruptions and partial results; every other outcome is an error with
// the path, the place and both counts.
#include "core/runtime/transfers/file.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "core/base/error.h"
#include "core/base/fault.h"

namespace tw {

namespace {

// Long transfers look at cancellation between pieces of this size: about a millisecond each.
constexpr std::int64_t kPieceBytes = 8 << 20;

[[noreturn]] void fail_system(const std::string& fact, const std::string& path) {
  const int code = errno;
  throw Error(SystemFault{code, fact + ": " + std::generic_category().message(code), path});
}

std::string place(const char* what, std::int64_t wanted, std::int64_t offset, std::int64_t got) {
  return std::string(what) + ": " + std::to_string(got) + " of " + std::to_string(wanted) +
         " bytes at offset " + std::to_string(offset);
}

// Repeats a system call that a signal interrupted.
template <class Call> auto uninterrupted(Call&& call) {
  decltype(call()) result = -1;
  if (fault_point()) {
    errno = EIO;
    return result;
  }
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

// O_NONBLOCK: opening a pipe that nobody holds would block for ever; plain files do not notice.
int open_file(const std::string& path, int flags) {
  return uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0666); });
}

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

void drop_filled(std::vector<iovec>& pieces, std::size_t& first, std::size_t filled) {
  while (filled > 0) {
    iovec& piece = pieces[first];
    const std::size_t part = std::min(filled, piece.iov_len);
    piece.iov_base = static_cast<char*>(piece.iov_base) + part;
    piece.iov_len -= part;
    filled -= part;
    if (piece.iov_len == 0) ++first;
  }
}

}  // namespace

SourceFile::~SourceFile() {
  const Opened* opened = opened_.load(std::memory_order_acquire);
  if (!opened) return;
  ::close(opened->descriptor);
  delete opened;
}

const SourceFile::Opened* SourceFile::open_now() const {
  Descriptor descriptor(open_file(path_, O_RDONLY));
  struct stat status;
  if (descriptor.get() < 0 || ::fstat(descriptor.get(), &status) < 0) fail_system("read", path_);
  if (S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    fail_system("read", path_);
  }
  return new Opened{descriptor.release(), status.st_size, status.st_mtim.tv_sec,
                    status.st_mtim.tv_nsec};
}

// Of several threads that open it at once, one wins; the others close theirs. A lock could be left
// held in a forked child.
const SourceFile::Opened& SourceFile::opened() {
  const Opened* current = opened_.load(std::memory_order_acquire);
  if (current) return *current;
  const Opened* mine = open_now();
  if (opened_.compare_exchange_strong(current, mine, std::memory_order_acq_rel)) return *mine;
  ::close(mine->descriptor);
  delete mine;
  return *current;
}

std::int64_t SourceFile::size_bytes() { return opened().size_bytes; }

void SourceFile::refuse_end(std::int64_t offset, std::int64_t wanted, std::int64_t got) {
  fail(ErrorKind::os, place("read: the file ends early", wanted, offset, got), ": '", path_, "'");
}

void SourceFile::read(std::int64_t offset, void* to, std::int64_t bytes,
                      const JobControl& control) {
  const int descriptor = opened().descriptor;
  for (std::int64_t got = 0; got < bytes;) {
    control.stop_if_cancelled();
    const auto piece = static_cast<std::size_t>(std::min(bytes - got, kPieceBytes));
    const ssize_t part = uninterrupted(
        [&] { return ::pread(descriptor, static_cast<char*>(to) + got, piece, offset + got); });
    if (part < 0) fail_system(place("read", bytes, offset, got), path_);
    if (part == 0) refuse_end(offset, bytes, got);
    got += part;
  }
}

void SourceFile::read_pieces(std::int64_t offset, std::vector<iovec>& pieces) {
  const int descriptor = opened().descriptor;
  std::int64_t wanted = 0, got = 0;
  for (const iovec& piece : pieces) wanted += static_cast<std::int64_t>(piece.iov_len);
  for (std::size_t first = 0; first < pieces.size();) {
    const auto count = static_cast<int>(std::min<std::size_t>(pieces.size() - first, IOV_MAX));
    const ssize_t part = uninterrupted(
        [&] { return ::preadv(descriptor, pieces.data() + first, count, offset + got); });
    if (part < 0) fail_system(place("read", wanted, offset, got), path_);
    if (part == 0) refuse_end(offset, wanted, got);
    got += part;
    drop_filled(pieces, first, static_cast<std::size_t>(part));
  }
}

bool SourceFile::in_memory(std::int64_t offset) {
#ifdef RWF_NOWAIT
  char byte;
  const iovec piece = {&byte, 1};
  return ::preadv2(opened().descriptor, &piece, 1, offset, RWF_NOWAIT) >= 0;
#else
  static_cast<void>(offset);
  return true;
#endif
}

// Advice: where the system does not take it, reading still works.
void SourceFile::announce(std::int64_t offset, std::int64_t bytes) {
#ifdef POSIX_FADV_WILLNEED
  static_cast<void>(::posix_fadvise(opened().descriptor, offset, bytes, POSIX_FADV_WILLNEED));
#else
  static_cast<void>(offset), static_cast<void>(bytes);
#endif
}

// The kernel sets the time of change before it stores new bytes, so a look after reading suffices.
void SourceFile::refuse_change() {
  const Opened& then = opened();
  struct stat now;
  if (::fstat(then.descriptor, &now) < 0) fail_system("read", path_);
  if (now.st_size != then.size_bytes)
    fail(ErrorKind::os, "read: the file had ", then.size_bytes, " bytes when opened and has ",
         now.st_size, " now: '", path_, "'; open it anew");
  if (now.st_mtim.tv_sec != then.changed_s || now.st_mtim.tv_nsec != then.changed_ns)
    fail(ErrorKind::os, "read: the file was written to since it was opened: '", path_,
         "'; open it anew");
}

void write_to_file(const std::string& path, std::int64_t offset, const void* from,
                   std::int64_t bytes, const JobControl& control) {
  control.stop_if_cancelled();
  Descriptor file(open_file(path, O_WRONLY | O_CREAT));
  if (file.get() < 0) fail_system("write", path);
  for (std::int64_t put = 0; put < bytes;) {
    control.stop_if_cancelled();
    const auto piece = static_cast<std::size_t>(std::min(bytes - put, kPieceBytes));
    const ssize_t part = uninterrupted([&] {
      return ::pwrite(file.get(), static_cast<const char*>(from) + put, piece, offset + put);
    });
    if (part < 0) fail_system(place("write", bytes, offset, put), path);
    put += part;
  }
  // Network file systems tell of a full disk only here.
  if (::close(file.release()) < 0 && errno != EINTR) fail_system("write", path);
}

}  // namespace tw
