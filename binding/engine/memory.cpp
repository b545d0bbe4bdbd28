// Memory in users' hands: figures, pools with a quota and plain blocks.
#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

#include "binding/tensor/casters.h"
#include "binding/tensor/interchange.h"
#include "binding/engine/ledger.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"
#include "binding/tensor/text.h"
#include "core/autograd/capture.h"
#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/fault.h"
#include "core/cuda/gpu/gpu.h"
#include "core/cuda/memory/spill_tiers.h"
#include "core/memory/pool.h"
#include "core/memory/quota_pool.h"
#include "core/runtime/launch.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

nb::dict heap_dictionary(const PoolStats& stats) {
  nb::dict out;
  out["live_bytes"] = stats.live_bytes;
  out["peak_live_bytes"] = stats.peak_live_bytes;
  out["reserved_bytes"] = stats.reserved_bytes;
  out["peak_reserved_bytes"] = stats.peak_reserved_bytes;
  out["allocations"] = stats.allocations;
  out["reuses"] = stats.reuses;
  out["releases"] = stats.releases;
  out["free_bytes"] = stats.free_bytes;
  out["largest_free_bytes"] = stats.largest_free_bytes;
  const auto ranges = static_cast<double>(stats.free_range_bytes);
  const auto largest = static_cast<double>(stats.largest_free_bytes);
  out["fragmentation"] = ranges > 0 ? 1 - largest / ranges : 0.0;
  return out;
}

// ---- blocks ----

// Bytes without a tensor around them. Like a tensor's object it goes straight to the pool.
struct BlockObject {
  PyObject_HEAD Storage* storage;  // owns one reference; null after free()
};

PyTypeObject* block_type;
constexpr int kKept = 1024;
BlockObject* kept[kKept];
int kept_count = 0;

BlockObject* as_block(PyObject* self) { return reinterpret_cast<BlockObject*>(self); }

void clear(Storage& storage) {
  const Pinned pinned{Ref<Storage>(&storage)};
  if (const Device* device = storage.device) {
    const std::vector<char> zeros(storage.bytes);
    device->copy(*device, storage.place(), zeros.data(), zeros.size());
  } else {
    std::memset(storage.place(), 0, storage.bytes);
  }
}

PyObject* new_block(std::size_t bytes, bool zero) {
  Ref<Storage> storage = Storage::allocate(bytes);
  if (zero) clear(*storage);
  BlockObject* object;
  if (kept_count > 0) {
    object = kept[--kept_count];
    PyObject_Init(reinterpret_cast<PyObject*>(object), block_type);
  } else {
    object = PyObject_New(BlockObject, block_type);
    if (!object) throw nb::python_error();
  }
  object->storage = storage.leak();
  return reinterpret_cast<PyObject*>(object);
}

void drop(BlockObject* object) {
  if (Storage* storage = std::exchange(object->storage, nullptr)) Ref<Storage>::adopt(storage);
}

void deallocate_block(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  drop(as_block(self));
  if (kept_count < kKept) {
    kept[kept_count++] = as_block(self);
  } else {
    PyObject_Free(self);
  }
  Py_DECREF(type);
}

Storage& storage_of(PyObject* self) {
  Storage* storage = as_block(self)->storage;
  if (!storage) fail(ErrorKind::value, "the block was freed");
  return *storage;
}

PyObject* free_block(PyObject* self, PyObject*) {
  if (as_block(self)->storage && as_block(self)->storage->references > 1) {
    PyErr_SetString(PyExc_BufferError, "free: a buffer over the block is still in use");
    return nullptr;
  }
  drop(as_block(self));
  Py_RETURN_NONE;
}

Py_ssize_t block_length(PyObject* self) {
  const Storage* storage = as_block(self)->storage;
  return storage ? static_cast<Py_ssize_t>(storage->bytes) : 0;
}

PyObject* block_bytes(PyObject* self, void*) { return PyLong_FromSsize_t(block_length(self)); }

PyObject* block_address(PyObject* self, void*) {
  try {
    Storage& storage = storage_of(self);
    storage.pin();  // for good: nobody tells when the address is no longer used
    return PyLong_FromVoidPtr(storage.place());
  } catch (...) {
    return raise_current();
  }
}

