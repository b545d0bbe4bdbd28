// The options of a submission, its task, and `submit` itself, where every nanosecond counts.
#include "binding/tasks/submission.h"

#include <structmember.h>

#include <algorithm>

#include "binding/tensor/text.h"

namespace tw::binding {

namespace {

constexpr double kLongest_s = 4e9;  // 127 years: nanoseconds of it fit 62 bits

PyTypeObject* native_scheduler;

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

int option_of(PyObject* key) {
  for (int i = 0; i < kOptions; ++i)
    if (key == option_keys[i]) return i;
  for (int i = 0; i < kOptions; ++i)
    if (PyUnicode_Compare(key, option_keys[i]) == 0) return i;
  std::string known;
  for (const char* name : kOptionNames) known += (known.empty() ? "" : ", ") + std::string(name);
  fail(ErrorKind::type, "submit: no option '", utf8_of(key), "'; known: ", known,
       "; keywords of the function itself go into kwargs={...}");
}

double read_real(PyObject* value) {
  const double out = PyFloat_AsDouble(value);
  if (out == -1.0 && PyErr_Occurred()) throw nb::python_error();
  return out;
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
      spec.quality = static_cast<TaskQuality>(choice_of(value, kTaskQualities, "submit: quality"));
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
  task->modes = nullptr;
  task->value = task->error = task->callbacks = task->arguments = nullptr;
  task->state = TaskState::pending;
  task->settled = false;
  task->modes = inherited_modes().release();
  if (count) task->arguments = tuple_of(args, count);
  return task;
}

}  // namespace

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

const char kSubmitHelp[] =
    R"(Hands over `fn(*args, **kwargs)`; returns its `Task`.

`memory_bytes` is what it will need. `quality` says what it counts while it runs: "guaranteed" that
estimate, "burstable" the estimate or its real use where that is larger, "best_effort" its real use,
so that it starts as soon as anything is free. Real use is known of tasks with a `pool` (a
`tw.memory.Pool`), which the function runs in. `after`: tasks that must complete first; when one
does not, this one is cancelled. Tasks of a `group` with a `share` below 1 run one at a time and
take at most that share of the time. `timeout_s` counts from now; then waiters get TimeoutError and
the function is asked to stop, which `current_task().check()` tells it.

Raises ValueError for what can never run, such as an estimate above the whole budget, and
RuntimeError when closed or in a forked child.

>>> import tilewright as tw
>>> with tw.runtime.Scheduler() as scheduler:
...     first = scheduler.submit(sum, [1, 2, 3])
...     scheduler.submit(abs, -first.result(), after=first).result()
6)";

namespace {

struct SubmitterObject {
  PyObject_HEAD PyObject* core;
};

PyObject* submit_through(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  PyObject* core = reinterpret_cast<SubmitterObject*>(self)->core;
  if (core && Py_TYPE(core) == native_scheduler) return submit(core, args, count, names);
  if (!core) {
    PyErr_SetString(PyExc_RuntimeError, "submit: Scheduler.__init__ was not called");
    return nullptr;
  }
  PyObject* method = PyObject_GetAttrString(core, "submit");
  if (!method) return nullptr;
  PyObject* task = PyObject_Vectorcall(method, args, static_cast<std::size_t>(count), names);
  Py_DECREF(method);
  return task;
}

void deallocate_submitter(PyObject* self) {
  Py_CLEAR(reinterpret_cast<SubmitterObject*>(self)->core);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef submitter_methods[] = {
    {"submit", method_slot(submit_through), METH_FASTCALL | METH_KEYWORDS, kSubmitHelp},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef submitter_members[] = {
    {"_core", T_OBJECT_EX, offsetof(SubmitterObject, core), 0, "The bookkeeping."},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot submitter_slots[] = {{Py_tp_doc, const_cast<char*>("Native part of Scheduler.")},
                                 {Py_tp_dealloc, task_slot(deallocate_submitter)},
                                 {Py_tp_methods, submitter_methods},
                                 {Py_tp_members, submitter_members},
                                 {0, nullptr}};

PyType_Spec submitter_spec = {"tilewright._core._Submitter", sizeof(SubmitterObject), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, submitter_slots};

}  // namespace

std::int64_t read_integer(PyObject* value, const char* what) {
  if (PyLong_CheckExact(value)) {
    int overflow = 0;
    const long long out = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (!overflow) return out;
  }
  const nb::object number = nb::steal(PyNumber_Index(value));
  if (!number.is_valid()) throw nb::python_error();
  const long long out = PyLong_AsLongLong(number.ptr());
  if (out == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    fail(ErrorKind::value, what, " does not fit 64 bits: ", nb::repr(number).c_str());
  }
  return out;
}

std::int64_t read_seconds(PyObject* value, const char* what) {
  const double seconds = read_real(value);
  if (!(seconds >= 0 && seconds <= kLongest_s))
    fail(ErrorKind::value, what, " must be from 0 to ", kLongest_s, " seconds, got ", seconds);
  return static_cast<std::int64_t>(seconds * 1e9);
}

nb::object create_submitter_type(PyTypeObject* scheduler_type) {
  native_scheduler = scheduler_type;
  for (int i = 0; i < kOptions; ++i) option_keys[i] = PyUnicode_InternFromString(kOptionNames[i]);
  PyObject* type = PyType_FromSpec(&submitter_spec);
  if (!type) throw nb::python_error();
  return nb::steal(type);
}

}  // namespace tw::binding
