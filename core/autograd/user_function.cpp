// How a frontend's own function takes part in the graph.
#include "core/autograd/user_function.h"

#include <algorithm>
#include <unordered_map>

#include "core/autograd/backward.h"
#include "core/autograd/gradient_hooks.h"
#include "core/autograd/planner.h"

namespace tw {

namespace {

// Never destroyed: nodes may end later.
std::unordered_map<std::uint64_t, CustomNode*>& nodes() {
  static auto& instance = *new std::unordered_map<std::uint64_t, CustomNode*>;
  return instance;
}

std::uint64_t next_id() {
  static std::uint64_t last = 0;
  return ++last;
}

bool is_among(const Tensor& x, const std::vector<Tensor>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const Tensor& y) { return y.is(x); });
}

bool overlap(const Tensor& x, const Tensor& y) {
  if (x->storage != y->storage) return false;
  const ByteRange a = byte_range(x), b = byte_range(y);
  return a.low < b.high && b.low < a.high;
}
bool contains(const Tensor& x, const Tensor& y) {
  const ByteRange a = byte_range(x), b = byte_range(y);
  return a.low <= b.low && b.high <= a.high;
}

// Stands for the gradients of gradients that a function says it has not.
struct LastNode final : Node {
  std::string name;
  std::vector<Edge> ends;
  std::vector<ResultPlace> made;

  LastNode(std::string name_in, std::vector<Edge> edges_in, std::size_t count)
      : Node(nullptr), name(std::move(name_in)), ends(std::move(edges_in)), made(count) {
    op = name.c_str();
    edges = ends.data();
    inputs = static_cast<int>(ends.size());
    places = made.data();
    results = static_cast<std::uint8_t>(count);
  }
  void apply(const Tensor*, Tensor*, Waiting*) override {
    fail(ErrorKind::runtime, name,
         ": its backward is marked once_differentiable, so that its gradients have none");
  }
  void release() override {}
};

}  // namespace

CustomNode::CustomNode(Call& call)
    : Node(nullptr),
      id_(next_id()),
      passes_on_(call.passes_on),
      name_(std::move(call.name)),
      gradient_(std::move(call.gradient)),
      all_places_(call.results.size()) {
  op = name_.c_str();
  for (const Tensor& x : call.inputs) {
    all_edges_.emplace_back(x);
    shapes_.push_back(x.shape());
  }
  edges = all_edges_.data();
  inputs = static_cast<int>(all_edges_.size());
  places = all_places_.data();
  results = static_cast<std::uint8_t>(all_places_.size());
  nodes()[id_] = this;
  ++held_functions;
}

CustomNode::~CustomNode() {
  nodes().erase(id_);
  --held_functions;
}

