// What a recorded graph holds, node by node: for tests that hold it to the ops' records.
#include <queue>

#include "binding/tensor/casters.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"
#include "core/autograd/op_node.h"
#include "core/ops/copy/create.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

// Nodes of records from `y` on, the latest first.
std::vector<OpNode*> op_nodes(const Tensor& y) {
  const auto earlier = [](const Node* a, const Node* b) { return a->sequence < b->sequence; };
  std::priority_queue<Node*, std::vector<Node*>, decltype(earlier)> waiting(earlier);
  const auto visit = [&](const Ref<NodeBase>& node) {
    if (node) waiting.push(static_cast<Node*>(node.get()));
  };
  visit(y->grad_fn);
  std::vector<OpNode*> found;
  const Node* last = nullptr;
  while (!waiting.empty()) {
    Node* const node = waiting.top();
    waiting.pop();
    if (node == std::exchange(last, node)) continue;
    for (int i = 0; i < node->inputs; ++i) visit(node->edges[i].node);
    if (auto* op = dynamic_cast<OpNode*>(node)) found.push_back(op);
  }
  return found;
}

template <class Bits> nb::list places(Bits bits) {
  nb::list out;
  for (int i = 0; bits; ++i, bits >>= 1)
    if (bits & 1) out.append(i);
  return out;
}

nb::dict describe_node(const OpNode& node) {
  Reads reads;
  for (int i = 0; i < node.inputs && i < kMaxReads; ++i)
    if (node.wants(i)) reads |= node.record.reads[i];
  if (node.inputs < 64) reads.inputs &= (std::uint64_t{1} << node.inputs) - 1;
  int saved = 0;
  node.each_saved([](void* count, const SavedTensor&) { ++*static_cast<int*>(count); }, &saved);
  nb::dict out;
  out["op"] = node.record.name;
  out["reads"] = nb::make_tuple(places(reads.inputs), places(reads.results));
  out["keeps"] = nb::make_tuple(places(node.saved_inputs), places(node.saved_results));
  out["numbers"] = places(node.numbers);
  out["tensors"] = saved;
  return out;
}

// From then on, reading the tensor that stands at that place raises, as after a change in place.
void spoil_saved(const Tensor& y, std::size_t node, int place) {
  const std::vector<OpNode*> nodes = op_nodes(y);
  if (node >= nodes.size() || place < 0 || place >= nodes[node]->saved_count)
    fail(ErrorKind::index, "_spoil_saved: no tensor ", place, " at node ", node);
  const Tensor changed = zeros({0}, DType::float32);
  SavedTensor value(changed);
  changed->storage->count_change();
  nodes[node]->saved[place] = std::move(value);
}

}  // namespace

void bind_graph(nb::module_& m) {
  m.def(
      "_graph",
      [](const Itself& y) {
        nb::list nodes;
        for (const OpNode* node : op_nodes(y)) nodes.append(describe_node(*node));
        return nodes;
      },
      "tensor"_a, "The nodes of records behind a tensor: what they should keep, and what they do.");
  m.def("_spoil_saved", spoil_saved, "tensor"_a, "node"_a, "place"_a,
        "Has a gradient that reads this saved value raise.");
}

}  // namespace tw::binding
