// Recorded calls, in the private interface: tests and tools use it.
#include <nanobind/stl/vector.h>

#include "binding/tensor/casters.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"
#include "core/autograd/capture.h"
#include "core/base/error.h"
#include "core/runtime/registry.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

std::vector<Tensor> tensors_of(nb::handle result) {
  std::vector<Tensor> outputs;
  if (result.is_none()) return outputs;
  if (is_tensor(result.ptr()))
    outputs.push_back(raw_tensor(result.ptr()));
  else if (!read_targets(result.ptr(), outputs))
    fail(ErrorKind::type, "capture: the function must return tensors, a sequence of them or None");
  return outputs;
}

// Calls function(*inputs) and records what this thread runs meanwhile; calls it again to see
// whether it does the same.
Captured* capture(nb::callable function, const std::vector<Itself>& inputs) {
  nb::list arguments;
  for (const Tensor& x : inputs) arguments.append(nb::steal(wrap(x)));
  const std::vector<Tensor> tensors(inputs.begin(), inputs.end());
  std::unique_ptr<Captured> captured;
  {
    Capture recording(tensors);
    captured = recording.finish(tensors_of(function(*arguments)));
  }
  Capture rehearsal(tensors, captured.get());
  rehearsal.finish_rehearsal(tensors_of(function(*arguments)));
  return captured.release();
}

nb::list calls_of(const Captured& captured) {
  nb::list calls;
  for (const PreparedCall& call : captured.calls())
    calls.append(nb::make_tuple(call.op->name, call.kernel->name));
  return calls;
}

Annotated<"dict[str, int]"> figures_of(const Captured& captured) {
  const CaptureFigures& figures = captured.figures();
  nb::dict out;
  out["calls"] = figures.calls;
  out["buffers"] = figures.buffers;
  out["arena_bytes"] = figures.arena_bytes;
  out["sum_bytes"] = figures.sum_bytes;
  out["lower_bound_bytes"] = figures.lower_bound_bytes;
  out["graph_launches"] = figures.graph_launches;
  return out;
}

}  // namespace

void bind_capture(nb::module_& m) {
  nb::class_<Captured>(m, "_Captured", "Recorded calls that run again on other inputs.")
      .def(
          "replay",
          [](Captured& captured, const std::vector<Itself>& inputs) {
            return captured.replay(std::vector<Tensor>(inputs.begin(), inputs.end()));
          },
          "inputs"_a, "What the recorded function would return for these inputs.")
      .def(
          "is_current", &Captured::is_current,
          "Whether kernels, precision and autocast are in force as they were when it was recorded.")
      .def("calls", calls_of, "Names of the ops and their kernels, in order.")
      .def("figures", figures_of, "Sizes, in bytes and counts.");
  m.def(
      "_refuse_in_capture", [](const std::string& what) { refuse_in_capture(what.c_str()); },
      "what"_a, "Raises RuntimeError while this thread records calls.");
  m.def("_capture", capture, nb::rv_policy::take_ownership, "function"_a, "inputs"_a,
        "Calls function(*inputs) and records what ops it runs.\nWhat Python does meanwhile is no "
        "part of it: numbers that it computes, indices and the choice of ops are in every replay "
        "as they were. So the function is called a second time, without computing anything, and "
        "RuntimeError names the op whose number, settings or operands differ, as those of a "
        "clock or a counter do (one that is the same in both calls goes unseen); what changes in "
        "Python changes twice. What varies is given as "
        "a tensor among the inputs; results of other threads and memory of other libraries must "
        "be there before.");
}

}  // namespace tw::binding
