// The scheduler's type: submission, the worker's side, and figures.
#include <cmath>

#include "binding/module.h"
#include "binding/task_type.h"

namespace tw::binding {

namespace {

// ---- the options of submit ----

enum Option {
  kMemory,
  kPriority,
  kExpected,
  kAfter,
  kQuality,
  kGroup,
  kShare,
  kTimeout,
  kName,
  kKwargs,
  kPool,
  kOptions
};
const char* const kOptionNames[kOptions] = {"memory_bytes", "priority", "expected_s", "after",
                                            "quality",      "group",    "share",      "timeout_s",
                                            "name",         "kwargs",   "pool"};
PyObject* option_keys[kOptions];  // interned, so that a comparison of pointers nearly always does
constexpr const char* kQualities[] = {"guaranteed", "burstable", "best_effort"};
constexpr const char* kPolicies[] = {"fifo", "shortest", "priority"};
constexpr double kLongest_s = 4e9;  // 127 years: nanoseconds of it fit 62 bits

int option_of(PyObject* key) {
  for (int i = 0; i < kOptions; ++i)
    if (key == option_keys[i]) return i;
  for (int i = 0; i < kOptions; ++i)
    if (PyUnicode_Compare(key, option_keys[i]) == 0) return i;
  std::string known;
  for (const char* name : kOptionNames) known += (known.empty() ? "" : ", ") + std::string(name);
  fail(ErrorKind::type, "submit: no option '", PyUnicode_AsUTF8(key), "'; known: ", known,
       "; keywords of the function itself go into kwargs={...}");
}

template <std::size_t n>
int choice_of(PyObject* value, const char* const (&names)[n], const char* what) {
  std::string known;
  for (std::size_t i = 0; i < n; ++i) {
    if (PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, names[i]) == 0) return i;
    known += (known.empty() ? "" : ", ") + std::string(names[i]);
  }
  fail(ErrorKind::value, what, " is one of ", known, "; got ", nb::repr(nb::handle(value)).c_str());
}

std::int64_t read_integer(PyObject* value, const char* what) {
  const nb::object number = nb::steal(PyNumber_Index(value));
  if (!number.is_valid()) throw nb::python_error();
  const long long out = PyLong_AsLongLong(number.ptr());
  if (out == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    fail(ErrorKind::value, what, " does not fit 64 bits: ", nb::repr(number).c_str());
  }
  return out;
}

double read_real(PyObject* value) {
  const double out = PyFloat_AsDouble(value);
  if (out == -1.0 && PyErr_Occurred()) throw nb::python_error();
  return out;
}

std::int64_t read_seconds(PyObject* value, const char* what) {
  const double seconds = read_real(value);
  if (!(seconds >= 0 && seconds <= kLongest_s))
    fail(ErrorKind::value, what, " must be from 0 to ", kLongest_s, " seconds, got ", seconds);
  return static_cast<std::int64_t>(seconds * 1e9);
}

std::string_view read_text(PyObject* value, const char* what) {
  Py_ssize_t size = 0;
  if (!PyUnicode_Check(value))
    fail(ErrorKind::type, "submit: ", what, " must be text, got ", Py_TYPE(value)->tp_name);
  const char* text = PyUnicode_AsUTF8AndSize(value, &size);
  if (!text) throw nb::python_error();
  return {text, static_cast<std::size_t>(size)};
}

// What a submission says besides its function and arguments.
struct Request {
  TaskSpec spec;
  std::vector<TaskId> after;
  PyObject *name = nullptr, *keywords = nullptr, *pool = nullptr;
};

// A task that is done needs no record: its outcome stands in the object.
void read_dependency(SchedulerObject* self, PyObject* value, Request& request) {
  if (!PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(task_classes.task)))
    fail(ErrorKind::type, "submit: after takes tasks, got ", Py_TYPE(value)->tp_name);
  const TaskObject* task = as_task(value);
  if (task->scheduler != self)
    fail(ErrorKind::value, "submit: after: task ", task->id, " belongs to another scheduler");
  if (!task->settled) {
    request.after.push_back(task->id);
  } else if (task->state != TaskState::completed && !request.spec.lost_dependency) {
    request.spec.lost_dependency = task->id;
  }
}

