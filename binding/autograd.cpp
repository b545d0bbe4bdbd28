// Gradients, modes and hooks.
#include <nanobind/stl/vector.h>

#include "binding/cycles.h"
#include "binding/function.h"
#include "binding/module.h"
#include "core/autograd/backward.h"
#include "core/autograd/capture.h"
#include "core/autograd/custom.h"
#include "core/autograd/mode.h"
#include "core/base/error.h"
#include "core/ops/create.h"
#include "core/ops/in_place.h"
#include "core/runtime/device.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

std::vector<Tensor> read_sequence(nb::handle source, const char* what) {
  if (is_tensor(source.ptr())) return {current_tensor(source.ptr())};
  if (!nb::isinstance<nb::iterable>(source))
    fail(ErrorKind::type, "grad: ", what, " must be a tensor or tensors, got ", told(source.ptr()));
  std::vector<Tensor> out;
  for (nb::handle item : source) {
    if (!item.is_none() && !is_tensor(item.ptr()))
      fail(ErrorKind::type, "grad: ", what, " must be tensors, got ", told(item.ptr()));
    out.push_back(item.is_none() ? Tensor() : current_tensor(item.ptr()));
  }
  return out;
}

using ToldTensors = Told<"Tensor | collections.abc.Iterable[Tensor]">;
using ToldSeeds = Told<"Tensor | collections.abc.Iterable[Tensor | None]">;

Told<"tuple[Tensor, ...]"> gradients_of(ToldTensors outputs, ToldTensors inputs, ToldSeeds seeds,
                                        std::optional<bool> retain_graph, bool create_graph,
                                        bool allow_unused, bool plan, bool only_inputs,
                                        bool materialize_grads) {
  if (!only_inputs)
    fail(ErrorKind::value,
         "grad: only_inputs=False is what backward() does: it adds to every grad");
  const std::vector<Tensor> in = read_sequence(inputs, "inputs");
  const std::vector<Tensor> grads =
      gradients(read_sequence(outputs, "outputs"),
                seeds.is_none() ? std::vector<Tensor>{} : read_sequence(seeds, "grad_outputs"), in,
                {retain_graph.value_or(create_graph), create_graph, plan});
  nb::list out;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    Tensor grad = grads[i];
    if (!grad && materialize_grads) {
      const DeviceGuard device(in[i].device());
      grad = zeros(in[i].shape(), in[i].dtype());
    } else if (!grad && !allow_unused) {
      fail(ErrorKind::runtime, "grad: input ", describe(in[i]),
           " was not used for the outputs; pass allow_unused=True to get None for it");
    }
    out.append(nb::steal(wrap(grad)));
  }
  return nb::object(nb::tuple(out));
}

// What registering a hook returns. It does not keep the tensor.
struct HookHandle {
  std::uint64_t id;
};

using ToldHook = Told<"collections.abc.Callable[[Tensor], Tensor | None]">;

HookHandle add_hook(const Tensor& x, ToldHook function,
                    std::uint64_t (*add)(const Tensor& x, Hook hook)) {
  if (!PyCallable_Check(function.ptr()))
    fail(ErrorKind::type, "hook must be a function, got ", told(function.ptr()));
  const HookHandle handle{add(x, PythonHook{function})};
  if (x->wrapper) watch(static_cast<TensorObject*>(x->wrapper));
  watch_closure(function.ptr());
  return handle;
}

// None becomes an empty one.
std::vector<Tensor> tensors_of(nb::list items) {
  std::vector<Tensor> out;
  for (nb::handle item : items)
    out.push_back(item.is_none() ? Tensor() : current_tensor(item.ptr()));
  return out;
}
nb::list list_of(const std::vector<Tensor>& tensors) {
  nb::list out;
  for (const Tensor& x : tensors) out.append(nb::steal(wrap(x)));
  return out;
}

// Gives a tensor that a function changed in place the place in the graph of its result.
void join_graph(const char* op, nb::handle object, const Tensor& result) {
  Tensor x = raw_tensor(object.ptr());
  const InPlaceChange change(op, x, result);
  change.join_graph(x, [&](const Tensor& y) {
    attach(y, static_cast<Node*>(result->grad_fn.get()), result->result);
  });
}

// Puts a call of a Python function into the graph, whose gradient is context._gradients(saved, g).
// Results that are inputs and `changed` come back as the same objects.
Told<"list[typing.Any]"> record_custom(nb::object context, std::string name, nb::list inputs,
                                       nb::list saved, nb::list results,
                                       const std::vector<bool>& differentiable,
                                       const std::vector<bool>& changed) {
  const std::vector<Tensor> out =
      CustomNode::record({name, PythonGradient{context}, tensors_of(inputs), tensors_of(saved),
                          tensors_of(results), differentiable, changed});
  nb::list wrapped = list_of(out);
  for (std::size_t i = 0; i < changed.size(); ++i) {
    if (!changed[i]) continue;
    if (differentiable[i]) join_graph(name.c_str(), results[i], out[i]);
    wrapped[i] = results[i];
  }
  for (nb::handle y : wrapped) watch(reinterpret_cast<TensorObject*>(y.ptr()));
  watch_attributes(context);
  return wrapped;
}

