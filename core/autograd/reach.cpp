// What a graph leads to.
#include <algorithm>
#include <unordered_set>

#include "core/autograd/backward.h"

namespace tw {

namespace {

// Calls `leaf` with each leaf and `node` with each node that the roots lead to, each once.
template <class OnLeaf, class OnNode>
void each_behind(const std::vector<Tensor>& roots, OnLeaf on_leaf, OnNode on_node) {
  std::unordered_set<const void*> seen;
  std::vector<Edge> stack(roots.begin(), roots.end());
  while (!stack.empty()) {
    const Edge edge = std::move(stack.back());
    stack.pop_back();
    const void* key = edge.leaf ? static_cast<const void*>(edge.leaf.get()) : edge.node.get();
    if (!key || !seen.insert(key).second) continue;
    if (edge.leaf) {
      on_leaf(edge.leaf);
      continue;
    }
    const Node& node = static_cast<const Node&>(*edge.node);
    on_node(node);
    stack.insert(stack.end(), node.edges, node.edges + node.inputs);
  }
}

bool has_functions(const Node& node) {
  return node.custom() || std::any_of(node.places, node.places + node.results,
                                      [](const ResultPlace& place) { return !!place.hooks; });
}

}  // namespace

std::vector<Tensor> leaves_of(const Tensor& root) {
  std::vector<Tensor> leaves;
  each_behind({root}, [&](const Tensor& leaf) { leaves.push_back(leaf); }, [](const Node&) {});
  return leaves;
}

Behind behind(const std::vector<Tensor>& roots, const std::vector<Tensor>& known) {
  Behind found;
  each_behind(
      roots,
      [&](const Tensor& leaf) {
        if (!leaf.requires_grad()) return;  // any more
        found.other_leaves |= std::none_of(known.begin(), known.end(),
                                           [&](const Tensor& own) { return own.is(leaf); });
        found.functions |= leaf->extras && !leaf->extras->backward_hooks.empty();
      },
      [&](const Node& node) { found.functions |= has_functions(node); });
  return found;
}

}  // namespace tw
