// Checkpointed functions, plans of backward passes, and temporary memory.
#include "binding/tensor/casters.h"
#include "binding/tensor/cycles.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"
#include "core/autograd/backward.h"
#include "core/autograd/checkpoint.h"
#include "core/autograd/planner.h"
#include "core/memory/scratch.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

// Calls function(inputs) such that what its ops save is computed again in backward.
nb::object checkpoint(nb::object function, nb::list tensors) {
  std::vector<Tensor> inputs;
  for (nb::handle x : tensors) inputs.push_back(current_tensor(x.ptr()));
  const Ref<CheckpointFrame> frame(new CheckpointFrame(PythonRerun{function}, inputs));
  const CheckpointFrame::Recording recording(*frame);
  return function(tensors);
}

Annotated<"dict[str, int]"> plan_dictionary() {
  const PlanFigures& figures = last_plan();
  nb::dict out;
  out["allocations"] = figures.allocations;
  out["arena_bytes"] = figures.arena_bytes;
  out["sum_bytes"] = figures.sum_bytes;
  out["lower_bound_bytes"] = figures.lower_bound_bytes;
  out["live_bytes"] = figures.live_bytes;
  out["survivors"] = figures.survivors;
  out["fallbacks"] = figures.fallbacks;
  return out;
}

Annotated<"dict[str, int]"> scratch_dictionary() {
  const ScratchStats stats = scratch_stats();
  nb::dict out;
  out["temporary_live_bytes"] = stats.live_bytes;
  out["temporary_peak_live_bytes"] = stats.peak_live_bytes;
  out["temporary_reserved_bytes"] = stats.reserved_bytes;
  return out;
}

}  // namespace

void PythonRerun::operator()(const std::vector<Tensor>& inputs) const {
  nb::list values;
  for (const Tensor& x : inputs) values.append(nb::steal(wrap(x)));
  function(values);
}

void bind_gradient_memory(nb::module_& m) {
  m.def("_checkpoint", checkpoint, "function"_a, "inputs"_a);
  m.def(
      "_leaves", [](const Itself& x)->Annotated<"list[Tensor]"> {
        nb::list out;
        for (const Tensor& leaf : leaves_of(x)) out.append(nb::steal(wrap(leaf)));
        return out;
      });
  m.def("_last_plan", plan_dictionary);
  m.def("_scratch_stats", scratch_dictionary);
  m.def("_scratch_reset_peaks", scratch_reset_peaks);
}

}  // namespace tw::binding