void read_dependencies(SchedulerObject* self, PyObject* value, Request& request) {
  if (PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(task_classes.task)))
    return read_dependency(self, value, request);
  for (nb::handle item : nb::borrow(value)) read_dependency(self, item.ptr(), request);
  request.spec.after = request.after;
}

void read_option(SchedulerObject* self, PyObject* key, PyObject* value, Request& request) {
  TaskSpec& spec = request.spec;
  const int option = option_of(key);
  if (value == Py_None) return;  // None stands for the default of each
  switch (option) {
    case kMemory: spec.estimate_bytes = read_integer(value, "submit: memory_bytes"); break;
    case kPriority: {
      const std::int64_t priority = read_integer(value, "submit: priority");
      spec.priority =
          static_cast<int>(std::clamp<std::int64_t>(priority, -kMaxPriority - 1, kMaxPriority + 1));
      break;
    }
    case kExpected: spec.expected_ns = read_seconds(value, "submit: expected_s"); break;
    case kAfter: read_dependencies(self, value, request); break;
    case kQuality:
      spec.quality = static_cast<TaskQuality>(choice_of(value, kQualities, "submit: quality"));
      break;
    case kGroup: spec.group = read_text(value, "group"); break;
    case kShare: spec.share = read_real(value); break;
    case kTimeout:
      spec.timeout_ns = read_seconds(value, "submit: timeout_s");
      if (spec.timeout_ns == 0) fail(ErrorKind::value, "submit: timeout_s must be above 0");
      break;
    case kName:
      spec.name = read_text(value, "name");
      request.name = value;
      break;
    case kKwargs:
      if (!PyDict_Check(value)) fail(ErrorKind::type, "submit: kwargs must be a dict");
      request.keywords = value;
      break;
    case kPool: request.pool = value; break;
  }
}

PyObject* tuple_of(PyObject* const* items, Py_ssize_t count) {
  PyObject* tuple = PyTuple_New(count);
  if (!tuple) throw nb::python_error();
  for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple, i, Py_NewRef(items[i]));
  return tuple;
}

TaskObject* make_task(SchedulerObject* scheduler, PyObject* function, PyObject* const* args,
                      Py_ssize_t count, const Request& request) {
  // Not tracked by the garbage collector until it is settled: it would look at each of thousands of
  // waiting tasks, and none can be garbage.
  auto* task = PyObject_GC_New(TaskObject, reinterpret_cast<PyTypeObject*>(task_classes.task));
  if (!task) throw nb::python_error();
  task->scheduler = scheduler;
  Py_INCREF(scheduler);
  task->id = 0;
  task->function = Py_NewRef(function);
  task->keywords = Py_XNewRef(request.keywords);
  task->pool = Py_XNewRef(request.pool);
  task->name = Py_XNewRef(request.name);
  task->value = task->error = task->callbacks = task->arguments = nullptr;
  task->state = TaskState::pending;
  task->settled = false;
  if (count) task->arguments = tuple_of(args, count);
  return task;
}

// submit(function, *arguments, **options) -> task. Every nanosecond counts here.
PyObject* submit(PyObject* object, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  SchedulerObject* self = as_scheduler(object);
  return guarded([&]() -> PyObject* {
    if (count == 0 || !PyCallable_Check(args[0])) {
      PyErr_SetString(PyExc_TypeError, "submit: the first argument must be callable");
      return nullptr;
    }
    Request request;
    const Py_ssize_t options = names ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; i < options; ++i)
      read_option(self, PyTuple_GET_ITEM(names, i), args[count + i], request);
    request.spec.after = request.after;
    request.spec.probed = request.pool != nullptr;
    if (!read_clock(self)) return nullptr;
    nb::object task = nb::steal(
        reinterpret_cast<PyObject*>(make_task(self, args[0], args + 1, count - 1, request)));
    request.spec.payload = task.ptr();
    TaskEnds ends;
    as_task(task.ptr())->id = self->core->submit(request.spec, ends);
    Py_INCREF(task.ptr());  // the core's
    if (!ends.empty() && !settle_ends(ends)) return nullptr;
    if (request.spec.timeout_ns && self->watcher) {
      const nb::object watcher = nb::steal(std::exchange(self->watcher, nullptr));
      watcher(nb::handle(object));
    }
    return task.release().ptr();
  });
}

