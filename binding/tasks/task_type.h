// The Python types of the scheduler: a task's outcome, and the core's bookkeeping with what Python
// adds to it. Both are CPython types of their own: a submission costs less than a wrapper would.
#pragma once
#include <nanobind/nanobind.h>

#include <atomic>
#include <vector>

#include "core/runtime/mode_changes.h"
#include "core/runtime/tasks/scheduler.h"

namespace nb = nanobind;

namespace tw::binding {

struct TaskObject;

struct SchedulerObject {
  PyObject_HEAD Scheduler* core;
  PyObject* clock;                    // callable that gives nanoseconds; null: the core's own
  PyObject* watcher;                  // called once, when the first task with a time limit comes
  std::atomic<std::int64_t> read_ns;  // what `clock` said last
  std::vector<TaskObject*>* pooled;   // running tasks with a pool of their own
};

// Until it is settled the core owns one reference to it.
struct TaskObject {
  PyObject_HEAD SchedulerObject* scheduler;
  TaskId id;
  PyObject *function, *arguments, *keywords, *pool;  // dropped when it is settled
  PyObject *name, *value, *error, *callbacks;
  const InheritedModes* modes;  // the submitter's, owned; null: the defaults
  TaskState state;              // once settled
  bool settled;
};

// What submit() makes, set from Python before the first scheduler is made.
struct TaskClasses {
  PyObject* task;         // the class of tasks, derived from _core._Task
  PyObject* cancelled;    // the exception class that says a task was cancelled
  PyObject* ended_error;  // (task, cause, blame) -> exception
  PyObject* run_in_pool;  // (pool, function, arguments, keywords) -> result
};
extern TaskClasses task_classes;

PyTypeObject* create_task_type();

// False with an error set where a task's own could not be made.
bool settle_ends(const TaskEnds& ends);
void settle(TaskObject* task, TaskState state, PyObject* value, PyObject* error);
// Reads the injected clock before the core does. False with an error set where it fails.
bool read_clock(SchedulerObject* scheduler);
PyObject* figures_dictionary(const TaskFigures& figures);
const char* name_of(TaskCause cause);
PyObject* current_task_object();

inline SchedulerObject* as_scheduler(PyObject* object) {
  return reinterpret_cast<SchedulerObject*>(object);
}
inline TaskObject* as_task(PyObject* object) { return reinterpret_cast<TaskObject*>(object); }

// Errors of the core as Python's.
void raise_error(const std::exception& error);
template <class F> PyObject* guarded(F&& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    raise_error(error);
    return nullptr;
  }
}
template <class F> PyCFunction method_slot(F* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}
template <class F> void* task_slot(F* function) { return reinterpret_cast<void*>(function); }

}  // namespace tw::binding
