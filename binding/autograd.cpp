// Gradients, modes and hooks.
#include "binding/module.h"
#include "core/autograd/backward.h"
#include "core/autograd/mode.h"
#include "core/base/error.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

std::vector<Tensor> read_sequence(nb::handle source, const char* what) {
  if (is_tensor(source.ptr())) return {raw_tensor(source.ptr())};
  if (!nb::isinstance<nb::sequence>(source))
    fail(ErrorKind::type, "grad: ", what, " must be a tensor or a sequence of tensors");
  std::vector<Tensor> out;
  for (nb::handle item : source) {
    if (!item.is_none() && !is_tensor(item.ptr()))
      fail(ErrorKind::type, "grad: ", what, " must be tensors");
    out.push_back(item.is_none() ? Tensor() : raw_tensor(item.ptr()));
  }
  return out;
}

nb::tuple gradients_of(nb::object outputs, nb::object inputs, nb::object seeds,
                       std::optional<bool> retain_graph, bool create_graph, bool allow_unused,
                       bool plan) {
  const std::vector<Tensor> in = read_sequence(inputs, "inputs");
  const std::vector<Tensor> grads =
      gradients(read_sequence(outputs, "outputs"),
                seeds.is_none() ? std::vector<Tensor>{} : read_sequence(seeds, "grad_outputs"), in,
                {retain_graph.value_or(create_graph), create_graph, plan});
  nb::list out;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i] && !allow_unused)
      fail(ErrorKind::runtime, "grad: input ", describe(in[i]),
           " was not used for the outputs; pass allow_unused=True to get None for it");
    out.append(nb::steal(wrap(grads[i])));
  }
  return nb::tuple(out);
}

// A Python function as a hook: None keeps the value.
Hook as_hook(nb::object function) {
  if (!PyCallable_Check(function.ptr())) fail(ErrorKind::type, "a hook must be callable");
  return [function](const Tensor& x) {
    const nb::object result = function(nb::steal(wrap(x)));
    if (result.is_none()) return Tensor();
    if (!is_tensor(result.ptr())) fail(ErrorKind::type, "a hook must return a tensor or None");
    return raw_tensor(result.ptr());
  };
}

// What registering a hook returns: the tensor and the hook's number, removable once.
struct HookHandle {
  Tensor tensor;
  std::uint64_t id;
  void remove() {
    if (tensor) remove_hook(tensor, id);
    tensor = Tensor();
  }
};

}  // namespace

void bind_autograd(nb::module_& m) {
  m.def("is_grad_enabled", [] { return grad_mode; }, "Whether ops are being recorded.");
  m.def("_set_grad_mode", [](bool enabled) { return std::exchange(grad_mode, enabled); });
  m.def("grad", gradients_of, "outputs"_a, "inputs"_a, "grad_outputs"_a = nb::none(),
        "retain_graph"_a = nb::none(), "create_graph"_a = false, "allow_unused"_a = false,
        "plan"_a = false,
        "Gradients of outputs with respect to inputs, as a tuple; no grad is touched.");
  nb::class_<HookHandle>(m, "HookHandle", "A registered hook.")
      .def("remove", &HookHandle::remove, "Removes the hook; a second call does nothing.");
  method(
      "register_hook",
      [](const Itself& x, nb::object hook) {
        return HookHandle{x, register_hook(x, as_hook(hook))};
      },
      "hook"_a, "Calls hook(grad) when the gradient is complete; a returned tensor replaces it.");
  method(
      "register_forward_hook",
      [](const Itself& x, nb::object hook) {
        return HookHandle{x, register_forward_hook(x, as_hook(hook))};
      },
      "hook"_a,
      "Calls hook(value) when an op takes the tensor; the op uses a returned tensor instead.");
}

}  // namespace tw::binding
