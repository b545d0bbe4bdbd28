// The stream of events, as dicts by kind.
#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "binding/tensor/casters.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"
#include "core/memory/events.h"
#include "core/memory/texts.h"
#include "core/runtime/launch.h"
#include "core/runtime/mode_changes.h"
#include "core/runtime/registry.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

nb::dict describe(const Candidate& candidate) {
  nb::dict out;
  out["name"] = candidate.kernel->name;
  out["accepted"] = candidate.accepted;
  out["reason"] = candidate.reason;
  out["cost_ns"] = candidate.accepted ? nb::object(nb::float_(candidate.cost_ns)) : nb::none();
  out["chosen"] = candidate.chosen;
  out["error"] = or_none(candidate.kernel->error);
  nb::list terms;
  for (const CostTerm& term : candidate.terms) terms.append(nb::make_tuple(term.name, term.ns));
  out["terms"] = nb::tuple(terms);
  return out;
}

nb::dict describe(const Event& event) {
  nb::dict out;
  out["kind"] = kEventNames[static_cast<int>(event.kind)];
  out["start_ns"] = event.start_ns;
  out["ns"] = event.ns;
  out["thread"] = event.thread;
  out["device"] = event.device;
  const bool named = event.details && !event.details->name.empty();
  out["op"] = named ? event.details->name.c_str() : event.op;
  out["module"] = event.module;
  out["source"] = event.source;
  if (event.kind == EventKind::task) {
    out["task"] = event.number;
    out["state"] = event.kernel;
  } else if (event.kind == EventKind::copy) {
    out["direction"] = event.kernel;
    out["bytes"] = static_cast<std::int64_t>(event.bytes);
  } else if (event.kind == EventKind::op) {
    out["bytes"] = event.bytes;
    out["kernel"] = event.kernel;
    out["isa"] = event.isa;
    out["problem"] = event.problem;
    out["flops"] = event.flops;
    out["backward"] = event.backward;
    nb::list candidates;
    if (event.details)
      for (const Candidate& each : event.details->candidates) candidates.append(describe(each));
    out["candidates"] = candidates;
    nb::list optimizations;
    for (const OptimizationRow& row : kOptimizationRows)
      if (event.details && event.details->optimizations.has(id_of(row)))
        optimizations.append(row.name);
    out["optimizations"] = nb::tuple(optimizations);
    nb::list inner;
    for (const Kernel* kernel : event.details ? event.details->inner : std::vector<const Kernel*>())
      inner.append(std::string(kernel->op) + " " + kernel->name);
    out["inner"] = nb::tuple(inner);
  } else {
    out["bytes"] = static_cast<std::int64_t>(event.bytes);
    out["block"] = event.number;
    out["live_bytes"] = event.live_bytes;
    out["tensor"] = event.problem;
  }
  return out;
}

// What observing an op adds to its time, of `count` that do nothing: the least of them.
std::int64_t least_observed_ns(int count) {
  const auto observer = std::make_shared<Observer>(Observer::Options{.alone = true});
  observe(observer);
  for (int i = 0; i < count; ++i) run_prepared({}, [] {}, [](Event&) {});
  stop_observing(observer.get());
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const Event& event : observer->stop()) least = std::min(least, event.ns);
  return least;
}

EventKinds read_kinds(const std::vector<std::string>& names) {
  EventKinds kinds = 0;
  for (int i = 0; i < static_cast<int>(std::size(kEventNames)); ++i)
    for (const std::string& name : names)
      if (name == kEventNames[i]) kinds |= kinds_of(static_cast<EventKind>(i));
  return kinds;
}

// An observer of the thread that made it, or of all.
class Observing {
 public:
  Observing(const Observer::Options& options, bool everywhere)
      : observer_(std::make_shared<Observer>(options)), everywhere_(everywhere) {
    if (everywhere_)
      observe_everywhere(observer_);
    else
      observe(observer_);
  }
  // One that is dropped must not be notified for ever.
  ~Observing() {
    end();
    observer_->stop();
  }
  Observing(const Observing&) = delete;
  Observing& operator=(const Observing&) = delete;

  // On any thread; on the one that observes, ops cost nothing more at once.
  nb::list stop() {
    if (tell_late_events) tell_late_events();
    end();
    nb::list out;
    for (const Event& event : observer_->stop()) out.append(describe(event));
    return out;
  }
  std::int64_t dropped() const { return observer_->dropped(); }
  std::int64_t began_ns() const { return observer_->began_ns; }

