// How a frontend's own function takes part in the graph.
#include "core/autograd/custom.h"

#include <algorithm>
#include <unordered_map>

#include "core/autograd/backward.h"
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

}  // namespace

CustomNode::CustomNode(Call& call)
    : Node(nullptr),
      id_(next_id()),
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
  std::vector<Tensor> given(g, g + results);  // its function may write to them
  for (Tensor& each : given)
    if (each && !modes.grad && repeats(each)) each = gradient_arithmetic().copy(each);
  std::vector<Tensor> grads = gradient(saved, given);
  for (int i = 0; i < inputs && i < static_cast<int>(grads.size()); ++i)
    if (wants(i) && grads[i]) input_grads[i] = fitting(std::move(grads[i]), i);
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
