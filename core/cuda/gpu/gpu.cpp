#include "core/cuda/gpu/gpu.h"

#include <algorithm>
#include <memory>

#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/fault.h"
#include "core/cuda/driver/compiler.h"
#include "core/cuda/gpu/graph.h"
#include "core/cuda/memory/pinned.h"
#include "core/runtime/launch.h"
#include "core/runtime/tasks/task.h"

namespace tw::cuda {

// ---- memory between launches ----

void* GpuPool::allocate(std::size_t bytes) {
  if (recording) return recording->memory->allocate(bytes);
  Block* const block = blocks_.allocate(bytes);
  const std::lock_guard lock(mutex_);
  held_[block->data] = block;
  return block->data;
}

void GpuPool::release(void* memory, std::size_t bytes) noexcept {
  if (recording) return recording->memory->release(memory, bytes);
  Block* block;
  {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(memory);
    block = found->second;
    held_.erase(found);
  }
  blocks_.release(block);
}

// ---- GPUs ----

namespace {

constexpr int kOldestCapability = 80;

std::vector<void (*)(const Fault&)>& fault_reports() {
  static auto* const reports = new std::vector<void (*)(const Fault&)>;
  return *reports;
}

Gpu& gpu_of(const Device& device) { return const_cast<Gpu&>(static_cast<const Gpu&>(device)); }

}  // namespace

std::int32_t register_fault(void (*raise)(const Fault& fault)) {
  fault_reports().push_back(raise);
  return static_cast<std::int32_t>(fault_reports().size());
}

int Gpu::count() {
  if (!driver_fault().empty()) return 0;
  int count = 0;
  return driver().device_count(&count) ? 0 : count;
}

struct Gpu::Made {
  std::mutex mutex;
  std::map<int, std::unique_ptr<Gpu>> gpus;
  static Made& all() {
    static auto* const made = new Made;  // outlives other objects
    return *made;
  }
};

std::vector<Gpu*> Gpu::all() {
  std::vector<Gpu*> gpus;
  const std::lock_guard lock(Made::all().mutex);
  for (const auto& [number, gpu] : Made::all().gpus)
    if (gpu) gpus.push_back(gpu.get());
  return gpus;
}

void Gpu::finish_task(std::uint64_t task) {
  for (Gpu* gpu : all()) gpu->launches.finish(task);
}

Gpu& Gpu::at(int number) {
  const std::lock_guard lock(Made::all().mutex);
  std::unique_ptr<Gpu>& gpu = Made::all().gpus[number];
  if (!gpu) {
    driver();  // raises where there is none
    if (number < 0 || number >= std::min(count(), kMostGpus))
      fail(ErrorKind::value, "no device 'cuda:", number, "'; this machine has ", count(),
           " GPUs, counted from 0");
    gpu.reset(new Gpu(number));
    finish_launches = finish_task;
  }
  return *gpu;
}

Gpu::Gpu(int number)
    : Device{nullptr,
             KernelSet::cuda,
             true,
             nullptr,
             nullptr,
             [](const Device& self, void* to, const void* from, std::size_t bytes) {
               gpu_of(self).copy(to, from, bytes);
             },
             [](const Device& self) { gpu_of(self).synchronize(gpu_of(self).current_stream()); },
             &blocks,
             [](const Device& self, const Place& to, const Place& from, std::size_t bytes,
                bool waits) { gpu_of(self).copier.move(to, from, bytes, waits); },
             &arrivals_,
             &PinnedBlocks::all()},
      number(number),
      blocks(*this),
      pool(blocks),
      copier(*this),
      name_("cuda:" + std::to_string(number)),
      arrivals_(*this),
      waits_(env_integer("CUDA_SYNC", 0) != 0) {
  const Driver& cuda = driver();
  name = name_.c_str();
  record = [](const Device& self, const std::function<void()>& run) {
    return record_graph(gpu_of(self), run);
  };
  fails_late = true;
  // Where each kernel is waited for, so is each of a captured step.
  if (waits_) record = nullptr;
  copy_within = [](const Device& self, void* to, const void* from, std::size_t bytes) {
    Gpu& gpu = gpu_of(self);
    gpu.copy_on(gpu.current_stream(), to, from, bytes);
  };
  int handle = 0;
  check(cuda.device_get(&handle, number), "the GPU cannot be opened");
  char text[256] = {};
  check(cuda.device_name(text, sizeof text, handle), "the GPU cannot be asked for its name");
  facts.name = text;
  const auto ask = [&](int what) {
    int value = 0;
    check(cuda.device_attribute(&value, what, handle), "the GPU cannot be asked for its limits");
    return value;
  };
  facts.capability = ask(attribute::capability_major) * 10 + ask(attribute::capability_minor);
  facts.multiprocessors = ask(attribute::multiprocessors);
  facts.shared_bytes = ask(attribute::shared_bytes_per_block);
  check(cuda.device_memory(&facts.memory_bytes, handle), "the GPU cannot be asked for its memory");
  if (facts.capability < kOldestCapability)
    fail(ErrorKind::runtime, "device '", name_, "' (", facts.name, ") has compute capability ",
         facts.capability / 10, ".", facts.capability % 10, "; the oldest that kernels are for is ",
         kOldestCapability / 10, ".", kOldestCapability % 10);
  compiler();  // raises where there is none
  check(cuda.retain_context(&context_, handle), "the GPU cannot be used");
  enter();
  void* host = nullptr;
  check(cuda.allocate_host(&host, sizeof(Fault), kHostIsMapped), "no memory for faults");
  fault_ = new (host) Fault{};
  compute = &new_stream(0);
  // Copies are seldom, and what waits for them much.
  upload = &new_stream(-1);
  download = &new_stream(-1);
}

// ---- streams ----

thread_local Gpu::ChosenStreams Gpu::chosen_streams = {};

std::shared_ptr<const void> Gpu::take_streams() {
  if (!chosen_streams.count) return nullptr;
  return std::make_shared<const ChosenStreams>(chosen_streams);
}
void Gpu::put_streams(const void* streams) {
  if (streams)
    chosen_streams = *static_cast<const ChosenStreams*>(streams);
  else if (chosen_streams.count)
    chosen_streams = {};
}

GpuStream& Gpu::new_stream(int priority) {
  enter();
  Stream handle = nullptr;
  check(driver().create_stream(&handle, kNonBlocking, priority), "no stream can be made");
  const int place = stream_count_;
  std::unique_ptr<GpuStream>& made = streams_[static_cast<std::size_t>(place)];
  made.reset(new GpuStream{this, handle, place, priority});
  stream_count_ = place + 1;
  return *made;
}

GpuStream& Gpu::add_stream(int priority) {
  const std::lock_guard lock(mutex_);
  if (stream_count_ < kMostStreams) return new_stream(priority);
  constexpr std::size_t kOwn = 3;
  for (std::size_t tried = 0; tried < kMostStreams - kOwn; ++tried) {
    GpuStream& stream = *streams_[kOwn + next_shared_++ % (kMostStreams - kOwn)];
    if (stream.priority == priority) return stream;
  }
  return *streams_[kOwn];
}

GpuBlock* Gpu::block_of(Block* block) const {
  if (!block) return nullptr;
  Block& holder = block->source->holder(*block);
  return holder.source == &blocks ? static_cast<GpuBlock*>(&holder) : nullptr;
}

GpuStream* Gpu::choose_stream(GpuStream* stream) {
  GpuStream*& chosen = chosen_streams.by_gpu[static_cast<std::size_t>(number)];
  GpuStream* const before = std::exchange(chosen, stream == compute ? nullptr : stream);
  chosen_streams.count += (chosen != nullptr) - (before != nullptr);
  return before;
}

Event Gpu::take_event() {
  {
    const std::lock_guard lock(mutex_);
    if (!events_.empty()) {
      const Event event = events_.back();
      events_.pop_back();
      return event;
    }
  }
  enter();
  Event event = nullptr;
  check(driver().create_event(&event, kUntimed), "no event can be made");
  return event;
}

void Gpu::give_event(Event event) noexcept {
  const std::lock_guard lock(mutex_);
  events_.push_back(event);
}

// ---- kernels ----

namespace {
thread_local const Gpu* entered_gpu = nullptr;
thread_local bool next_launch_reports = false;
}  // namespace

void Gpu::enter() const {
  entered_gpu = this;
  check(driver().set_context(context_), "the GPU cannot be used");
}

const Gpu* Gpu::entered() { return entered_gpu; }

Fault* Gpu::fault() const {
  next_launch_reports = true;
  return fault_;
}

Function Gpu::find(const void* of, std::uint64_t key) const {
  const std::lock_guard lock(mutex_);
  const auto found = functions_.find({of, key});
  return found == functions_.end() ? nullptr : found->second;
}

Function Gpu::add(const void* of, std::uint64_t key, const char* file, const std::string& settings,
                  const char* kernel) {
  const std::string cubin = compiled(file, settings, facts.capability);
  enter();
  Module module = nullptr;
  check(driver().load_module(&module, cubin.data()), "a kernel cannot be loaded");
  Function function = nullptr;
  check(driver().find_function(&function, module, kernel), "a kernel is not in its module");
  {
    const std::lock_guard names_lock(names_mutex_);
    names_[function] = kernel;
  }
  const std::lock_guard lock(mutex_);
  sources_.push_back({file, kernel, settings});
  return functions_[{of, key}] = function;
}

std::vector<Gpu::Source> Gpu::sources() const {
  const std::lock_guard lock(mutex_);
  return sources_;
}

std::string Gpu::name_of(Function kernel) const {
  const std::lock_guard lock(names_mutex_);
  const auto found = names_.find(kernel);
  return found == names_.end() ? "unknown" : found->second;
}

template <class Start> void Gpu::run_launch(Function kernel, Start&& start) {
  GpuStream& queue = current_stream();
  launches.admit(queue);
  start();
  launches.count(queue, kernel, std::exchange(next_launch_reports, false));
  if (waits_) synchronize(queue);
}

void Gpu::launch(Function kernel, const Grid& grid, const void* parameter) {
  enter();
  constexpr unsigned kPlainShared = 48 << 10;  // what a block may have without being asked
  if (grid.shared_bytes > kPlainShared)
    check(driver().set_function_attribute(kernel, attribute::function_shared_limit,
                                          static_cast<int>(grid.shared_bytes)),
          "a kernel does not get its shared memory");
  const LaunchConfig config = {{grid.blocks[0], grid.blocks[1], grid.blocks[2]},
                               {grid.threads, 1, 1},
                               grid.shared_bytes,
                               recording ? recording->stream : stream(),
                               nullptr,
                               0};
  void* parameters[] = {const_cast<void*>(parameter)};
  const auto start = [&] {
    check(driver().launch(&config, kernel, parameters, nullptr), "a kernel cannot be launched");
  };
  if (!recording) return run_launch(kernel, start);
  start();
  ++recording->launches;
}

void Gpu::launch(GraphExec graph) {
  enter();
  run_launch(nullptr,
             [&] { check(driver().launch_graph(graph, stream()), "a graph cannot be launched"); });
}

void Gpu::wait_for_all() {
  const Unlocked unlocked;
  enter();
  each_stream(wait_for);
}

std::uint64_t Gpu::wait_for(GpuStream& stream) {
  const std::uint64_t launches = stream.log.count();
  check(driver().wait_for_stream(stream.handle), "a kernel failed");
  stream.log.end_well(launches);
  return launches;
}

void Gpu::synchronize() {
  wait_for_all();
  copier.tell(false);
  if (fault_->code) tell_fault();
  each_stream([](GpuStream& stream) { stream.log.check(stream.log.ended_well()); });
}

void Gpu::synchronize(GpuStream& stream) {
  const Unlocked unlocked;
  enter();
  const std::uint64_t launches = wait_for(stream);
  if (fault_->code) [[unlikely]]
    tell_fault();
  stream.log.check(launches);
}

// Raises what it is, with the lines that may have asked for it.
void Gpu::tell_fault() {
  const Fault fault = *fault_;
  *fault_ = {};
  const std::string lines = reporting_lines(*this);
  each_stream([](GpuStream& stream) { stream.log.check(stream.log.ended_well()); });
  try {
    fault_reports()[static_cast<std::size_t>(fault.code) - 1](fault);
  } catch (const Error& error) {
    fail(error.kind, error.what(), lines);
  }
}

void Gpu::copy_on(const GpuStream& stream, void* to, const void* from, std::size_t bytes) {
  enter();
  if (bytes)
    check(driver().copy(reinterpret_cast<Address>(to), reinterpret_cast<Address>(from), bytes,
                        stream.handle),
          "memory cannot be copied");
}

void Gpu::copy(void* to, const void* from, std::size_t bytes) {
  GpuStream& stream = current_stream();
  copy_on(stream, to, from, bytes);
  synchronize(stream);
}

}  // namespace tw::cuda