 private:
  void end() {
    if (everywhere_)
      stop_observing_everywhere(observer_.get());
    else
      stop_observing(observer_.get());
  }
  const std::shared_ptr<Observer> observer_;
  const bool everywhere_;
};

// Lines of files in here are not the user's.
std::string package_folder;

// ---- the user's line, for every event and every launch of a GPU ----

// Texts of places in code, found again by the place: a frame costs 40 ns, a place here a few more.
struct KnownPosition {
  PyObject* code = nullptr;  // owned, so that no other one gets its address
  int instruction = 0;
  const char* text = "";  // empty: the package's own
};
KnownPosition known_positions[1024];

// Code that no place names any more. It goes when nothing else is going on: whatever is told as it
// goes must not run where events come from, which hold locks.
std::vector<PyObject*> parted_codes;
int drop_parted_codes(void*) {
  const std::vector<PyObject*> parted = std::exchange(parted_codes, {});
  for (PyObject* const code : parted) Py_DECREF(code);
  return 0;
}

int instruction_of(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyFrame_GetLasti(frame);
#else
  return PyFrame_GetLineNumber(frame);
#endif
}

const char* text_of(PyFrameObject* frame, PyObject* code) {
  const char* file = PyUnicode_AsUTF8(reinterpret_cast<PyCodeObject*>(code)->co_filename);
  if (!file || std::string_view(file).starts_with(package_folder)) return "";
  return lasting(file + (":" + std::to_string(PyFrame_GetLineNumber(frame))));
}

const char* line_of(PyFrameObject* frame) {
  PyObject* code = reinterpret_cast<PyObject*>(PyFrame_GetCode(frame));
  const int instruction = instruction_of(frame);
  const std::size_t hash =
      (reinterpret_cast<std::uintptr_t>(code) >> 4) * 31 + static_cast<std::size_t>(instruction);
  KnownPosition& known = known_positions[hash % std::size(known_positions)];
  if (known.code == code && known.instruction == instruction) {
    Py_DECREF(code);
    return known.text;
  }
  if (known.code) {
    if (parted_codes.empty()) Py_AddPendingCall(drop_parted_codes, nullptr);
    parted_codes.push_back(known.code);
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);  // memory is also released while an error is on its way
  known = {code, instruction, text_of(frame, code)};
  PyErr_Restore(type, value, trace);
  return known.text;
}

// The innermost line of the running Python program that is not the package's own. Runs no Python
// code, and lets neither the collector nor signals or other threads in: events are published while
// locks are held and while memory is being released.
const char* python_line() {
  if (!PyGILState_Check()) return "";
#if PY_VERSION_HEX < 0x030C0000  // later ones collect between two instructions of Python alone
  const bool collected = PyGC_Disable();
#endif
  const char* text = "";
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame && !*(text = line_of(frame))) Py_SETREF(frame, PyFrame_GetBack(frame));
  Py_XDECREF(frame);
#if PY_VERSION_HEX < 0x030C0000
  if (collected) PyGC_Enable();
#endif
  return text;
}

}  // namespace

void bind_events(nb::module_& m) {
  source_line = python_line;
  nb::class_<Observing>(m, "_Observing",
                        "Observes events of some kinds, of the thread that makes it or of all.")
      .def(
          "__init__",
          [](Observing* self, const std::vector<std::string>& kinds, bool alone, bool everywhere,
             std::int64_t capacity) {
            new (self) Observing({read_kinds(kinds), alone, static_cast<std::size_t>(capacity)},
                                 everywhere);
          },
          "kinds"_a = std::vector<std::string>{"op"}, "alone"_a = false, "everywhere"_a = false,
          "capacity"_a = std::numeric_limits<std::int64_t>::max())
      .def("stop", &Observing::stop, "Ends it, on any thread; what was observed.")
      .def_prop_ro("dropped", &Observing::dropped, "Oldest events that did not fit the capacity.")
      .def_prop_ro("began_ns", &Observing::began_ns);
  m.def("_set_package_folder", [](std::string path) { package_folder = std::move(path); });
  m.def("_least_observed_ns", least_observed_ns, "count"_a,
        "What observing an op adds to its time, of some that do nothing.");
  m.def("_observed", observed, "Whether anybody observes what this thread does.");
  m.def(
      "_set_module", [](const std::string& path) { return set_module(lasting(path)); }, "path"_a,
      "Names the module whose forward this thread runs; returns the name before.");
}

}  // namespace tw::binding
