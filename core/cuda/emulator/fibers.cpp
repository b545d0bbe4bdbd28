// How the stand-in driver runs a grid: blocks one after another, each thread of a block a fiber
// that is switched where it waits for others.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "state.h"

namespace emulated {

namespace {

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
constexpr int kWarp = 32;

enum class State : std::uint8_t { ready, at_block_barrier, at_warp_barrier, paused, done };

struct Fiber {
  void* stack_pointer;
  State state;
  bool polls;          // was paused, and has not been elsewhere since
  unsigned mask;       // of a warp barrier
  unsigned exchanges;  // counts, for the two slots
  char slots[2][16];
};

struct ThreadBlock {
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
      // Copies and products that are in flight end when nothing else can happen.
      if (block.module->settle && block.module->settle()) continue;
      last_fault = "threads wait for others that never come (a barrier in divergent code)";
      return false;
    }
  }
}

}  // namespace

Result run_grid(ModuleState& state, void (*kernel)(const void*), const LaunchConfig& config,
                const void* parameter) {
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
  state.calls = &kCalls;
  state.grid = {config.grid[0], config.grid[1], config.grid[2]};
  state.block_size = {config.block[0], config.block[1], config.block[2]};
  state.dynamic = dynamic_start;
  block.module = &state;
  block.kernel = kernel;
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

}  // namespace emulated
