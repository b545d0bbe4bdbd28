#include "core/memory/spill.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <vector>

#include "core/base/error.h"
#include "core/base/fault.h"
#include "core/base/fork.h"

namespace tw {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "tilewright-spill-";
constexpr const char* kLockName = "/lock";

struct File {
  int descriptor;
  explicit File(int descriptor) : descriptor(descriptor) {}
  ~File() {
    if (descriptor >= 0) close(descriptor);
  }
  File(const File&) = delete;
};

// Folders of this process that still exist, for its exit.
struct Folders {
  std::mutex mutex;
  std::vector<SpillFolder*> list;
};
Folders& folders() {
  static Folders* const instance = new Folders;
  return *instance;
}
const AtFork guarded(
    ForkOrder::spill_folders, [] { folders().mutex.lock(); }, [] { folders().mutex.unlock(); });

void remove_folder(const std::string& path) noexcept {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

// In a folder that all users may write to, a name says nothing of whose it is.
bool is_own_folder(const fs::path& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

// A lock that can be taken belongs to nobody alive. One that cannot be opened was not made yet or
// is not ours to judge.
void remove_if_stale(const fs::path& path) {
  const File lock(open((path.string() + kLockName).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (lock.descriptor >= 0 && flock(lock.descriptor, LOCK_EX | LOCK_NB) == 0)
    remove_folder(path.string());
}

void remove_stale(const std::string& parent) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored))
    if (entry.path().filename().string().starts_with(kPrefix) && is_own_folder(entry.path()))
      remove_if_stale(entry.path());
}

// The open, locked file, or -1 where another process found the new folder before it was locked and
// removed it.
int take_lock(const std::string& folder) {
  const int lock =
      open((folder + kLockName).c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  struct stat status;
  if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0 && fstat(lock, &status) == 0 &&
      status.st_nlink > 0)
    return lock;
  if (lock >= 0) close(lock);
  return -1;
}

[[noreturn]] void fail_at(const char* what, const std::string& path, int error,
                          const char* remedy) {
  fail(ErrorKind::os, "pool: ", what, " ", path, " failed: ", std::strerror(error), remedy);
}

bool write_all(int file, const char* from, std::size_t bytes) {
  while (bytes > 0) {
    if (fault_point()) {
      errno = ENOSPC;
      return false;
    }
    const ssize_t written = ::write(file, from, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    from += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

// Bytes read before the end of the file or an error (errno is 0 at the end).
std::size_t read_all(int file, char* to, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    if (fault_point()) {
      errno = EIO;
      return done;
    }
    const ssize_t got = ::read(file, to + done, bytes - done);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = 0;
    if (got <= 0) return done;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

}  // namespace

std::shared_ptr<SpillFolder> SpillFolder::create(const std::string& parent) {
  remove_stale(parent);
  for (int attempt = 0;; ++attempt) {
    std::string path = parent + "/" + kPrefix + std::to_string(getpid()) + "-XXXXXX";
    if (fault_point() || !mkdtemp(path.data()))
      fail_at("making a folder in", parent, errno ? errno : EIO, "; choose another spill_dir");
    const int lock = take_lock(path);
    if (lock >= 0) return std::shared_ptr<SpillFolder>(new SpillFolder(path, lock));
    const int error = errno;
    remove_folder(path);
    if (attempt == 8) fail_at("locking", path, error, "; choose another spill_dir");
  }
}

SpillFolder::SpillFolder(std::string path, int lock)
    : path_(std::move(path)), lock_(lock), owner_(getpid()) {
  std::lock_guard guard(folders().mutex);
  static const bool at_exit = std::atexit(clear_all) == 0;
  static_cast<void>(at_exit);
  folders().list.push_back(this);
}

SpillFolder::~SpillFolder() {
  std::lock_guard guard(folders().mutex);
  std::erase(folders().list, this);
  clear();
  close(lock_);
}

bool SpillFolder::is_own() const { return owner_ == getpid(); }

void SpillFolder::clear() const noexcept {
  if (is_own()) remove_folder(path_);
}

void SpillFolder::clear_all() noexcept {
  std::lock_guard guard(folders().mutex);
  for (const SpillFolder* folder : folders().list) folder->clear();
}

std::string SpillFolder::path_of(std::uint64_t number) const {
  return path_ + "/block-" + std::to_string(number) + ".bin";
}

std::uint64_t SpillFolder::write(const void* from, std::size_t bytes) {
  constexpr const char* kRemedy =
      "; the values are still in memory. Free some space, raise quota_bytes or choose another "
      "spill_dir";
  const std::uint64_t number = next_++;
  const std::string path = path_of(number);
  const bool refused = fault_point();
  const File file(refused ? -1 : open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.descriptor < 0) fail_at("making", path, refused ? EMFILE : errno, kRemedy);
  if (write_all(file.descriptor, static_cast<const char*>(from), bytes)) return number;
  const int error = errno;
  remove(number);
  fail_at("writing", path, error, kRemedy);
}

void SpillFolder::read(std::uint64_t number, void* to, std::size_t bytes) const {
  const std::string path = path_of(number);
  const bool refused = fault_point();
  const File file(refused ? -1 : open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (file.descriptor < 0)
    fail_at("bringing back", path, refused ? EMFILE : errno,
            "; the values of the tensor that was there cannot be had without it");
  const std::size_t got = read_all(file.descriptor, static_cast<char*>(to), bytes);
  if (got == bytes) return;
  if (errno) fail_at("reading", path, errno, "; the values of the tensor that is there are lost");
  fail(ErrorKind::os, "pool: the spill file ", path, " has ", got, " bytes where ", bytes,
       " were written: something else shortened it, and the values of the tensor that was there "
       "are lost");
}

void SpillFolder::remove(std::uint64_t number) const noexcept {
  if (is_own()) unlink(path_of(number).c_str());
}

}  // namespace tw
