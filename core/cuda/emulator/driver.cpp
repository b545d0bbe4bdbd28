// A stand-in for the CUDA driver and for NVRTC, so that everything of core/cuda runs where there is
// no GPU: text is compiled by g++, blocks run one after another, and each thread of a block is a
// fiber. Work on a stream is done as late as the program can notice: when it waits. Two symbols of
// the environment: TW_EMULATED_GPUS (how many, 1) and TW_EMULATED_MEMORY (bytes of each, 4 GiB).
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Result = int;
using Address = unsigned long long;
constexpr Result kSuccess = 0, kInvalid = 1, kNoMemory = 2, kNoDevice = 101, kBadImage = 200,
                 kNotFound = 500, kLaunchFailed = 719;

struct Dim {
  unsigned x, y, z;
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

std::int64_t setting(const char* name, std::int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

// ---- memory: whole pages whose last byte is followed by one that nobody may touch ----

constexpr std::size_t kPage = 4096;

struct Guarded {
  char* pages;
  std::size_t bytes;  // of pages, the guard included
};
char* allocate_guarded(std::size_t bytes, Guarded& out) {
  const std::size_t whole = (bytes + kPage - 1) / kPage * kPage + kPage;
  void* pages = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  out = {static_cast<char*>(pages), whole};
  mprotect(out.pages + whole - kPage, kPage, PROT_NONE);
  char* const start = out.pages + (whole - kPage - bytes) / 256 * 256;
  std::memset(start, 0xCB, bytes < (64 << 20) ? bytes : 0);  // nobody may count on zeros
  return start;
}

std::mutex mutex;  // of all that follows: calls come from several threads
std::map<Address, std::pair<Guarded, std::size_t>> blocks;
std::size_t used_bytes = 0;

// The program itself cannot touch the GPU's memory: it is there while kernels and copies run.
class Opened {
 public:
  Opened() { protect(PROT_READ | PROT_WRITE); }
  ~Opened() { protect(PROT_NONE); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

 private:
  static void protect(int access) {
    for (const auto& [start, block] : blocks)
      mprotect(block.first.pages, block.first.bytes - kPage, access);
  }
};

// ---- fibers ----

// Saves the callee-saved registers on the stack, and goes on where another stack was left.
extern "C" void tw_switch(void** from, void* to);
#ifdef __x86_64__
asm(R"(
.text
.globl tw_switch
tw_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
#else
#error "the emulator's fibers are written for x86-64"
#endif

constexpr std::size_t kStackBytes = 128 << 10;
constexpr int kMostThreads = 1024, kWarp = 32;

enum class State : std::uint8_t { ready, at_block_barrier, at_warp_barrier, paused, done };

struct Fiber {
  void* stack_pointer;
  State state;
  bool polls;          // was paused, and has not been elsewhere since
  unsigned mask;       // of a warp barrier
  unsigned exchanges;  // counts, for the two slots
  char slots[2][16];
};

struct Block {
  ModuleState* module;
  void (*kernel)(const void*);
  const void* parameter;
  unsigned threads;
  unsigned running;
  void* scheduler;
  Fiber fibers[kMostThreads];
} block;

char* stacks = nullptr;

void yield() {
  Fiber& self = block.fibers[block.running];
  tw_switch(&self.stack_pointer, block.scheduler);
}
void start_fiber() {
  block.kernel(block.parameter);
  block.fibers[block.running].state = State::done;
  yield();
}

void block_barrier() {
  block.fibers[block.running].state = State::at_block_barrier;
  yield();
}
void warp_barrier(unsigned mask) {
  Fiber& self = block.fibers[block.running];
  self.state = State::at_warp_barrier;
  self.mask = mask;
  yield();
}
void exchange(unsigned mask, void* value, unsigned bytes, int source) {
  const unsigned here = block.running, lane = static_cast<unsigned>(source) % kWarp;
  const unsigned slot = block.fibers[here].exchanges++ & 1;
  std::memcpy(block.fibers[here].slots[slot], value, bytes);
  warp_barrier(mask);
  const unsigned from = here / kWarp * kWarp + lane;
  const bool gave = from < block.threads && (mask >> lane & 1) &&
                    block.fibers[from].exchanges >= block.fibers[here].exchanges;
  if (gave)
    std::memcpy(value, block.fibers[from].slots[slot], bytes);
  else
    std::memset(value, 0xCB, bytes);  // of a lane that took no part
}
// Until the next round: what it waits for is asked again then.
void pause() {
  block.fibers[block.running].state = State::paused;
  yield();
}
const Calls kCalls = {block_barrier, warp_barrier, exchange, pause};

// Lanes of a warp that wait for each other, once all that their mask names have come.
bool release_warp(unsigned first) {
  const unsigned last = std::min(first + kWarp, block.threads);
  bool released = false;
  for (unsigned i = first; i < last; ++i) {
    Fiber& fiber = block.fibers[i];
    if (fiber.state != State::at_warp_barrier) continue;
    bool all = true;
    for (unsigned k = first; k < last && all; ++k) {
      if (!(fiber.mask >> (k - first) & 1)) continue;
      const Fiber& other = block.fibers[k];
      all = other.state == State::done ||
            (other.state == State::at_warp_barrier && other.mask == fiber.mask);
    }
    if (!all) continue;
    const unsigned mask = fiber.mask;
    for (unsigned k = first; k < last; ++k)
      if ((mask >> (k - first) & 1) && block.fibers[k].state == State::at_warp_barrier)
        block.fibers[k].state = State::ready;
    released = true;
  }
  return released;
}

std::string last_fault;

// Lets a thread go on until it waits. Whether it did more than ask in vain what it asked before.
bool run_fiber(unsigned i, Dim size) {
  Fiber& fiber = block.fibers[i];
  block.running = i;
  block.module->thread = {i % size.x, i / size.x % size.y, i / size.x / size.y};
  tw_switch(&block.scheduler, fiber.stack_pointer);
  const bool in_vain = fiber.polls && fiber.state == State::paused;
  fiber.polls = fiber.state == State::paused;
  return !in_vain;
}

// Until each of a warp's threads has ended or waits for others. Whether any did something.
bool run_warp(unsigned first, unsigned round, Dim size) {
  const unsigned last = std::min(first + kWarp, block.threads);
  for (bool any = false;; any = true) {
    bool ran = false;
    for (unsigned n = first; n < last; ++n) {
      const unsigned i = round % 2 ? last - 1 - (n - first) : n;
      if (block.fibers[i].state == State::ready) ran |= run_fiber(i, size);
    }
    if (!release_warp(first)) return any || ran;
  }
}

// Warps run one after another, and their threads, until each waits: what one reads of another
// without a barrier between them is not there yet, or there too early, in every second round. The
// first round is number `round`.
bool run_block(unsigned round) {
  block.module->changes = 0;
  for (unsigned i = 0; i < block.threads; ++i) {
    Fiber& fiber = block.fibers[i];
    fiber.state = State::ready;
    fiber.exchanges = 0;
    fiber.polls = false;
    auto* top = reinterpret_cast<void**>(stacks + (i + 1) * kStackBytes);
    *--top = nullptr;  // a return address that nobody uses, and alignment
    *--top = reinterpret_cast<void*>(start_fiber);
    for (int k = 0; k < 6; ++k) *--top = nullptr;
    fiber.stack_pointer = top;
  }
  const Dim size = block.module->block_size;
  const unsigned warps = (block.threads + kWarp - 1) / kWarp;
  for (;; ++round) {
    const std::uint64_t changes = block.module->changes;
    bool ran = false;
    for (unsigned i = 0; i < block.threads; ++i)
      if (block.fibers[i].state == State::paused) block.fibers[i].state = State::ready;
    for (unsigned n = 0; n < warps; ++n)
      ran |= run_warp((round % 2 ? warps - 1 - n : n) * kWarp, round, size);
    unsigned done = 0, at_barrier = 0;
    for (unsigned i = 0; i < block.threads; ++i) {
      done += block.fibers[i].state == State::done;
      at_barrier += block.fibers[i].state == State::at_block_barrier;
    }
    if (done == block.threads) return true;
    if (at_barrier + done == block.threads) {
      for (unsigned i = 0; i < block.threads; ++i)
        if (block.fibers[i].state == State::at_block_barrier) block.fibers[i].state = State::ready;
    } else if (!ran && changes == block.module->changes) {
      // Copies and products that are under way end when nothing else can happen.
      if (block.module->settle && block.module->settle()) continue;
      last_fault = "threads wait for others that never come (a barrier in divergent code)";
      return false;
    }
  }
}

// ---- modules and launches ----

struct Module {
  void* library;
  ModuleState* state;
};
struct Function {
  Module* module;
  void (*kernel)(const void*);
  std::size_t parameter_bytes;
  unsigned shared_limit = 48 << 10;
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};

Result run_grid(const Function& function, const LaunchConfig& config, const void* parameter) {
  static Guarded dynamic{};
  static std::size_t dynamic_bytes = 0;
  static char* dynamic_start = nullptr;
  if (!stacks) {
    void* found = mmap(nullptr, kMostThreads * kStackBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) return kNoMemory;
    stacks = static_cast<char*>(found);
  }
  if (config.shared_bytes != dynamic_bytes || !dynamic_start) {
    if (dynamic_start) munmap(dynamic.pages, dynamic.bytes);
    // Aligned as the widest copies of a GPU want it.
    dynamic_bytes = config.shared_bytes;
    dynamic_start = allocate_guarded((dynamic_bytes + 1023) / 1024 * 1024, dynamic);
    dynamic_start =
        reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(dynamic_start) / 1024 * 1024);
  }
  ModuleState& state = *function.module->state;
  state.calls = &kCalls;
  state.grid = {config.grid[0], config.grid[1], config.grid[2]};
  state.block_size = {config.block[0], config.block[1], config.block[2]};
  state.dynamic = dynamic_start;
  block.module = &state;
  block.kernel = function.kernel;
  block.parameter = parameter;
  block.threads = config.block[0] * config.block[1] * config.block[2];
  for (unsigned z = 0; z < config.grid[2]; ++z)
    for (unsigned y = 0; y < config.grid[1]; ++y)
      for (unsigned x = 0; x < config.grid[0]; ++x) {
        state.block = {x, y, z};
        std::memset(state.shared_begin, 0xCB,
                    static_cast<std::size_t>(state.shared_end - state.shared_begin));
        std::memset(dynamic_start, 0xCB, dynamic_bytes);
        if (!run_block(x + y + z)) return kLaunchFailed;
      }
  return kSuccess;
}

// ---- streams: what was asked for, until somebody waits ----

struct Stream {
  std::vector<std::function<Result()>> waiting;
  Result fault = kSuccess;
};
std::vector<Stream*> streams;

Result finish(Stream& stream) {
  if (stream.waiting.empty()) return stream.fault;
  const Opened opened;
  for (auto& work : stream.waiting)
    if (!stream.fault) stream.fault = work();
  stream.waiting.clear();
  return stream.fault;
}
Result finish_all() {
  Result result = kSuccess;
  for (Stream* stream : streams)
    if (const Result own = finish(*stream)) result = own;
  return result;
}

bool is_device_memory(Address at) {
  const auto next = blocks.upper_bound(at);
  if (next == blocks.begin()) return false;
  const auto& [start, entry] = *std::prev(next);
  return at < start + entry.second;
}

struct Program {
  std::string name, text, log, code;
};

constexpr char kMagic[8] = {'t', 'w', 'e', 'm', 'u', '1', 0, 0};

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

}  // namespace

extern "C" {

Result cuInit(unsigned) { return kSuccess; }
Result cuDriverGetVersion(int* version) { return *version = 13000, kSuccess; }
Result cuDeviceGetCount(int* count) {
  *count = static_cast<int>(setting("TW_EMULATED_GPUS", 1));
  return kSuccess;
}
Result cuDeviceGet(int* device, int number) {
  if (number < 0 || number >= setting("TW_EMULATED_GPUS", 1)) return kNoDevice;
  return *device = number, kSuccess;
}
Result cuDeviceGetName(char* name, int length, int) {
  std::snprintf(name, static_cast<std::size_t>(length), "emulated GPU");
  return kSuccess;
}
Result cuDeviceGetAttribute(int* value, int what, int) {
  const std::map<int, int> values = {
      {75, static_cast<int>(setting("TW_EMULATED_CAPABILITY", 90)) / 10},
      {76, static_cast<int>(setting("TW_EMULATED_CAPABILITY", 90)) % 10},
      {16, 4},
      {97, 227 << 10},
      {38, 1 << 20}};
  const auto found = values.find(what);
  *value = found == values.end() ? 0 : found->second;
  return kSuccess;
}
Result cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = static_cast<std::size_t>(setting("TW_EMULATED_MEMORY", std::int64_t{4} << 30));
  return kSuccess;
}
Result cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(device) + 1);
  return kSuccess;
}
Result cuCtxSetCurrent(void*) { return kSuccess; }
Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(mutex);
  cuDeviceTotalMem_v2(total, 0);
  *free = *total - used_bytes;
  return kSuccess;
}