// ---- the workers' side ----

// Without Python's lock, and without a destructor that takes it again: at the interpreter's exit a
// daemon thread ends inside that call, which a destructor must not let through.
template <class F> auto unlocked(F&& body) {
  PyThreadState* state = PyEval_SaveThread();
  decltype(body()) result{};
  std::exception_ptr error;
  try {
    result = body();
  } catch (const std::exception&) {
    error = std::current_exception();
  }
  PyEval_RestoreThread(state);
  if (error) std::rethrow_exception(error);
  return result;
}

// take(worker, timeout_s=None) -> task or None
PyObject* take(PyObject* object, PyObject* const* args, Py_ssize_t count) {
  SchedulerObject* self = as_scheduler(object);
  return guarded([&]() -> PyObject* {
    if (count < 1 || count > 2) fail(ErrorKind::type, "take: expected a worker and a time limit");
    const auto worker = static_cast<int>(read_integer(args[0], "take: worker"));
    const bool waits = count < 2 || args[1] == Py_None;
    const std::int64_t limit = waits ? -1 : read_seconds(args[1], "take: timeout_s");
    if (!read_clock(self)) return nullptr;
    const Scheduler::Taken taken = unlocked([&] { return self->core->take(worker, limit); });
    // Still the core's; the worker settles it.
    return Py_NewRef(taken ? static_cast<PyObject*>(taken.payload) : Py_None);
  });
}

// finish(task, state): ends a task that was taken without calling its function.
PyObject* finish(PyObject* object, PyObject* const* args, Py_ssize_t count) {
  SchedulerObject* self = as_scheduler(object);
  return guarded([&]() -> PyObject* {
    if (count != 2 ||
        !PyObject_TypeCheck(args[0], reinterpret_cast<PyTypeObject*>(task_classes.task)))
      fail(ErrorKind::type, "finish: expected a task and its state");
    constexpr const char* kEnds[] = {"completed", "failed", "cancelled"};
    const auto state = static_cast<TaskState>(static_cast<int>(TaskState::completed) +
                                              choice_of(args[1], kEnds, "finish: state"));
    TaskObject* task = as_task(args[0]);
    if (!read_clock(self)) return nullptr;
    const TaskEnds ends = self->core->finish(task->id, state);
    settle(task, state, nullptr, nullptr);
    Py_DECREF(task);  // the core's
    if (!settle_ends(ends)) return nullptr;
    Py_RETURN_NONE;
  });
}

PyObject* expire(PyObject* object, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (!read_clock(as_scheduler(object))) return nullptr;
    const TaskEnds ends = as_scheduler(object)->core->expire();
    if (!settle_ends(ends)) return nullptr;
    return PyLong_FromSize_t(ends.size());
  });
}

// await_deadline() -> False when closed and nothing is left
PyObject* await_deadline(PyObject* object, PyObject*) {
  return guarded([&]() -> PyObject* {
    return PyBool_FromLong(unlocked([&] { return as_scheduler(object)->core->await_deadline(); }));
  });
}

PyObject* close(PyObject* object, PyObject* cancel) {
  const int truth = PyObject_IsTrue(cancel);
  if (truth < 0 || !read_clock(as_scheduler(object))) return nullptr;
  return guarded([&]() -> PyObject* {
    if (!settle_ends(as_scheduler(object)->core->close(truth))) return nullptr;
    Py_RETURN_NONE;
  });
}

// await_idle(seconds) -> whether nothing is pending or running
PyObject* await_idle(PyObject* object, PyObject* seconds) {
  return guarded([&]() -> PyObject* {
    const std::int64_t limit = read_seconds(seconds, "wait: timeout");
    return PyBool_FromLong(unlocked([&] { return as_scheduler(object)->core->await_idle(limit); }));
  });
}