void backward_of(nb::list tensors, nb::list seeds, std::optional<bool> retain_graph,
                 bool create_graph) {
  backward(tensors_of(tensors), tensors_of(seeds),
           {retain_graph.value_or(create_graph), create_graph, false});
}

// Makes the object stand for the memory of `value`: a leaf with the gradient and hooks it had.
void become(nb::handle object, const Itself& value) {
  const Tensor x = raw_tensor(object.ptr());
  if (!x.is_leaf())
    fail(ErrorKind::runtime,
         "a result of recorded ops cannot become another tensor: ", describe(x));
  if (x.requires_grad() && !is_differentiable(value.dtype()))
    fail(ErrorKind::type, "only floating-point and complex tensors can require grad, got ",
         name_of(value.dtype()));
  const Tensor y = value.detached();
  y->extras = std::move(x->extras);
  rebind_wrapper(object.ptr(), y);
  if (x.requires_grad()) set_requires_grad(y, true);
}

void zero_grad(const std::vector<Itself>& params) {
  for (const Tensor& param : params) {
    if (modes.capture) modes.capture->note_gradient(*param.get());
    if (param->extras) param->extras->grad = Tensor();
  }
}

}  // namespace

std::vector<Tensor> PythonGradient::operator()(const std::vector<Tensor>& saved,
                                               std::vector<Tensor> g) const {
  return tensors_of(nb::cast<nb::list>(context.attr("_gradients")(list_of(saved), list_of(g))));
}

void bind_autograd(nb::module_& m) {
  m.def("is_grad_enabled", [] { return modes.grad; }, "Whether this thread's ops are recorded.");
  m.def("grad", gradients_of, "outputs"_a, "inputs"_a, "grad_outputs"_a = nb::none(),
        "retain_graph"_a = nb::none(), "create_graph"_a = false, "allow_unused"_a = false,
        "plan"_a = false, "only_inputs"_a = true, "materialize_grads"_a = false,
        "Gradients of outputs with respect to inputs, as a tuple; no grad is touched. With "
        "allow_unused those that no output depends on are None, with materialize_grads zeros.\n"
        "Shapes: outputs of any shapes, grad_outputs of theirs, which an output of one element "
        "needs not "
        "have; the results have those of inputs. That of a sum itself is a broadcast "
        "view: copy() it before you write to it.\nTypes: floating, complex. Result: those of "
        "inputs.\nRaises RuntimeError for an input that does not require grad, for an output "
        "that does not depend on it unless one of these is set, and for outputs of several "
        "elements without grad_outputs, ValueError for grad_outputs of other shapes.\nSource: "
        "PyTorch's "
        "torch.autograd.grad.");
  m.def("_record_custom", record_custom, "context"_a, "name"_a, "inputs"_a, "saved"_a, "results"_a,
        "differentiable"_a, "changed"_a);
  m.def("_backward", backward_of, "tensors"_a, "grad_tensors"_a, "retain_graph"_a = nb::none(),
        "create_graph"_a = false);
  m.def("_become", become, "tensor"_a, "value"_a);
  property(
      "data", [](const Itself& x) { return x.detached(); },
      [](nb::object self, const Itself& value) { become(self, value); },
      "The same memory outside the graph, as detach() gives it; setting it makes a leaf stand for "
      "another tensor's memory, with the hooks and the gradient it had.");
  m.def("zero_grad", zero_grad, "params"_a,
        "Drops the grads of params.\nShapes: params of any shapes.\nTypes: floating, complex. "
        "Result: None.\nSource: PyTorch's torch.optim.Optimizer.zero_grad.");
  nb::class_<HookHandle>(m, "HookHandle", "A registered hook.")
      .def("__repr__",
           [](const HookHandle& handle) {
             return "<HookHandle: hook " + std::to_string(handle.id) + ">";
           })
      .def(
          "remove", [](const HookHandle& handle) { HookList::remove(handle.id); },
          "Removes the hook; a second call does nothing.");
  method(
      "register_hook",
      [](const Itself& x, ToldHook hook) { return add_hook(x, hook, register_hook); }, "hook"_a,
      "Calls hook(grad) when the gradient is complete; a returned tensor replaces it.");
  method(
      "register_post_accumulate_grad_hook",
      [](const Itself& x, ToldHook hook) { return add_hook(x, hook, register_grad_hook); },
      "hook"_a,
      "Calls hook(tensor) once backward() has added to the tensor's grad, which the hook may use "
      "and drop; of leaves that require grad, RuntimeError for others. It is called when the pass "
      "has visited all of the graph.");
  method(
      "register_forward_hook",
      [](const Itself& x, ToldHook hook) { return add_hook(x, hook, register_forward_hook); },
      "hook"_a,
      "Calls hook(value) when an op takes the tensor; the op uses a returned tensor instead.");
}

}  // namespace tw::binding