Result cuMemAlloc_v2(Address* at, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  std::size_t total = 0;
  cuDeviceTotalMem_v2(&total, 0);
  if (bytes == 0) return kInvalid;
  if (used_bytes + bytes > total) return kNoMemory;
  Guarded guarded;
  char* const start = allocate_guarded(bytes, guarded);
  if (!start) return kNoMemory;
  *at = reinterpret_cast<Address>(start);
  blocks[*at] = {guarded, bytes};
  mprotect(guarded.pages, guarded.bytes - kPage, PROT_NONE);
  used_bytes += bytes;
  return kSuccess;
}
Result cuMemFree_v2(Address at) {
  const std::lock_guard lock(mutex);
  const auto found = blocks.find(at);
  if (found == blocks.end()) return kInvalid;
  const Result result = finish_all();
  munmap(found->second.first.pages, found->second.first.bytes);
  used_bytes -= found->second.second;
  blocks.erase(found);
  return result;
}
Result cuMemHostAlloc(void** at, std::size_t bytes, unsigned) {
  return (*at = std::calloc(1, bytes)) ? kSuccess : kNoMemory;
}
Result cuMemFreeHost(void* at) { return std::free(at), kSuccess; }

Result cuStreamCreateWithPriority(void** stream, unsigned, int) {
  const std::lock_guard lock(mutex);
  streams.push_back(new Stream);
  *stream = streams.back();
  return kSuccess;
}
Result cuStreamSynchronize(void* stream) {
  const std::lock_guard lock(mutex);
  return finish(*static_cast<Stream*>(stream));
}
// Copies from or to memory that is not the GPU's are done when the call returns.
Result cuMemcpyAsync(Address to, Address from, std::size_t bytes, void* stream) {
  const std::lock_guard lock(mutex);
  Stream& queue = *static_cast<Stream*>(stream);
  const auto work = [to, from, bytes] {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return kSuccess;
  };
  if (is_device_memory(to) && is_device_memory(from)) {
    queue.waiting.push_back(work);
    return kSuccess;
  }
  const Result result = finish(queue);
  const Opened opened;
  return result ? result : work();
}