PyObject* set_use(PyObject* object, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 2) fail(ErrorKind::type, "set_use: expected a task and bytes");
    as_scheduler(object)->core->set_use(as_task(args[0])->id,
                                        read_integer(args[1], "set_use: bytes"));
    Py_RETURN_NONE;
  });
}

PyObject* records(PyObject* object, PyObject*) {
  return guarded([&]() -> PyObject* {
    nb::list out;
    for (const TaskFigures& figures : as_scheduler(object)->core->records())
      out.append(nb::steal(figures_dictionary(figures)));
    return out.release().ptr();
  });
}

PyObject* figures(PyObject* object, PyObject*) {
  return guarded([&]() -> PyObject* {
    const SchedulerFigures f = as_scheduler(object)->core->figures();
    nb::dict out;
    out["submitted"] = f.submitted;
    out["pending"] = f.pending;
    out["running"] = f.running;
    out["completed"] = f.completed;
    out["failed"] = f.failed;
    out["cancelled"] = f.cancelled;
    out["memory_bytes"] = f.charged_bytes;
    out["peak_memory_bytes"] = f.peak_charged_bytes;
    out["throughput_per_s"] = f.throughput_per_s;
    out["mean_wait_ns"] = f.mean_wait_ns;
    out["p95_wait_ns"] = f.p95_wait_ns;
    return out.release().ptr();
  });
}

// ---- making and ending ----

std::int64_t read_probe(void* context, TaskId id) {
  // Called by take without Python's lock.
  const PyGILState_STATE state = PyGILState_Ensure();
  std::int64_t bytes = -1;
  TaskObject* task = nullptr;
  for (TaskObject* pooled : *static_cast<SchedulerObject*>(context)->pooled)
    if (pooled->id == id) task = pooled;
  if (task) {
    PyObject* pool = Py_NewRef(task->pool);
    PyObject* result = guarded([&]() -> PyObject* {
      const nb::object stats = nb::handle(pool).attr("stats")();
      bytes = nb::cast<std::int64_t>(stats["live_bytes"]);
      return Py_None;
    });
    if (!result) PyErr_WriteUnraisable(pool);
    Py_DECREF(pool);
  }
  PyGILState_Release(state);
  return bytes;
}

std::int64_t injected_now(void* context) { return static_cast<SchedulerObject*>(context)->read_ns; }

// _Scheduler(memory_bytes, policy, aging_s, history, clock, watcher)
PyObject* construct(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *memory, *policy, *aging, *clock, *watcher;
  Py_ssize_t history;
  if (!PyArg_ParseTuple(args, "OOOnOO", &memory, &policy, &aging, &history, &clock, &watcher))
    return nullptr;
  nb::object self = nb::steal(type->tp_alloc(type, 0));
  if (!self.is_valid()) return nullptr;
  return guarded([&]() -> PyObject* {
    SchedulerObject* scheduler = as_scheduler(self.ptr());
    SchedulerOptions options;
    if (memory != Py_None) {
      options.memory_bytes = read_integer(memory, "Scheduler: memory_bytes");
      if (options.memory_bytes < 1)
        fail(ErrorKind::value, "Scheduler: memory_bytes must be at least 1, got ",
             options.memory_bytes);
    }
    options.policy = static_cast<TaskPolicy>(choice_of(policy, kPolicies, "Scheduler: policy"));
    options.aging_ns = aging == Py_None ? 0 : read_seconds(aging, "Scheduler: aging_s");
    if (history < 1) fail(ErrorKind::value, "Scheduler: history must be at least 1, got ", history);
    options.history = static_cast<std::size_t>(history);
    options.probe = read_probe;
    options.context = scheduler;
    if (clock != Py_None) {
      scheduler->clock = Py_NewRef(clock);
      options.clock = injected_now;
    }
    scheduler->watcher = Py_NewRef(watcher);
    scheduler->pooled = new std::vector<TaskObject*>;
    scheduler->core = new Scheduler(options);
    return self.release().ptr();
  });
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_scheduler(self)->clock);
  Py_VISIT(as_scheduler(self)->watcher);
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(as_scheduler(self)->clock);
  Py_CLEAR(as_scheduler(self)->watcher);
  return 0;
}

