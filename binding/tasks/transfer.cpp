// Transfers: tensors stay alive until their memory is no longer in use.
#include "core/runtime/transfers/transfer.h"

#include <algorithm>
#include <cmath>

#include <nanobind/stl/shared_ptr.h>

#include "binding/tensor/casters.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"
#include "core/autograd/capture.h"
#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/in_place.h"
#include "core/tensor/access.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

// How long Ctrl-C may go unnoticed.
constexpr auto kSignalPeriod = std::chrono::milliseconds(50);
// A wait longer than this would overflow the clock; nobody sees its end.
constexpr double kLongestSeconds = 1e9;

// A tensor whose memory stays in place while a transfer uses it.
struct Held {
  Tensor tensor;
  std::unique_ptr<Pinned> pinned;
  Held() = default;
  explicit Held(const Tensor& x) : tensor(x), pinned(std::make_unique<Pinned>(x->storage)) {}
  char* bytes() const { return tensor.pinned_bytes(); }
  Place place() const { return {bytes(), tensor->storage->block, tensor.device()}; }
};

// Files are read and written by the processor.
Held held_on_cpu(const Tensor& x) {
  check_on_cpu(x, "transfer");
  return Held(x);
}

struct PendingTransfer;
void keep_until_done(PendingTransfer&& transfer);

// A future and the tensors whose memory it uses.
struct PendingTransfer {
  Future future;
  Held target, source;

  PendingTransfer(Future future, Held target, Held source)
      : future(std::move(future)), target(std::move(target)), source(std::move(source)) {}
  PendingTransfer(PendingTransfer&& other) noexcept = default;
  PendingTransfer& operator=(PendingTransfer&& other) noexcept = default;
  ~PendingTransfer() {
    if (future && !future.done()) keep_until_done(std::move(*this));
  }
};

// Transfers in flight that Python dropped. Reference counts belong to the holder of the lock, so
// the engine's threads cannot end them: the next transfer does. Never destroyed, as is the engine.
std::vector<PendingTransfer>& dropped() {
  static auto& transfers = *new std::vector<PendingTransfer>;
  return transfers;
}

void keep_until_done(PendingTransfer&& transfer) { dropped().push_back(std::move(transfer)); }

void release_finished() {
  std::vector<PendingTransfer> finished;  // ends last: what tensors release may come back here
  auto& held = dropped();
  for (std::size_t i = held.size(); i-- > 0;) {
    if (!held[i].future.done()) continue;
    std::swap(held[i], held.back());
    finished.push_back(std::move(held.back()));
    held.pop_back();
  }
}

std::string path_of(nb::handle path) {
  PyObject* bytes = nullptr;
  if (!PyUnicode_FSConverter(path.ptr(), &bytes)) throw nb::python_error();
  const nb::object owner = nb::steal(bytes);
  return {PyBytes_AS_STRING(bytes), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes))};
}

std::int64_t bytes_of(const Tensor& x) {
  return x.count() * static_cast<std::int64_t>(x.item_bytes());
}

// Refuses what a transfer must not write to, then counts the change.
void take_target(const Tensor& x, const char* op) {
  refuse_in_capture("a transfer goes on beside it");
  if (!x.contiguous())
    fail(ErrorKind::value, op, ": the target ", describe(x),
         " is not contiguous; use contiguous()");
  if (should_record(x))
    fail(ErrorKind::runtime, op, ": the target ", describe(x), " requires grad; use no_grad()");
  InPlaceChange(op, x).begin();
}

// Bytes of a file are any; those of a bool are 0 and 1.
void refuse_bool(const Tensor& x, const char* op) {
  if (is_bool(x.dtype()))
    fail(ErrorKind::type, op,
         ": a bool tensor holds only 0 and 1; read as uint8 and compare with 0");
}

PendingTransfer start_read(nb::object path, const Itself& out, std::int64_t offset, int priority) {
  release_finished();
  auto file = std::make_shared<SourceFile>(path_of(path));
  refuse_bool(out, "read");
  take_target(out, "read");
  Held target = held_on_cpu(out);
  Future future = read_file(file, offset, target.bytes(), bytes_of(out), priority);
  return {std::move(future), std::move(target), {}};
}

