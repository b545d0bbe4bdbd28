// What the parts of the stand-in driver share: results, the lock, memory, streams, launches.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace emulated {

using Result = int;
using Address = unsigned long long;
constexpr Result kSuccess = 0, kInvalid = 1, kNoMemory = 2, kNoDevice = 101, kBadImage = 200,
                 kNotFound = 500, kNotReady = 600, kIllegalAddress = 700, kLaunchFailed = 719,
                 kNotInCapture = 900;

// A number in the environment.
std::int64_t setting(const char* name, std::int64_t otherwise);

// Guards all that follows: calls come from several threads.
extern std::mutex mutex;
// What went wrong last, for people.
extern std::string last_fault;
// What a kernel did that left the GPU unusable for this process: every later call says so.
extern Result lost;
// The GPU whose context this thread has.
int current_gpu();

// ---- memory ----

// Whole pages whose last byte is followed by one that nobody may touch.
struct Guarded {
  char* pages;
  std::size_t bytes;  // of pages, the guard included
};
char* allocate_guarded(std::size_t bytes, Guarded& out);

// The program itself cannot touch the GPU's memory: it is there while kernels and copies run.
class Opened {
 public:
  Opened();
  ~Opened();
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
};

enum class Place : std::uint8_t { device, pinned, pageable };
Place place_of(Address at);

// ---- streams ----

struct Stream;
using Work = std::function<Result()>;
enum class Kind : std::uint8_t { other, kernel, copy };
// Adds work that is done as late as the program can notice.
void enqueue(void* stream, Work work, Kind kind = Kind::other);
// Where a stream's work goes while it is captured; null: it runs.
std::vector<Work>*& captured_work(void* stream);
// Does all work of a stream, and of others what it waits for.
Result finish(void* stream);
Result finish_all();

// ---- launches ----

struct Dim {
  unsigned x, y, z;
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};
// With the layout of emulation.h.
struct Calls {
  void (*block_barrier)();
  void (*warp_barrier)(unsigned mask);
  void (*exchange)(unsigned mask, void* value, unsigned bytes, int source);
  void (*pause)();
};
struct ModuleState {
  Dim thread, block, block_size, grid;
  char* dynamic;
  const Calls* calls;
  char *shared_begin, *shared_end;
  std::uint64_t changes;
  bool (*settle)();
};
constexpr int kMostThreads = 1024;
Result run_grid(ModuleState& state, void (*kernel)(const void*), const LaunchConfig& config,
                const void* parameter);

}  // namespace emulated
