// The scheduler's bookkeeping as a Python type: the workers' side, and figures.
#include "binding/tensor/casters.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tasks/submission.h"
#include "binding/tensor/tensor_type.h"

namespace tw::binding {

namespace {

constexpr const char* kPolicies[] = {"fifo", "shortest", "priority"};

// ---- the workers' side ----

// Without Python's lock.
template <class F> auto unlocked(F&& body) {
  const nb::gil_scoped_release others;
  return body();
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

PyMethodDef methods[] = {
    {"submit", method_slot(submit), METH_FASTCALL | METH_KEYWORDS, kSubmitHelp},
    {"take", method_slot(take), METH_FASTCALL, "The next task, now running; waits for one."},
    {"finish", method_slot(finish), METH_FASTCALL, "Ends a taken task without a call."},
    {"expire", expire, METH_NOARGS, "Ends what has passed its time limit; how many."},
    {"await_deadline", await_deadline, METH_NOARGS, "Sleeps until a time limit passes."},
    {"close", close, METH_O, "Takes no more submissions; cancels what is left where told."},
    {"await_idle", await_idle, METH_O, "Waits until nothing is pending or running."},
    {"set_use", method_slot(set_use), METH_FASTCALL, "Tells a running task's real use."},
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
  out["quality"] = kTaskQualities[static_cast<int>(f.quality)];
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
  m.attr("_Task") = nb::borrow(reinterpret_cast<PyObject*>(create_task_type()));
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) throw nb::python_error();
  m.attr("_Scheduler") = nb::steal(type);
  m.attr("_Submitter") = create_submitter_type(reinterpret_cast<PyTypeObject*>(type));
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