PendingTransfer start_write(nb::object path, const Itself& x, std::int64_t offset, int priority) {
  refuse_in_capture("a transfer goes on beside it");
  release_finished();
  Held source = held_on_cpu(contiguous(x));
  Future future =
      write_file(path_of(path), offset, source.bytes(), bytes_of(source.tensor), priority);
  return {std::move(future), {}, std::move(source)};
}

PendingTransfer start_copy(const Itself& source, const Itself& target, int priority) {
  release_finished();
  if (!(source.shape() == target.shape()) || source.dtype() != target.dtype())
    fail(ErrorKind::value, "copy: ", describe(source), " does not fit ", describe(target));
  if (!source.contiguous())
    fail(ErrorKind::value, "copy: the source ", describe(source),
         " is not contiguous; use contiguous()");
  const std::int64_t bytes = bytes_of(source);
  Held from(source), to(target);
  if (source.device() != target.device() && source->elsewhere && target->elsewhere)
    fail(ErrorKind::value, "copy: ", describe(source), " and ", describe(target),
         " are on two devices; copy to the CPU in between");
  if (from.bytes() < to.bytes() + bytes && to.bytes() < from.bytes() + bytes)
    fail(ErrorKind::value, "copy: source and target share memory");
  take_target(target, "copy");
  Future future = copy_memory(to.place(), from.place(), bytes, priority);
  return {std::move(future), std::move(to), std::move(from)};
}

std::vector<std::int64_t> indices_of(const Tensor& x) {
  if (x.dtype() != DType::int64 || x.rank() != 1)
    fail(ErrorKind::type, "gather: indices must be int64 of one axis, got ", describe(x));
  check_on_cpu(x, "gather");
  const Tensor row_major = contiguous(x);
  Access at;
  const std::int64_t* const first = at.as<std::int64_t>(row_major);
  return {first, first + row_major.count()};
}

PendingTransfer start_gather(const std::shared_ptr<SourceFile>& file, const Itself& out,
                             const Itself& indices, std::int64_t rows, std::int64_t offset,
                             int priority) {
  release_finished();
  if (out.rank() == 0 || indices.count() != out.size(0))
    fail(ErrorKind::value, "gather: ", indices.count(), " indices do not fit ", describe(out));
  refuse_bool(out, "gather");
  const std::int64_t row_bytes = indices.count() ? bytes_of(out) / indices.count() : 0;
  auto wanted = indices_of(indices);
  take_target(out, "gather");
  Held target = held_on_cpu(out);
  Future future = gather_file_rows(file, {offset, row_bytes, rows}, std::move(wanted),
                                   target.bytes(), priority);
  return {std::move(future), std::move(target), {}};
}

// Without the lock, in slices, so that signals are seen.
bool wait_for(const Future& future, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto limit = std::chrono::duration<double>(std::clamp(seconds, 0.0, kLongestSeconds));
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
  for (;;) {
    const auto left = std::max<Clock::duration>(end - Clock::now(), Clock::duration::zero());
    bool done;
    {
      const nb::gil_scoped_release unlocked;
      done = future.wait(std::min<Clock::duration>(left, kSignalPeriod));
    }
    if (PyErr_CheckSignals() < 0) throw nb::python_error();
    if (done || left == Clock::duration::zero()) return done;
  }
}

[[noreturn]] void raise(PyObject* type, const char* text) {
  PyErr_SetString(type, text);
  throw nb::python_error();
}

void finish(PendingTransfer& self, std::optional<double> timeout) {
  const Future& future = self.future;
  if (timeout && std::isnan(*timeout)) fail(ErrorKind::value, "wait: timeout is nan");
  if (!future.done() && !wait_for(future, timeout.value_or(kLongestSeconds)))
    raise(PyExc_TimeoutError, "wait: the transfer is still in flight");
  self.target = Held();
  self.source = Held();
  future.result();
  if (future.state() == JobState::cancelled)
    raise(nb::module_::import_("concurrent.futures").attr("CancelledError").ptr(),
          "wait: the transfer was cancelled");
}

const char* state_name(const PendingTransfer& transfer) {
  constexpr const char* kNames[] = {"waiting", "running", "completed", "failed", "cancelled"};
  return kNames[static_cast<int>(transfer.future.state())];
}