Result cuModuleLoadData(void** out, const void* image) {
  if (std::memcmp(image, kMagic, sizeof kMagic)) return kBadImage;
  std::uint64_t size;
  std::memcpy(&size, static_cast<const char*>(image) + sizeof kMagic, sizeof size);
  char path[] = "/tmp/tilewright-emulated-XXXXXX";
  const int file = mkstemp(path);
  const char* bytes = static_cast<const char*>(image) + sizeof kMagic + sizeof size;
  const bool written = file >= 0 && write(file, bytes, size) == static_cast<ssize_t>(size);
  close(file);
  void* const library = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(path);
  if (!library) return kBadImage;
  auto* state = static_cast<ModuleState*>(dlsym(library, "tw_module"));
  *out = new Module{library, state};
  return state ? kSuccess : kBadImage;
}
Result cuModuleGetFunction(void** out, void* module, const char* name) {
  auto* owner = static_cast<Module*>(module);
  void* const found = dlsym(owner->library, name);
  const void* const bytes = dlsym(owner->library, (std::string(name) + "_bytes").c_str());
  if (!found || !bytes) return kNotFound;
  *out = new Function{owner, reinterpret_cast<void (*)(const void*)>(found),
                      *static_cast<const unsigned*>(bytes)};
  return kSuccess;
}
Result cuFuncGetAttribute(int* value, int, void*) { return *value = 0, kSuccess; }
Result cuFuncSetAttribute(void* function, int what, int value) {
  if (what == 8 && value > 227 << 10) return kInvalid;
  if (what == 8) static_cast<Function*>(function)->shared_limit = static_cast<unsigned>(value);
  return kSuccess;
}
Result cuLaunchKernelEx(const LaunchConfig* config, void* function, void** parameters, void**) {
  const std::lock_guard lock(mutex);
  const Function& kernel = *static_cast<Function*>(function);
  const unsigned threads = config->block[0] * config->block[1] * config->block[2];
  const unsigned blocks_in_grid = config->grid[0] * config->grid[1] * config->grid[2];
  if (threads == 0 || threads > kMostThreads || blocks_in_grid == 0 || config->grid[1] > 65535 ||
      config->grid[2] > 65535 || config->shared_bytes > kernel.shared_limit)
    return kInvalid;
  // The driver copies parameters when it is called.
  std::vector<char> parameter(kernel.parameter_bytes);
  std::memcpy(parameter.data(), parameters[0], kernel.parameter_bytes);
  static_cast<Stream*>(config->stream)
      ->waiting.push_back([kernel, config = *config, parameter = std::move(parameter)] {
        return run_grid(kernel, config, parameter.data());
      });
  return kSuccess;
}
Result cuGetErrorName(Result result, const char** name) {
  *name = result == kNoMemory       ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == kLaunchFailed ? "CUDA_ERROR_LAUNCH_FAILED"
                                    : "CUDA_ERROR_UNKNOWN";
  return kSuccess;
}
Result cuGetErrorString(Result result, const char** text) {
  *text = result == kNoMemory       ? "out of memory"
          : result == kLaunchFailed ? last_fault.c_str()
                                    : "emulated failure";
  return kSuccess;
}

