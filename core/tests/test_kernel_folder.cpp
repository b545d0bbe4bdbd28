// Digests, and the folder of compiled kernels: whose files are read, and how they are written.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/sha256.h"
#include "core/cuda/driver/kernel_folder.h"
#include "core/runtime/warning.h"
#include "core/tests/check.h"

namespace tw {

namespace {

namespace fs = std::filesystem;

// A cache of its own while it lives.
struct Cache {
  std::string path = "/tmp/tilewright-kernels-XXXXXX";
  fs::path kernels;
  Cache() {
    CHECK(mkdtemp(path.data()));
    kernels = fs::path(path) / "kernels";
    setenv("TILEWRIGHT_CACHE_DIR", path.c_str(), 1);
    set_warning_sink([](const std::string&) {});
  }
  ~Cache() {
    unsetenv("TILEWRIGHT_CACHE_DIR");
    fs::remove_all(path);
  }
};

const std::string kKey(64, 'a'), kOtherKey(64, 'b'), kCubin = "instructions of a GPU";

mode_t mode_of(const fs::path& path) {
  struct stat status;
  return ::lstat(path.c_str(), &status) ? 0 : status.st_mode & 0777;
}

std::string bytes_of(const fs::path& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

}  // namespace

TW_TEST(sha256_gives_the_digests_of_the_standard) {
  CHECK_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK_EQ(sha256(std::string(1000000, 'a')),
           "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TW_TEST(kernels_are_kept_for_this_user_alone) {
  const Cache cache;
  CHECK_EQ(cuda::kept_kernel(kKey), "");
  cuda::keep_kernel(kKey, kCubin);
  CHECK_EQ(cuda::kept_kernel(kKey), kCubin);
  CHECK_EQ(cuda::kept_kernel(kOtherKey), "");
  CHECK_EQ(mode_of(cache.kernels), 0700u);
  CHECK_EQ(mode_of(cache.kernels / (kKey + ".cubin")), 0600u);
  CHECK_EQ(std::distance(fs::directory_iterator(cache.kernels), fs::directory_iterator()), 1);
}

TW_TEST(kernels_that_were_changed_or_exchanged_are_not_read) {
  const Cache cache;
  cuda::keep_kernel(kKey, kCubin);
  const fs::path kept = cache.kernels / (kKey + ".cubin");
  fs::copy(kept, cache.kernels / (kOtherKey + ".cubin"));
  CHECK_EQ(cuda::kept_kernel(kOtherKey), "");  // of other sources
  const std::string bytes = bytes_of(kept);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] ^= 1;
    std::ofstream(kept, std::ios::binary) << changed;
    CHECK_EQ(cuda::kept_kernel(kKey), "");
    std::ofstream(kept, std::ios::binary) << bytes.substr(0, i);
    CHECK_EQ(cuda::kept_kernel(kKey), "");
  }
  std::ofstream(kept, std::ios::binary) << bytes;
  CHECK_EQ(cuda::kept_kernel(kKey), kCubin);
}

TW_TEST(kernels_that_others_could_have_written_are_not_read) {
  const Cache cache;
  cuda::keep_kernel(kKey, kCubin);
  const fs::path kept = cache.kernels / (kKey + ".cubin");
  for (const mode_t mode : {0620, 0602, 0666}) {
    CHECK_EQ(::chmod(kept.c_str(), mode), 0);
    CHECK_EQ(cuda::kept_kernel(kKey), "");
  }
  cuda::keep_kernel(kKey, kCubin);  // in its place
  CHECK_EQ(cuda::kept_kernel(kKey), kCubin);
  // A folder that was made by an open umask is closed.
  CHECK_EQ(::chmod(cache.kernels.c_str(), 0777), 0);
  CHECK_EQ(cuda::kept_kernel(kKey), kCubin);
  CHECK_EQ(mode_of(cache.kernels), 0700u);
  if (::geteuid() != 0) return;
  CHECK_EQ(::chown(kept.c_str(), 12345, 12345), 0);
  CHECK_EQ(cuda::kept_kernel(kKey), "");
  cuda::keep_kernel(kKey, kCubin);
  CHECK_EQ(::chown(cache.kernels.c_str(), 12345, 12345), 0);
  CHECK_EQ(cuda::kept_kernel(kKey), "");
}

TW_TEST(kernels_are_neither_read_nor_written_through_links) {
  const Cache cache;
  const fs::path victim = fs::path(cache.path) / "victim", moved = fs::path(cache.path) / "moved";
  std::ofstream(victim) << "precious";
  cuda::keep_kernel(kKey, kCubin);
  const fs::path kept = cache.kernels / (kKey + ".cubin");
  fs::rename(kept, moved);
  fs::create_symlink(moved, kept);
  CHECK_EQ(cuda::kept_kernel(kKey), "");
  fs::remove(kept);
  fs::create_symlink(victim, kept);
  cuda::keep_kernel(kKey, kCubin);
  CHECK_EQ(bytes_of(victim), "precious");
  CHECK(fs::is_regular_file(fs::symlink_status(kept)));
  CHECK_EQ(cuda::kept_kernel(kKey), kCubin);
  const fs::path elsewhere = fs::path(cache.path) / "elsewhere";
  fs::rename(cache.kernels, elsewhere);
  fs::create_symlink(elsewhere, cache.kernels);
  CHECK_EQ(cuda::kept_kernel(kKey), "");
  cuda::keep_kernel(kOtherKey, kCubin);
  CHECK(!fs::exists(elsewhere / (kOtherKey + ".cubin")));
}

TW_TEST(kernels_whose_folder_cannot_be_had_are_not_kept) {
  const Cache cache;
  std::ofstream(cache.kernels) << "a file in the place of the folder";
  cuda::keep_kernel(kKey, kCubin);
  CHECK_EQ(cuda::kept_kernel(kKey), "");
  CHECK_EQ(bytes_of(cache.kernels), "a file in the place of the folder");
}

}  // namespace tw