nb::dict dictionary_of(const JobFigures& figures) {
  nb::dict out;
  out["submitted"] = figures.submitted;
  out["waiting"] = figures.waiting;
  out["running"] = figures.running;
  out["completed"] = figures.completed;
  out["failed"] = figures.failed;
  out["cancelled"] = figures.cancelled;
  out["bytes"] = figures.bytes;
  out["busy_ns"] = figures.busy_ns;
  out["waiting_ns"] = figures.waiting_ns;
  out["peak_in_flight"] = figures.peak_in_flight;
  return out;
}

nb::dict transfer_stats() {
  release_finished();
  nb::dict queues, tasks, out;
  for (const QueueFigures& figures : transfers().queue_figures()) {
    nb::dict entry = dictionary_of(figures);
    entry["in_flight_limit"] = figures.in_flight_limit;
    queues[figures.name.c_str()] = entry;
  }
  for (const auto& [task, figures] : transfers().task_figures())
    tasks[nb::int_(task)] = dictionary_of(figures);
  out["queues"] = queues;
  out["tasks"] = tasks;
  return out;
}

void bind_event(nb::module_& m) {
  nb::class_<PendingTransfer>(m, "TransferEvent",
                              "A transfer on its way; it keeps its tensors alive until it is done.")
      .def(
          "done", [](const PendingTransfer& self) { return self.future.done(); },
          "Whether it has completed, failed or been cancelled.")
      .def("wait", finish, "timeout"_a = nb::none(),
           "Returns when the transfer has completed; timeout in seconds.\n\n"
           "Raises TimeoutError, concurrent.futures.CancelledError, or what ended the transfer, "
           "such "
           "as\nFileNotFoundError.")
      .def(
          "cancel", [](const PendingTransfer& self) { self.future.cancel(); },
          "Keeps a waiting transfer from starting and stops a running one; the target's contents "
          "are\nunspecified.")
      .def("__repr__",
           [](const PendingTransfer& self) {
             return std::string("<TransferEvent: ") + state_name(self) + ">";
           })
      .def_prop_ro("state", state_name,
                   "'waiting', 'running', 'completed', 'failed' or 'cancelled'.");
}

}  // namespace

void bind_transfer(nb::module_& m) {
  bind_event(m);
  nb::class_<SourceFile>(m, "SourceFile", "A file to gather rows from, opened on first use.")
      .def("__init__",
           [](SourceFile* self, nb::object path) { new (self) SourceFile(path_of(path)); })
      .def("__repr__",
           [](SourceFile& file) {
             return "<SourceFile: " + std::to_string(file.size_bytes()) + " bytes>";
           })
      .def_prop_ro("size_bytes", &SourceFile::size_bytes, "When opened.");
  m.def("_transfer_read", start_read, "path"_a, "out"_a, "offset_bytes"_a, "priority"_a,
        "Fills a tensor from a file.");
  m.def("_transfer_write", start_write, "path"_a, "x"_a, "offset_bytes"_a, "priority"_a,
        "Writes a tensor's bytes to a file.");
  m.def("_transfer_copy", start_copy, "src"_a, "dst"_a, "priority"_a, "Copies between tensors.");
  m.def("_transfer_gather", start_gather, "file"_a, "out"_a, "indices"_a, "rows"_a,
        "offset_bytes"_a, "priority"_a = 0,
        "Fills a tensor with rows of a file, which has `rows` of them from offset_bytes on.");
  m.def("_transfer_stats", transfer_stats, "Figures of transfers by queue and by task.");
  m.def(
      "_transfer_set_in_flight",
      [](const std::string& queue, int limit) { transfers().set_in_flight(queue, limit); },
      "queue"_a, "limit"_a, "Sets how many transfers of a queue may run at once.");
  m.def(
      "_transfer_cancel_task", [](std::uint64_t task) { return transfers().cancel_task(task); },
      "task"_a, "Cancels a task's transfers; returns how many there were.");
  m.def(
      "_transfer_wait_idle",
      [](const std::string& queue, double seconds) {
        const nb::gil_scoped_release unlocked;
        return transfers().wait_idle(
            queue, std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * seconds)));
      },
      "queue"_a, "timeout"_a, "Whether nothing is in flight in a queue, within the timeout.");
}

}  // namespace tw::binding