int get_block_buffer(PyObject* self, Py_buffer* view, int flags) {
  try {
    Storage& storage = storage_of(self);
    if (storage.device)
      fail(ErrorKind::buffer, "the block is on device '", storage.device->name,
           "': the CPU has no buffer over it");
    auto* pinned = new Pinned(Ref<Storage>(&storage));
    if (PyBuffer_FillInfo(view, self, storage.place(), static_cast<Py_ssize_t>(storage.bytes), 0,
                          flags) < 0) {
      delete pinned;
      return -1;
    }
    view->internal = pinned;
    return 0;
  } catch (...) {
    raise_current();
    view->obj = nullptr;
    return -1;
  }
}

void release_block_buffer(PyObject*, Py_buffer* view) {
  delete static_cast<Pinned*>(view->internal);
}

PyObject* display_block(PyObject* self) {
  const Storage* storage = as_block(self)->storage;
  if (!storage) return PyUnicode_FromString("<Block, freed>");
  return PyUnicode_FromFormat("<Block of %zu bytes>", storage->bytes);
}

PyMethodDef block_methods[] = {
    {"free", free_block, METH_NOARGS,
     "free($self, /)\n--\n\nGives the memory back now; BufferError while a memoryview is over it."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef block_properties[] = {
    {"nbytes", block_bytes, nullptr, "Bytes asked for; 0 after free().", nullptr},
    {"address", block_address, nullptr, "Where the block is; it stays there from now on.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

template <class F> void* slot(F* function) { return reinterpret_cast<void*>(function); }
PyType_Slot block_slots[] = {
    {Py_tp_doc,
     const_cast<char*>("Memory of a pool, with the buffer protocol: memoryview(block).")},
    {Py_tp_dealloc, slot(deallocate_block)},
    {Py_tp_methods, block_methods},
    {Py_tp_getset, block_properties},
    {Py_tp_repr, slot(display_block)},
    {Py_sq_length, slot(block_length)},
    {Py_bf_getbuffer, slot(get_block_buffer)},
    {Py_bf_releasebuffer, slot(release_block_buffer)},
    {0, nullptr}};
PyType_Spec block_spec = {"tilewright.memory.Block", sizeof(BlockObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, block_slots};

std::size_t checked_bytes(Py_ssize_t bytes) {
  if (bytes < 0) fail(ErrorKind::value, "allocate: nbytes is negative: ", bytes);
  return static_cast<std::size_t>(bytes);
}

// ---- pools ----

class Pool {
 public:
  Pool(std::optional<std::int64_t> quota_bytes, nb::object spill_dir, nb::handle device,
       std::optional<std::int64_t> host_bytes) {
    if (quota_bytes && *quota_bytes <= 0)
      fail(ErrorKind::value, "Pool: quota_bytes must be positive, got ", *quota_bytes);
    const std::int64_t quota = quota_bytes.value_or(-1);
    const std::string parent = spill_parent(spill_dir, quota >= 0);
    const Device* place = nullptr;
    read_device(device, place);
    if (!place && host_bytes)
      fail(ErrorKind::value, "Pool: host_bytes is for pools on a GPU, got ", *host_bytes);
    if (!place) {
      ChosenLedger books = choose_ledger(quota, !parent.empty());
      compare_ = std::move(books.compare);
      pool_ = QuotaPool::create(quota, parent, std::move(books.ledger));
      return;
    }
    if (place->kernels != KernelSet::cuda)
      fail(ErrorKind::value, "Pool: device '", place->name, "' has no memory of its own");
    if (host_bytes && *host_bytes < 0)
      fail(ErrorKind::value, "Pool: host_bytes must be at least 0, got ", *host_bytes);
    const std::int64_t below = host_bytes.value_or(default_host_bytes());
    ChosenLedger books = choose_ledger(quota, quota >= 0 && below > 0);
    compare_ = std::move(books.compare);
    pool_ = cuda::make_gpu_pool(static_cast<cuda::Gpu&>(const_cast<Device&>(*place)), quota,
                                {below, parent}, std::move(books.ledger));
  }

  void enter() {
    refuse_in_capture("a pool is entered");
    Entered entry{pool_, modes.source, nullptr};
    if (modes.source) entry.nested = std::make_unique<NestedSource>(pool_.get(), modes.source);
    modes.source = entry.nested ? static_cast<BlockSource*>(entry.nested.get()) : pool_.get();
    entered().push_back(std::move(entry));
  }
  void leave() {
    refuse_in_capture("a pool is left");
    if (entered().empty() || entered().back().pool != pool_)
      fail(ErrorKind::runtime, "Pool: left in another order, or on another thread, than entered");
    modes.source = entered().back().before;
    entered().pop_back();
    compare_();
  }
  PyObject* allocate(Py_ssize_t bytes, bool zero) {
    const DeviceGuard device(pool_->device());
    const BlockSourceGuard guard(pool_.get());
    compare_();
    return new_block(checked_bytes(bytes), zero);
  }
  nb::dict stats() {
    compare_();
    nb::dict out = heap_dictionary(pool_->heap_figures());
    out.update(ledger_dictionary(pool_->figures()));
    out["foreseen"] = pool_->foreseen();
    out["left_ahead"] = pool_->left_ahead();
    if (pool_->device()) {
      const cuda::HostFigures host = cuda::host_figures(*pool_);
      out["host_bytes"] = host.ledger.live_bytes;
      out["file_bytes"] = host.ledger.spilled_bytes;
    }
    out["quota_bytes"] = quota();
    return out;
  }
  std::optional<std::int64_t> quota() const {
    if (pool_->quota_bytes() < 0) return std::nullopt;
    return pool_->quota_bytes();
  }
  void on_pressure(double level, Annotated<"collections.abc.Callable[[int], object]"> call) {
    if (!PyCallable_Check(call.ptr()))
      fail(ErrorKind::type, "on_pressure: callback must be a function, got ", shown(call.ptr()));
    if (!(level > 0 && level <= 1))
      fail(ErrorKind::value, "on_pressure: level must be in (0, 1], got ", level);
    if (pool_->quota_bytes() < 0)
      fail(ErrorKind::value, "on_pressure: a pool without quota_bytes has no pressure");
    const auto held = std::make_shared<nb::object>(std::move(call));
    calls_.push_back(held);
    pool_->on_pressure(level, [held](std::int64_t live_bytes) {
      nb::gil_scoped_acquire lock;
      const nb::object function = *held;
      if (!function.is_valid()) return;
      try {
        function(live_bytes);
      } catch (nb::python_error& error) {
        error.discard_as_unraisable("on_pressure");  // the allocation itself is sound
      }
    });
  }
  QuotaPool& core() { return *pool_; }
  // Only a pool that can be entered meets pressure, so its calls are this object's.
  int visit_calls(visitproc visit, void* arg) const {
    for (const auto& call : calls_) Py_VISIT(call->ptr());
    return 0;
  }
  void drop_calls() {
    for (const auto& call : calls_) call->reset();
  }

 private:
  struct Entered {
    std::shared_ptr<QuotaPool> pool;  // which stays while it is in force, whoever drops it
    BlockSource* before;
    std::unique_ptr<NestedSource> nested;  // of both
  };
  // A quarter of the machine's memory: pinned memory is no longer the system's to move.
  static std::int64_t default_host_bytes() {
    return std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE) / 4;
  }
  static std::vector<Entered>& entered() {
    static thread_local std::vector<Entered> stack;
    return stack;
  }
  // Where files go: None says the default, False that nothing is spilled. Without a quota nothing
  // ever has to leave.
  static std::string spill_parent(nb::handle spill_dir, bool bounded) {
    if (spill_dir.is(nb::handle(Py_False))) return "";
    if (!spill_dir.is_none()) {
      const nb::object path = nb::module_::import_("os").attr("fspath")(spill_dir);
      return bounded ? nb::cast<std::string>(path) : "";
    }
    if (!bounded) return "";
    const std::string chosen = env_text("SPILL_DIR");
    if (!chosen.empty()) return chosen;
    return nb::cast<std::string>(nb::module_::import_("tempfile").attr("gettempdir")());
  }

  std::shared_ptr<QuotaPool> pool_;
  std::function<void()> compare_;                   // its books
  std::vector<std::shared_ptr<nb::object>> calls_;  // of on_pressure; shared with the core's
};

int traverse_pool(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<Pool>(self)->visit_calls(visit, arg) : 0;
}
int clear_pool(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<Pool>(self)->drop_calls();
  return 0;
}
PyType_Slot pool_slots[] = {
    {Py_tp_traverse, slot(traverse_pool)}, {Py_tp_clear, slot(clear_pool)}, {0, nullptr}};

// ---- events ----

void bind_pool(nb::module_& m) {
  nb::class_<Pool>(
      m, "Pool", nb::type_slots(pool_slots),
      "Memory with a quota of its own.\n\n"
      "Tensors that this thread makes inside `with pool:` live in it, and those of\n"
      "tasks that it submits inside. Where they would exceed\n"
      "quota_bytes, those unused for longest are written to files in spill_dir and\n"
      "brought back when an op needs them. spill_dir: default TILEWRIGHT_SPILL_DIR,\n"
      "else the system's folder for temporary files; False: never spill. Raises\n"
      "MemoryError where a block does not fit, OSError where a file fails. With\n"
      "device='cuda' it is the GPU's memory: blocks leave it for pinned memory of the\n"
      "host, and for files where that would exceed host_bytes (a quarter of the\n"
      "machine's memory by default; 0: never spill); spill_dir=False: no files.")
      .def(nb::init<std::optional<std::int64_t>, Annotated<"str | os.PathLike[str] | bool">,
                    AnnotatedDevice, std::optional<std::int64_t>>(),
           "quota_bytes"_a = nb::none(), "spill_dir"_a = nb::none(), nb::kw_only(),
           "device"_a = nb::none(), "host_bytes"_a = nb::none())
      .def(
          "__enter__", [](nb::handle self)->Annotated<"typing.Self"> {
            nb::cast<Pool&>(self).enter();
            return nb::borrow(self);
          })
      .def("__exit__", [](Pool& pool, nb::args) { pool.leave(); })
      .def(
          "allocate",
          [](Pool& pool, Py_ssize_t nbytes, bool zero) {
            return nb::steal(pool.allocate(nbytes, zero));
          },
          "nbytes"_a, "zero"_a = false,
          nb::sig("def allocate(self, nbytes: int, zero: bool = False) -> Block"),
          "A block of this pool; with zero=True its bytes are 0, else unspecified.")
      .def("stats", &Pool::stats, "Figures in bytes and counts.")
      .def(
          "reset_peaks", [](Pool& pool) { pool.core().reset_peaks(); },
          "Starts the peak figures anew.")
      .def(
          "trim", [](Pool& pool) { return pool.core().trim(); },
          "Gives memory kept for reuse back to the system; returns bytes.")
      .def(
          "spill", [](Pool& pool) { return pool.core().spill_all(); },
          "Writes out every block that is not in use, pinned or small; returns bytes.")
      .def("on_pressure", &Pool::on_pressure, "level"_a, "callback"_a,
           "Calls callback(live_bytes) before live bytes rise to level * quota_bytes: what it "
           "frees\n"
           "need not be spilled. Called again after they fell below.")
      .def_prop_ro("quota_bytes", &Pool::quota, "The quota, or None.")
      .def("__repr__",
           [](Pool& pool) {
             const auto figures = pool.stats();
             return nb::str(nb::str("<Pool: {} bytes live, {} spilled, quota {}>")
                                .attr("format")(figures["live_bytes"], figures["spilled_bytes"],
                                                pool.quota()));
           })
      .def_prop_ro(
          "spill_folder", [](Pool& pool) { return pool.core().spill_path(); },
          "Where the files of spilled blocks are; '' while there are none.");
}

}  // namespace

void bind_memory(nb::module_& m) {
  PyObject* type = PyType_FromSpec(&block_spec);
  if (!type) throw nb::python_error();
  block_type = reinterpret_cast<PyTypeObject*>(type);
  m.attr("Block") = nb::borrow(type);
  bind_pool(m);
  bind_ledger(m);
  m.def(
      "_allocate",
      [](Py_ssize_t nbytes, bool zero) {
        return nb::steal(new_block(checked_bytes(nbytes), zero));
      },
      "nbytes"_a, "zero"_a = false,
      nb::sig("def _allocate(nbytes: int, zero: bool = False) -> Block"),
      "A block of the pool in force; with zero=True its bytes are 0, else unspecified.");
  m.def(
      "memory_stats", [] { return heap_dictionary(pool_stats()); },
      "Figures of the memory pool, in bytes and counts.");
  m.def(
      "memory_trim", [] { return pool_trim(); },
      "Gives unused memory back to the system; returns bytes.");
  m.def(
      "_set_idle_release",
      [](double seconds) {
        const double before = static_cast<double>(idle_release_ns.load()) * 1e-9;
        idle_release_ns = static_cast<std::int64_t>(seconds * 1e9);
        return before;
      },
      "seconds"_a, "How long large blocks may be unused before they go back; returns what it was.");
  m.def("memory_reset_peaks", pool_reset_peaks, "Starts the peak figures anew.");
  m.def("_set_faults_after", [](std::int64_t points) { faults_after = points; });
  m.def("_faults_left", [] { return faults_after.load(); });
}

}  // namespace tw::binding