void deallocate(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clear(self);
  delete as_scheduler(self)->core;
  delete as_scheduler(self)->pooled;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

template <class F> PyCFunction function(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}

PyMethodDef methods[] = {
    {"submit", function(submit), METH_FASTCALL | METH_KEYWORDS,
     "Hands over a call; its task is the outcome."},
    {"take", function(take), METH_FASTCALL, "The next task, now running; waits for one."},
    {"finish", function(finish), METH_FASTCALL, "Ends a taken task without a call."},
    {"expire", expire, METH_NOARGS, "Ends what has passed its time limit; how many."},
    {"await_deadline", await_deadline, METH_NOARGS, "Sleeps until a time limit passes."},
    {"close", close, METH_O, "Takes no more submissions; cancels what is left where told."},
    {"await_idle", await_idle, METH_O, "Waits until nothing is pending or running."},
    {"set_use", function(set_use), METH_FASTCALL, "Tells a running task's real use."},
    {"records", records, METH_NOARGS, "The kept records, oldest first."},
    {"figures", figures, METH_NOARGS, "Figures of the whole scheduler."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("The scheduler's bookkeeping.")},
                       {Py_tp_new, task_slot(construct)},
                       {Py_tp_dealloc, task_slot(deallocate)},
                       {Py_tp_traverse, task_slot(traverse)},
                       {Py_tp_clear, task_slot(clear)},
                       {Py_tp_methods, methods},
                       {0, nullptr}};

PyType_Spec spec = {"tilewright._core._Scheduler", sizeof(SchedulerObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

}  // namespace

bool read_clock(SchedulerObject* scheduler) {
  if (!scheduler->clock) return true;
  PyObject* time = PyObject_CallNoArgs(scheduler->clock);
  if (!time) return false;
  const long long ns = PyLong_AsLongLong(time);
  Py_DECREF(time);
  if (ns == -1 && PyErr_Occurred()) return false;
  scheduler->read_ns = ns;
  return true;
}

PyObject* figures_dictionary(const TaskFigures& f) {
  const auto past = [](std::int64_t ns) { return ns < 0 ? nb::none() : nb::object(nb::int_(ns)); };
  const auto span = [&](std::int64_t from, std::int64_t to) {
    return from < 0 || to < 0 ? nb::none() : nb::object(nb::int_(to - from));
  };
  nb::dict out;
  out["id"] = f.id;
  out["name"] = nb::str(f.name.data(), f.name.size());
  out["state"] = name_of(f.state);
  out["quality"] = kQualities[static_cast<int>(f.quality)];
  out["worker"] = f.worker < 0 ? nb::none() : nb::object(nb::int_(f.worker));
  out["submitted_ns"] = f.submitted_ns;
  out["started_ns"] = past(f.started_ns);
  out["ended_ns"] = past(f.ended_ns);
  out["wait_ns"] = span(f.submitted_ns, f.started_ns);
  out["run_ns"] = span(f.started_ns, f.ended_ns);
  out["estimate_bytes"] = f.estimate_bytes;
  out["use_bytes"] = f.use_bytes;
  out["peak_use_bytes"] = f.peak_use_bytes;
  return out.release().ptr();
}

void bind_scheduler(nb::module_& m) {
  for (int i = 0; i < kOptions; ++i) option_keys[i] = PyUnicode_InternFromString(kOptionNames[i]);
  m.attr("_Task") = nb::borrow(reinterpret_cast<PyObject*>(create_task_type()));
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) throw nb::python_error();
  m.attr("_Scheduler") = nb::steal(type);
  m.def(
      "_set_task_classes",
      [](nb::object task, nb::object cancelled, nb::object ended_error, nb::object run_in_pool) {
        task_classes = {task.release().ptr(), cancelled.release().ptr(),
                        ended_error.release().ptr(), run_in_pool.release().ptr()};
      },
      nb::arg("task"), nb::arg("cancelled"), nb::arg("ended_error"), nb::arg("run_in_pool"),
      "What submissions are made of: once, before the first scheduler.");
  m.def(
      "_current_task", [] { return nb::steal(current_task_object()); },
      "The task that this thread runs, or None.");
}

}  // namespace tw::binding
