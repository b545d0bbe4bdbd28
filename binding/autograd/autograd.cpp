// Gradients, modes and hooks.
#include <nanobind/stl/vector.h>

#include "binding/tensor/attach.h"
#include "binding/tensor/casters.h"
#include "binding/tensor/cycles.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"
#include "binding/tensor/text.h"
#include "core/autograd/backward.h"
#include "core/autograd/capture.h"
#include "core/autograd/user_function.h"
#include "core/autograd/grad_mode.h"
#include "core/base/error.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/copy/in_place.h"
#include "core/runtime/device.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

std::vector<Tensor> read_sequence(nb::handle source, const char* what) {
  if (is_tensor(source.ptr())) return {current_tensor(source.ptr())};
  if (!nb::isinstance<nb::iterable>(source))
    fail(ErrorKind::type, "grad: ", what, " must be a tensor or tensors, got ",
         shown(source.ptr()));
  std::vector<Tensor> out;
  for (nb::handle item : source) {
    if (!item.is_none() && !is_tensor(item.ptr()))
      fail(ErrorKind::type, "grad: ", what, " must be tensors, got ", shown(item.ptr()));
    out.push_back(item.is_none() ? Tensor() : current_tensor(item.ptr()));
  }
  return out;
}

using AnnotatedTensors = Annotated<"Tensor | collections.abc.Iterable[Tensor]">;
using AnnotatedSeeds = Annotated<"Tensor | collections.abc.Iterable[Tensor | None]">;

Annotated<"tuple[Tensor, ...]"> gradients_of(AnnotatedTensors outputs, AnnotatedTensors inputs,
                                             AnnotatedSeeds seeds, std::optional<bool> retain_graph,
                                             bool create_graph, bool allow_unused, bool plan,
                                             bool only_inputs, bool materialize_grads) {
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

using AnnotatedHook = Annotated<"collections.abc.Callable[[Tensor], Tensor | None]">;

HookHandle add_hook(const Tensor& x, AnnotatedHook function,
                    std::uint64_t (*add)(const Tensor& x, Hook hook)) {
  if (!PyCallable_Check(function.ptr()))
    fail(ErrorKind::type, "hook must be a function, got ", shown(function.ptr()));
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

// Results that show memory of inputs, as these are now, or of results before them.
void show_as_views(const std::vector<Tensor>& inputs, const std::vector<Tensor>& results,
                   const std::vector<bool>& apart, bool passes_on) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (apart[i]) continue;
    for (const Tensor& x : inputs)
      if (!results[i]->is_view && x) CustomNode::show_as_view(results[i], x, passes_on);
    for (std::size_t j = 0; j < i && !results[i]->is_view; ++j)
      CustomNode::show_as_view(results[i], results[j], passes_on);
  }
}

// Puts a call of a Python function into the graph, whose gradient is context._gradients(saved, g).
// Results that are inputs and `changed` come back as the same objects.
Annotated<"list[typing.Any]"> record_custom(nb::object context, std::string name, nb::list inputs,
                                            nb::list saved, nb::list results,
                                            const std::vector<bool>& differentiable,
                                            const std::vector<bool>& changed, bool passes_on) {
  const std::vector<Tensor> out =
      CustomNode::record({name, PythonGradient{context}, tensors_of(inputs), tensors_of(saved),
                          tensors_of(results), differentiable, changed, passes_on});
  nb::list wrapped = list_of(out);
  std::vector<bool> apart = changed;
  for (std::size_t i = 0; i < changed.size(); ++i) {
    if (!differentiable[i]) apart[i] = true;
    if (!changed[i]) continue;
    if (differentiable[i]) join_graph(name.c_str(), results[i], out[i]);
    wrapped[i] = results[i];
  }
  show_as_views(tensors_of(inputs), out, apart, passes_on);
  for (nb::handle y : wrapped) watch(reinterpret_cast<TensorObject*>(y.ptr()));
  watch_attributes(context);
  return wrapped;
}

void backward_of(nb::list tensors, nb::list seeds, std::optional<bool> retain_graph,
                 bool create_graph) {
  const std::vector<Tensor> roots = tensors_of(tensors);
  backward(roots, tensors_of(seeds), {retain_graph.value_or(create_graph), create_graph, false});
  if (create_graph) end_recorded_pass(roots);
}

// What a graph leads to beside the tensors at hand: other leaves, and functions of Python.
nb::tuple behind_of(nb::list tensors, nb::list known) {
  const Behind found = behind(tensors_of(tensors), tensors_of(known));
  return nb::make_tuple(found.other_leaves, found.functions);
}