std::vector<Tensor> CustomNode::record(Call call) {
  if (call.results.size() > kMostResults)
    fail(ErrorKind::value, call.name, ": ", call.results.size(), " results; ", kMostResults,
         " at most can have gradients");
  for (const Tensor& x : call.inputs)
    if (x) refuse_behind_function(x);
  if (modes.checkpoint) {
    bool spoils = false;
    for (const Tensor& x : call.inputs) spoils |= x && read_in_frame(x);
    for (const Tensor& y : call.results)
      if (spoils && y) spoil_in_frame(y);
  }
  auto* const node = new CustomNode(call);
  const Ref<NodeBase> owner(node);
  std::vector<Tensor> out;
  for (const Tensor& y : call.results) {
    const bool apart =
        y.requires_grad() || y->is_view || is_among(y, call.inputs) || is_among(y, out);
    out.push_back(apart ? y.detached() : y);
  }
  for (const Tensor& x : call.saved) {
    const auto at = std::find_if(call.results.begin(), call.results.end(),
                                 [&](const Tensor& y) { return x && y.is(x); });
    const auto result = at - call.results.begin();
    if (!x)
      node->saved_.emplace_back();
    else if (at != call.results.end() && call.differentiable[result] &&
             (call.changed[result] || !is_among(x, call.inputs)))
      node->saved_.push_back(SavedTensor::result(x, static_cast<int>(result)));
    else
      node->saved_.emplace_back(x);
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    if (call.differentiable[i]) attach(out[i], node, static_cast<int>(i));
  return out;
}

void CustomNode::show_as_view(const Tensor& result, const Tensor& x, bool passes_on) {
  if (result.is(x) || !overlap(result, x)) return;
  result->is_view = true;
  result->behind_function = !passes_on;
  result->recorded_seen = x->storage->recorded_changes;
  const bool joins = (!x->is_view || x->family) && x.dtype() == result.dtype() &&
                     contains(x->family ? Tensor(Ref<TensorHeader>(x->family->base)) : x, result);
  if (!joins) return;
  ViewFamily::join(*x.get(), *result.get());
  result->behind_function |= !passes_on;
}

void CustomNode::apply(const Tensor* g, Tensor* input_grads, Waiting*) {
  if (released) fail_released(*this);
  if (DryRun* const dry = DryRun::running()) {
    for (int i = 0; i < results; ++i)
      if (g[i]) dry->expose(g[i]);
    for (int i = 0; i < inputs; ++i)
      if (wants(i))
        input_grads[i] =
            DryRun::placeholder(shapes_[i], contiguous_strides(shapes_[i]), edges[i].dtype, 0);
    return;
  }
  const BlockSourceGuard source(PlannedPass::source_outside());
  std::vector<Tensor> saved;
  for (const SavedTensor& x : saved_)
    saved.push_back(x.header() || x.place() ? x.get(*this, "saved tensor") : Tensor());
  // A copy: collecting garbage may take the node's own meanwhile.
  const CustomGradient gradient = gradient_;
  if (!gradient) fail(ErrorKind::runtime, op, ": its function has ended");
  std::vector<Tensor> given(results);  // its function may write to them
  for (int i = 0; i < results; ++i)
    if (g[i])
      given[i] = modes.grad || (is_alone(g[i]) && !repeats(g[i]))
                     ? g[i]
                     : gradient_arithmetic().copy(g[i]);
  CustomGradients grads = gradient(saved, given);
  const int count = std::min(inputs, static_cast<int>(grads.of_inputs.size()));
  for (int i = 0; i < count; ++i)
    if (wants(i) && grads.of_inputs[i]) input_grads[i] = fitting(std::move(grads.of_inputs[i]), i);
  if (modes.grad && grads.last) refuse_more(given, input_grads);
}

// They depend on the inputs and on what arrived.
void CustomNode::refuse_more(const std::vector<Tensor>& g, Tensor* input_grads) const {
  std::vector<Edge> ends = all_edges_;
  for (const Tensor& each : g) ends.emplace_back(each);
  auto* const node = new LastNode(name_, std::move(ends), all_edges_.size());
  const Ref<NodeBase> owner(node);
  for (int i = 0; i < inputs; ++i) {
    if (!input_grads[i]) continue;
    input_grads[i] = input_grads[i].detached();
    attach(input_grads[i], node, i);
  }
}

// As edges lead on: of the input's shape, type and device.
Tensor CustomNode::fitting(Tensor g, int input) const {
  const Shape& shape = shapes_[input];
  const auto fits = [&] {
    if (g.rank() < shape.rank()) return false;
    const int more = g.rank() - shape.rank();
    for (int i = 0; i < shape.rank(); ++i)
      if (shape[i] != 1 && shape[i] != g.size(i + more)) return false;
    return true;
  };
  if (!(g.shape() == shape) && !fits())
    fail(ErrorKind::value, op, ": backward returned gradient ", input, " of shape ", g.shape(),
         " for an input of shape ", shape);
  if (!is_differentiable(g.dtype()))
    fail(ErrorKind::type, op, ": backward returned gradient ", input, " as ", describe(g),
         "; gradients are of a floating type");
  if (!(g.shape() == shape)) g = gradient_arithmetic().sum_to(g, shape);
  return g.dtype() == edges[input].dtype ? g : gradient_arithmetic().astype(g, edges[input].dtype);
}

// What keeps no values can be walked again and again.
void CustomNode::release() {
  released = !saved_.empty();
  for (SavedTensor& x : saved_) x = SavedTensor();
}

void CustomNode::each_saved(SavedVisitor visit, void* context) const {
  for (const SavedTensor& x : saved_) visit(context, x);
}

void CustomNode::forget_gradient(std::uint64_t id) {
  const auto found = nodes().find(id);
  if (found == nodes().end()) return;
  const CustomGradient ends_last = std::exchange(found->second->gradient_, nullptr);
}

}  // namespace tw
