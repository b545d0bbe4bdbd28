// Opening, checking, sealing and bounding what the folder of compiled kernels holds.
#include "core/cuda/driver/kernel_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <random>
#include <vector>

#include "core/base/env.h"
#include "core/base/sha256.h"
#include "core/runtime/warning.h"

namespace tw::cuda {

namespace {

namespace fs = std::filesystem;

constexpr const char* kEnding = ".cubin";
constexpr std::uintmax_t kMostFolderBytes = 256 << 20;

struct OpenPlace {
  int descriptor;
  explicit OpenPlace(int descriptor) : descriptor(descriptor) {}
  ~OpenPlace() {
    if (descriptor >= 0) ::close(descriptor);
  }
  OpenPlace(const OpenPlace&) = delete;
  explicit operator bool() const { return descriptor >= 0; }
};

// Empty where there is none.
fs::path kernel_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value ? value : "");
  };
  if (const std::string named = env_text("CACHE_DIR"); !named.empty())
    return fs::path(named) / "kernels";
  if (const fs::path base = variable("XDG_CACHE_HOME"); !base.empty())
    return base / "tilewright" / "kernels";
  const fs::path home = variable("HOME");
  return home.empty() ? home : home / ".cache" / "tilewright" / "kernels";
}

// Whether none but this user and root can have written what is open.
bool is_trusted(int descriptor, mode_t kind) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0 || (status.st_mode & S_IFMT) != kind) return false;
  const bool own = status.st_uid == ::geteuid();
  const bool open_to_others = status.st_mode & (S_IWGRP | S_IWOTH);
  // A folder that an open umask made can be closed; what it holds is looked at file by file.
  if (open_to_others && own && kind == S_IFDIR) return ::fchmod(descriptor, S_IRWXU) == 0;
  return (own || status.st_uid == 0) && !open_to_others;
}

// The folder, where there is one that may be read from.
int open_folder(const fs::path& path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0 && errno != ELOOP && errno != ENOTDIR) return -1;
  if (folder >= 0 && is_trusted(folder, S_IFDIR)) return folder;
  if (folder >= 0) ::close(folder);
  warn_once("foreign kernel folder",
            "compiled kernels are not kept: " + path.string() +
                " is no folder of this user's; remove it, or set TILEWRIGHT_CACHE_DIR");
  return -1;
}

// Binds a cubin to what it was made from: one of other kernels in its place is noticed.
std::string seal_of(const std::string& key, std::string_view cubin) {
  return sha256((key + "\n").append(cubin));
}

std::string read_whole(int file) {
  std::string bytes;
  char piece[1 << 16];
  while (bytes.size() <= kMostFolderBytes) {
    const ssize_t got = ::read(file, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    bytes.append(piece, static_cast<std::size_t>(got));
  }
  return bytes;
}

bool write_whole(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// The oldest go first.
void bound_folder(const fs::path& folder) {
  std::error_code ignored;
  std::uintmax_t total = 0;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const bool kept = entry.path().filename().string().find(kEnding) != std::string::npos;
    if (!kept || entry.symlink_status(ignored).type() != fs::file_type::regular) continue;
    total += entry.file_size(ignored);
    files.emplace_back(entry.last_write_time(ignored), entry.path());
  }
  if (total <= kMostFolderBytes) return;
  std::sort(files.begin(), files.end());
  for (const auto& [time, path] : files) {
    if (total <= kMostFolderBytes / 2) return;
    total -= fs::file_size(path, ignored);
    fs::remove(path, ignored);
  }
}

// A name that nobody can have taken beforehand.
std::string unfinished_name(const std::string& name) {
  std::random_device random;
  return name + "." + std::to_string(random()) + std::to_string(random());
}

}  // namespace

std::string kept_kernel(const std::string& key) {
  const fs::path path = kernel_folder();
  const OpenPlace folder(path.empty() ? -1 : open_folder(path));
  if (!folder) return "";
  const std::string name = key + kEnding;
  const OpenPlace file(
      ::openat(folder.descriptor, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file && errno == ENOENT) return "";
  if (!file || !is_trusted(file.descriptor, S_IFREG)) {
    warn_once("foreign kernel",
              "a compiled kernel is no file of this user's alone and is compiled anew: " +
                  (path / name).string());
    return "";
  }
  const std::string kept = read_whole(file.descriptor);
  if (kept.size() > kSha256Digits) {
    std::string cubin = kept.substr(kSha256Digits);
    if (kept.starts_with(seal_of(key, cubin))) return cubin;
  }
  warn_once("damaged kernel",
            "a compiled kernel is damaged and is compiled anew: " + (path / name).string());
  return "";
}

void keep_kernel(const std::string& key, const std::string& cubin) {
  const fs::path path = kernel_folder();
  if (path.empty()) return;
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  ::mkdir(path.c_str(), S_IRWXU);
  const OpenPlace folder(open_folder(path));
  if (!folder) return;
  const std::string name = key + kEnding, unfinished = unfinished_name(name);
  const OpenPlace file(::openat(folder.descriptor, unfinished.c_str(),
                                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                S_IRUSR | S_IWUSR));
  if (!file) return;
  if (!write_whole(file.descriptor, seal_of(key, cubin) + cubin) ||
      ::renameat(folder.descriptor, unfinished.c_str(), folder.descriptor, name.c_str()) != 0)
    ::unlinkat(folder.descriptor, unfinished.c_str(), 0);
  bound_folder(path);
}

}  // namespace tw::cuda
