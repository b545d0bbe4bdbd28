// Tasks: what a submission is to Python, from its call to its outcome.
#include "binding/tasks/task_type.h"

#include <structmember.h>

#include "binding/tensor/tensor_type.h"
#include "core/runtime/tasks/task.h"

namespace tw::binding {

TaskClasses task_classes;

namespace {

thread_local TaskObject* running_task = nullptr;

int traverse(PyObject* self, visitproc visit, void* arg) {
  const TaskObject* task = as_task(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(task->scheduler);
  for (PyObject* part : {task->function, task->arguments, task->keywords, task->pool, task->name,
                         task->value, task->error, task->callbacks})
    Py_VISIT(part);
  return 0;
}

void drop_call(TaskObject* task) {
  Py_CLEAR(task->function);
  Py_CLEAR(task->arguments);
  Py_CLEAR(task->keywords);
  Py_CLEAR(task->pool);
  delete std::exchange(task->modes, nullptr);
}

int clear(PyObject* self) {
  TaskObject* task = as_task(self);
  drop_call(task);
  Py_CLEAR(task->name);
  Py_CLEAR(task->value);
  Py_CLEAR(task->error);
  Py_CLEAR(task->callbacks);
  return 0;
}

void deallocate(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clear(self);
  Py_CLEAR(as_task(self)->scheduler);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* ended_error(TaskObject* task, TaskCause cause, TaskId blame) {
  return PyObject_CallFunction(task_classes.ended_error, "OsK", task, name_of(cause),
                               static_cast<unsigned long long>(blame));
}

void call_back(PyObject* callback, TaskObject* task) {
  PyObject* result = PyObject_CallOneArg(callback, reinterpret_cast<PyObject*>(task));
  if (!result) PyErr_WriteUnraisable(callback);
  Py_XDECREF(result);
}

// Under the submitter's modes; nothing that the function changes stays with the worker.
PyObject* call(TaskObject* task) {
  const ModesGuard modes(task->modes);
  if (task->pool) {
    const auto part = [](PyObject* x) { return x ? x : Py_None; };
    return PyObject_CallFunctionObjArgs(task_classes.run_in_pool, task->pool, task->function,
                                        part(task->arguments), part(task->keywords), nullptr);
  }
  if (!task->arguments && !task->keywords) return PyObject_CallNoArgs(task->function);
  if (task->arguments) return PyObject_Call(task->function, task->arguments, task->keywords);
  PyObject* none = PyTuple_New(0);
  PyObject* value = none ? PyObject_Call(task->function, none, task->keywords) : nullptr;
  Py_XDECREF(none);
  return value;
}

// The exception in flight, with its traceback.
PyObject* take_exception() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return value;
}

// The name in timelines: as given, else the function's own.
void label(TaskObject* task) {
  if (!task->name) task->name = PyObject_GetAttrString(task->function, "__qualname__");
  if (!task->name) PyErr_Clear();
  Py_ssize_t size = 0;
  const char* text =
      task->name && PyUnicode_Check(task->name) ? PyUnicode_AsUTF8AndSize(task->name, &size) : "";
  if (!text) PyErr_Clear();
  if (text && size) task->scheduler->core->set_name(task->id, {text, static_cast<size_t>(size)});
}

PyObject* report_end(TaskObject* task, TaskState state, PyObject* value, PyObject* error) {
  return guarded([&]() -> PyObject* {
    if (error && PyErr_GivenExceptionMatches(error, task_classes.cancelled) &&
        task->scheduler->core->stop_cause(task->id) == TaskCause::request)
      state = TaskState::cancelled;
    const TaskEnds ends = task->scheduler->core->finish(task->id, state);
    settle(task, state, value, error);
    Py_DECREF(task);  // the core's
    return settle_ends(ends) ? Py_NewRef(Py_None) : nullptr;
  });
}

// Waits for what the task has in flight on GPUs. What fails there is the task's error, unless it
// has one.
void await_launches(TaskObject* task, PyObject*& value, PyObject*& error) {
  const auto finish = finish_launches.load(std::memory_order_acquire);
  if (!finish || guarded([&] { return finish(task->id), Py_None; })) return;
  if (error) return PyErr_Clear();
  Py_CLEAR(value);
  error = take_exception();
}

// _run(): calls the function and settles the task, on the thread that took it.
PyObject* run(PyObject* self, PyObject*) {
  TaskObject* task = as_task(self);
  Py_INCREF(self);
  if (task->settled) {  // its time was up between take and here
    PyObject* result = report_end(task, TaskState::failed, nullptr, nullptr);
    Py_DECREF(self);
    return result;
  }
  label(task);
  TaskObject* outer = std::exchange(running_task, task);
  const TaskId outer_id = std::exchange(current_task, task->id);
  if (task->pool) task->scheduler->pooled->push_back(task);
  PyObject* value = call(task);
  PyObject* error = value ? nullptr : take_exception();
  await_launches(task, value, error);
  if (task->pool) std::erase(*task->scheduler->pooled, task);
  running_task = outer;
  current_task = outer_id;
  PyObject* result = nullptr;
  if (read_clock(task->scheduler))
    result = report_end(task, value ? TaskState::completed : TaskState::failed, value, error);
  Py_XDECREF(value);
  Py_XDECREF(error);
  Py_DECREF(self);
  return result;
}

PyObject* done(PyObject* self, PyObject*) { return PyBool_FromLong(as_task(self)->settled); }

PyObject* cancel(PyObject* self, PyObject*) {
  TaskObject* task = as_task(self);
  if (task->settled) Py_RETURN_FALSE;
  if (!read_clock(task->scheduler)) return nullptr;
  return guarded([&]() -> PyObject* {
    TaskEnds ends;
    const bool reached = task->scheduler->core->cancel(task->id, ends);
    if (!settle_ends(ends)) return nullptr;
    return PyBool_FromLong(reached);
  });
}

// check(): raises where the task was asked to stop.
PyObject* check(PyObject* self, PyObject*) {
  TaskObject* task = as_task(self);
  return guarded([&]() -> PyObject* {
    const TaskCause cause = task->scheduler->core->stop_cause(task->id);
    if (cause == TaskCause::none) Py_RETURN_NONE;
    PyObject* error = ended_error(task, cause, 0);
    if (!error) return nullptr;
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
    Py_DECREF(error);
    return nullptr;
  });
}

PyObject* add_done_callback(PyObject* self, PyObject* callback) {
  TaskObject* task = as_task(self);
  if (!PyCallable_Check(callback)) {
    PyErr_Format(PyExc_TypeError, "add_done_callback: %R is not callable", callback);
    return nullptr;
  }
  if (task->settled) {
    call_back(callback, task);
    Py_RETURN_NONE;
  }
  if (!task->callbacks && !(task->callbacks = PyList_New(0))) return nullptr;
  if (PyList_Append(task->callbacks, callback) < 0) return nullptr;
  Py_RETURN_NONE;
}

PyObject* figures(PyObject* self, PyObject*) {
  const TaskObject* task = as_task(self);
  return guarded([&] { return figures_dictionary(task->scheduler->core->figures(task->id)); });
}

PyObject* get_id(PyObject* self, void*) { return PyLong_FromUnsignedLongLong(as_task(self)->id); }

PyObject* get_state(PyObject* self, void*) {
  const TaskObject* task = as_task(self);
  return guarded([&] {
    return PyUnicode_FromString(
        name_of(task->settled ? task->state : task->scheduler->core->state(task->id)));
  });
}

PyObject* get_name(PyObject* self, void*) {
  const TaskObject* task = as_task(self);
  if (task->name) return Py_NewRef(task->name);
  if (!task->function) Py_RETURN_NONE;
  PyObject* name = PyObject_GetAttrString(task->function, "__qualname__");
  if (name) return name;
  PyErr_Clear();
  return PyObject_Repr(task->function);
}

PyObject* or_none(PyObject* object) { return Py_NewRef(object ? object : Py_None); }
PyObject* get_value(PyObject* self, void*) { return or_none(as_task(self)->value); }
PyObject* get_error(PyObject* self, void*) { return or_none(as_task(self)->error); }

PyMethodDef methods[] = {
    {"_run", run, METH_NOARGS, "Calls the function; for the worker that took the task."},
    {"done", done, METH_NOARGS, "Whether the outcome is known."},
    {"cancel", cancel, METH_NOARGS,
     "Ends a pending task and asks a running one to stop; False when it is done already."},
    {"check", check, METH_NOARGS, "Raises where the task was asked to stop."},
    {"add_done_callback", add_done_callback, METH_O,
     "Calls a function with the task when it is done, or now when it is done already."},
    {"_figures", figures, METH_NOARGS, "The core's record as a dict."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef properties[] = {
    {"id", get_id, nullptr, "Number of the task in its scheduler: 1, 2, 3, ...", nullptr},
    {"state", get_state, nullptr, "pending, running, completed, failed or cancelled.", nullptr},
    {"name", get_name, nullptr, "The name given, else the function's own.", nullptr},
    {"_value", get_value, nullptr, "What the function returned.", nullptr},
    {"_error", get_error, nullptr, "Why there is no value; None where there is one.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("The outcome of a submission, native part.")},
                       {Py_tp_dealloc, task_slot(deallocate)},
                       {Py_tp_traverse, task_slot(traverse)},
                       {Py_tp_clear, task_slot(clear)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, properties},
                       {0, nullptr}};

PyType_Spec spec = {"tilewright._core._Task", sizeof(TaskObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
                        Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

}  // namespace

void raise_error(const std::exception& error) {
  if (const auto* ours = dynamic_cast<const Error*>(&error)) {
    set_error(*ours);
  } else if (const auto* python = dynamic_cast<const nb::python_error*>(&error)) {
    const_cast<nb::python_error*>(python)->restore();
  } else {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

const char* name_of(TaskCause cause) {
  constexpr const char* kNames[] = {"none", "request", "dependency", "timeout"};
  return kNames[static_cast<int>(cause)];
}

void settle(TaskObject* task, TaskState state, PyObject* value, PyObject* error) {
  if (task->settled) return;
  task->settled = true;
  task->state = state;
  task->value = Py_XNewRef(value);
  task->error = Py_XNewRef(error);
  drop_call(task);
  // Only now can a cycle lead through it: until here the core held it.
  if (!PyObject_GC_IsTracked(reinterpret_cast<PyObject*>(task))) PyObject_GC_Track(task);
  PyObject* callbacks = std::exchange(task->callbacks, nullptr);
  if (!callbacks) return;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(callbacks); ++i)
    call_back(PyList_GET_ITEM(callbacks, i), task);
  Py_DECREF(callbacks);
}

bool settle_ends(const TaskEnds& ends) {
  bool made = true;
  for (const TaskEnd& end : ends) {
    auto* task = static_cast<TaskObject*>(end.payload);
    PyObject* error = ended_error(task, end.cause, end.blame);
    made = made && error;
    settle(task, end.state, nullptr, error);
    Py_XDECREF(error);
    if (!end.running) Py_DECREF(task);
  }
  return made;
}

PyTypeObject* create_task_type() { return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec)); }

PyObject* current_task_object() {
  return Py_NewRef(running_task ? reinterpret_cast<PyObject*>(running_task) : Py_None);
}

}  // namespace tw::binding
