// Streams and events of GPUs in users' hands, and memory that copies beside kernels need.
#include "binding/tensor/casters.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"
#include "core/base/error.h"
#include "core/cuda/gpu/gpu.h"
#include "core/cuda/memory/pinned.h"
#include "core/ops/copy/copy.h"
#include "core/tensor/access.h"

namespace tw::binding {

using namespace nb::literals;
using cuda::Gpu;
using cuda::GpuStream;

namespace {

struct StreamHandle {
  GpuStream* stream;
};

// As PyTorch's: recorded on a stream, waited for by streams and the host.
class UserEvent {
 public:
  explicit UserEvent(bool timed) : timed_(timed) {}
  ~UserEvent() {
    if (event_) cuda::driver().destroy_event(event_);
  }
  UserEvent(const UserEvent&) = delete;
  UserEvent& operator=(const UserEvent&) = delete;

  void record(const StreamHandle& on) {
    GpuStream& stream = *on.stream;
    stream.gpu->enter();
    if (gpu_ && gpu_ != stream.gpu)
      fail(ErrorKind::value, "record: the event belongs to '", gpu_->name, "', the stream to '",
           stream.gpu->name, "'; make an event for each GPU");
    if (!event_)
      check(cuda::driver().create_event(&event_, timed_ ? 0 : cuda::kUntimed),
            "no event can be made");
    gpu_ = stream.gpu;
    check(cuda::driver().record_event(event_, stream.handle), "an event cannot be recorded");
  }
  void hold(const StreamHandle& later) const {
    if (!event_) return;  // nothing was recorded: nothing to wait for
    later.stream->gpu->enter();
    check(cuda::driver().make_stream_wait(later.stream->handle, event_, 0), "a stream cannot wait");
  }
  bool query() const {
    if (!event_) return true;
    gpu_->enter();
    const cuda::Result result = cuda::driver().query_event(event_);
    if (result == cuda::kNotReady) return false;
    cuda::check(result, "a kernel failed");
    return true;
  }
  void synchronize() const {
    if (!event_) return;
    gpu_->enter();
    const nb::gil_scoped_release unlocked;
    cuda::check(cuda::driver().wait_for_event(event_), "a kernel failed");
  }
  double elapsed_ms(const UserEvent& end) const {
    if (!timed_ || !end.timed_)
      fail(ErrorKind::value, "elapsed_time: both events need enable_timing=True");
    if (!event_ || !end.event_)
      fail(ErrorKind::value, "elapsed_time: both events must be recorded first");
    float milliseconds = 0;
    gpu_->enter();
    const cuda::Result result = cuda::driver().elapsed_time(&milliseconds, event_, end.event_);
    if (result == cuda::kNotReady)
      fail(ErrorKind::runtime,
           "elapsed_time: an event has not happened yet; wait with its synchronize first");
    cuda::check(result, "events cannot be compared");
    return static_cast<double>(milliseconds);
  }