// The gradients as a function of grad_outputs, without what hooks make of them.
nb::list linear_gradients(nb::list outputs, nb::list inputs, nb::list seeds) {
  return list_of(gradients(tensors_of(outputs), tensors_of(seeds), tensors_of(inputs),
                           {.retain_graph = true, .create_graph = true, .hooks = false}));
}

// What a graph that was recorded before adds to the grad of `before` goes to `now`, which stands
// for the same object: in its type, on its device, and its hooks see it.
void follow_gradients(const Tensor& before, const Tensor& now) {
  before.extras().grad_hooks.add([now](const Tensor& leaf) {
    const Tensor arrived = std::exchange(leaf->extras->grad, Tensor());
    if (!arrived || !now.requires_grad()) return Tensor();
    if (!(arrived.shape() == now.shape()))
      fail(ErrorKind::runtime, "backward: a gradient of shape ", arrived.shape(), " came for ",
           describe(now), ", whose data was set after the graph was recorded");
    Tensor g = to_device(astype(arrived, now.dtype()), now.device());
    TensorExtras& extras = now.extras();
    for (const HookEntry& hook : std::vector<HookEntry>(extras.backward_hooks.entries()))
      if (const Tensor replaced = hook.call(g)) g = replaced;
    extras.grad = extras.grad ? gradient_arithmetic().add(extras.grad, g) : g;
    for (const HookEntry& hook : std::vector<HookEntry>(extras.grad_hooks.entries()))
      hook.call(now);
    return Tensor();
  });
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
  if (!x.requires_grad()) return;
  set_requires_grad(y, true);
  const bool in_graphs = x->references > 1;
  if (in_graphs) follow_gradients(x, y);
}

void zero_grad(const std::vector<Itself>& params) {
  for (const Tensor& param : params) {
    if (modes.capture) modes.capture->note_gradient(*param.get());
    if (param->extras) param->extras->grad = Tensor();
  }
}

}  // namespace

CustomGradients PythonGradient::operator()(const std::vector<Tensor>& saved,
                                           std::vector<Tensor> g) const {
  std::vector<Tensor> grads =
      tensors_of(nb::cast<nb::list>(context.attr("_gradients")(list_of(saved), list_of(g))));
  return {std::move(grads), nb::cast<bool>(context.attr("_last"))};
}

// A gradient with a graph keeps all that leads to it, its own tensor among that: it ends with the
// tensor's object. Where functions of Python are among that, the collector has to look at it.
void end_recorded_pass(const std::vector<Tensor>& roots) {
  for (const Tensor& root : roots)
    for (const Tensor& leaf : leaves_of(root)) {
      if (!is_held_by_program(*leaf.get())) {
        drop_recorded_grad(*leaf.get());
        continue;
      }
      auto* const object = static_cast<TensorObject*>(leaf->wrapper);
      take_back(object);
      if (held_functions) watch(object);
    }
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
        "have; the results have those of inputs. Each has memory of its own; that of a sum itself "
        "is a broadcast "
        "view: copy() it before you write to it.\nTypes: floating, complex. Result: those of "
        "inputs.\nRaises RuntimeError for an input that does not require grad, for an output "
        "that does not depend on it unless one of these is set, and for outputs of several "
        "elements without grad_outputs, ValueError for grad_outputs of other shapes.\nSource: "
        "PyTorch's "
        "torch.autograd.grad.");
  m.def("_record_custom", record_custom, "context"_a, "name"_a, "inputs"_a, "saved"_a, "results"_a,
        "differentiable"_a, "changed"_a, "passes_on"_a);
  m.def("_behind", behind_of, "tensors"_a, "known"_a);
  m.def("_linear_gradients", linear_gradients, "outputs"_a, "inputs"_a, "grad_outputs"_a);
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
      [](const Itself& x, AnnotatedHook hook) { return add_hook(x, hook, register_hook); },
      "hook"_a, "Calls hook(grad) when the gradient is complete; a returned tensor replaces it.");
  method(
      "register_post_accumulate_grad_hook",
      [](const Itself& x, AnnotatedHook hook) { return add_hook(x, hook, register_grad_hook); },
      "hook"_a,
      "Calls hook(tensor) once backward() has added to the tensor's grad, which the hook may use "
      "and drop; of leaves that require grad, RuntimeError for others. It is called when the pass "
      "has visited all of the graph.");
  method(
      "register_forward_hook",
      [](const Itself& x, AnnotatedHook hook) { return add_hook(x, hook, register_forward_hook); },
      "hook"_a,
      "Calls hook(value) when an op takes the tensor; the op uses a returned tensor instead.");
}

}  // namespace tw::binding