int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, 0; }
int nvrtcCreateProgram(void** program, const char* text, const char* name, int, const char* const*,
                       const char* const*) {
  *program = new Program{name ? name : "kernel", text, "", ""};
  return 0;
}
int nvrtcCompileProgram(void* program, int, const char* const*) {
  Program& p = *static_cast<Program*>(program);
  char folder[] = "/tmp/tilewright-emulated-XXXXXX";
  if (!mkdtemp(folder)) return 1;
  const std::string base = folder, source = base + "/kernel.cpp", library = base + "/kernel.so",
                    log = base + "/log";
  std::ofstream(source) << p.text;
  const char* compiler = std::getenv("CXX");
  const std::string command = std::string(compiler ? compiler : "g++") +
                              " " TW_EMULATION_FLAGS " -include " TW_EMULATION_HEADER
                              " -shared -o " +
                              library + " " + source + " 2> " + log;
  const int status = std::system(command.c_str());
  p.log = read_all(log);
  p.code = status ? "" : read_all(library);
  const std::string clean = "rm -rf " + base;
  if (std::system(clean.c_str())) return 1;
  return status ? 6 : 0;
}
int nvrtcGetProgramLogSize(void* program, std::size_t* size) {
  return *size = static_cast<Program*>(program)->log.size() + 1, 0;
}
int nvrtcGetProgramLog(void* program, char* log) {
  return std::strcpy(log, static_cast<Program*>(program)->log.c_str()), 0;
}
int nvrtcGetCUBINSize(void* program, std::size_t* size) {
  return *size = sizeof kMagic + 8 + static_cast<Program*>(program)->code.size(), 0;
}
int nvrtcGetCUBIN(void* program, char* code) {
  const Program& p = *static_cast<Program*>(program);
  const std::uint64_t size = p.code.size();
  std::memcpy(code, kMagic, sizeof kMagic);
  std::memcpy(code + sizeof kMagic, &size, sizeof size);
  std::memcpy(code + sizeof kMagic + 8, p.code.data(), p.code.size());
  return 0;
}
int nvrtcDestroyProgram(void** program) {
  return delete static_cast<Program*>(*program), *program = nullptr, 0;
}
const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_COMPILATION"; }

}  // extern "C"