 private:
  static void check(cuda::Result result, const char* what) { cuda::check(result, what); }
  const bool timed_;
  Gpu* gpu_ = nullptr;
  cuda::Event event_ = nullptr;
};

bool query(const StreamHandle& self) {
  self.stream->gpu->enter();
  const cuda::Result result = cuda::driver().query_stream(self.stream->handle);
  if (result == cuda::kNotReady) return false;
  cuda::check(result, "a kernel failed");
  return true;
}

void bind_stream(nb::module_& m) {
  nb::class_<UserEvent>(m, "_GpuEvent", "A place in a stream.")
      .def(nb::init<bool>(), "timed"_a)
      .def("record", &UserEvent::record, "stream"_a)
      .def("hold", &UserEvent::hold, "stream"_a)
      .def("query", &UserEvent::query)
      .def("synchronize", &UserEvent::synchronize)
      .def("elapsed_ms", &UserEvent::elapsed_ms, "end"_a);
  nb::class_<StreamHandle>(m, "_GpuStream", "A queue of work of a GPU.")
      .def_prop_ro("gpu", [](const StreamHandle& self) { return self.stream->gpu->number; })
      .def_prop_ro("number", [](const StreamHandle& self) { return self.stream->number; })
      .def_prop_ro("priority", [](const StreamHandle& self) { return self.stream->priority; })
      .def_prop_ro("address",
                   [](const StreamHandle& self) {
                     return reinterpret_cast<std::uintptr_t>(self.stream->handle);
                   })
      .def("query", query)
      .def("synchronize",
           [](const StreamHandle& self) { self.stream->gpu->synchronize(*self.stream); });
  m.def(
      "_gpu_add_stream",
      [](int number, int priority) { return StreamHandle{&Gpu::at(number).add_stream(priority)}; },
      "number"_a, "priority"_a, "One more stream of a GPU, or one of those there are.");
  m.def(
      "_gpu_current_stream",
      [](int number) { return StreamHandle{&Gpu::at(number).current_stream()}; }, "number"_a,
      "This thread's stream of a GPU.");
  m.def(
      "_gpu_own_stream", [](int number) { return StreamHandle{Gpu::at(number).compute}; },
      "number"_a, "The stream that threads have from the start.");
  m.def(
      "_gpu_choose_stream",
      [](const StreamHandle& chosen) {
        Gpu& gpu = *chosen.stream->gpu;
        GpuStream* const before = gpu.choose_stream(chosen.stream);
        return StreamHandle{before ? before : gpu.compute};
      },
      "stream"_a, "Makes a stream this thread's; returns the one before.");
  m.def(
      "_gpu_record_stream",
      [](const Itself& x, const StreamHandle& stream) {
        Gpu& gpu = *stream.stream->gpu;
        if (x.device() != &gpu)
          fail(ErrorKind::value, "record_stream: ", describe(x), " is not on '", gpu.name, "'");
        if (cuda::GpuBlock* const block = gpu.block_of(x->storage->block))
          gpu.blocks.use_on(*block, *stream.stream);
      },
      "x"_a, "stream"_a, "Says that work outside the engine uses a tensor on a stream.");
}

// ---- pinned memory ----

bool is_pinned(const Tensor& x) { return cuda::PinnedBlocks::find(x->storage->block) != nullptr; }

Tensor pinned(const Tensor& x) {
  if (x->elsewhere)
    fail(ErrorKind::runtime, "pin_memory: ", describe(x), "; only memory of the CPU can be pinned");
  if (is_pinned(x)) return x;
  const BlockSourceGuard source(&cuda::PinnedBlocks::all());
  return copy(x);
}

nb::dict pinned_figures() {
  const PoolStats stats = cuda::PinnedBlocks::all().stats();
  nb::dict out;
  out["live_bytes"] = stats.live_bytes;
  out["peak_live_bytes"] = stats.peak_live_bytes;
  out["reserved_bytes"] = stats.reserved_bytes;
  out["allocations"] = stats.allocations;
  return out;
}

nb::dict copy_figures(int number) {
  const cuda::CopyFigures figures = Gpu::at(number).copier.figures();
  nb::dict out;
  out["uploads"] = figures.uploads;
  out["downloads"] = figures.downloads;
  out["upload_bytes"] = figures.upload_bytes;
  out["download_bytes"] = figures.download_bytes;
  out["staged_bytes"] = figures.staged_bytes;
  out["small_uploads"] = figures.small_uploads;
  out["small_downloads"] = figures.small_downloads;
  return out;
}

// ---- launches ----

nb::dict dict_of(const cuda::LaunchFigures& figures) {
  nb::dict out;
  out["launches"] = figures.launches;
  out["waits"] = figures.waits;
  return out;
}

nb::dict dict_of_task(const cuda::LaunchFigures& figures) {
  nb::dict out = dict_of(figures);
  out["in_flight"] = figures.launches - figures.done;
  return out;
}

nb::dict launch_figures(int number) {
  const cuda::LaunchControl& control = Gpu::at(number).launches;
  nb::dict streams, tasks, out;
  for (const auto& [stream, figures] : control.by_stream())
    streams[nb::int_(stream)] = dict_of(figures);
  for (const auto& [task, figures] : control.by_task())
    tasks[nb::int_(task)] = dict_of_task(figures);
  out["in_flight_limit"] = control.limits().of_stream;
  out["in_flight_limit_of_a_task"] = control.limits().of_task;
  out["streams"] = streams;
  out["tasks"] = tasks;
  return out;
}

}  // namespace

void bind_gpu_streams(nb::module_& m) {
  bind_stream(m);
  m.def("_pin_memory", pinned, "x"_a, "A copy in pinned memory; itself where it is there.");
  m.def(
      "_is_pinned", [](const Itself& x) { return is_pinned(x); }, "x"_a,
      "Whether its memory is pinned.");
  m.def("_pinned_memory", pinned_figures, "Figures of pinned memory, in bytes.");
  m.def(
      "_pinned_trim", [] { return cuda::PinnedBlocks::all().trim(); },
      "Gives unused pinned memory back to the system; returns bytes.");
  m.def("_gpu_copies", copy_figures, "number"_a, "Copies from and to the host so far.");
  m.def("_gpu_launch_figures", launch_figures, "number"_a, "Launches by stream and by task.");
  m.def(
      "_gpu_set_launch_limit",
      [](int number, int in_flight, bool of_task) {
        Gpu::at(number).launches.set_limit(in_flight, of_task);
      },
      "number"_a, "in_flight"_a, "of_task"_a,
      "How many launches of a stream, or of a task, may be in flight; 0: no limit of ours.");
}

}  // namespace tw::binding
