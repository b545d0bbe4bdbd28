// Nodes of functions that a frontend defines with a gradient of its own.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/autograd/node.h"

namespace tw {

// The gradients of the inputs, empty ones for none; `last` where they have no gradients themselves.
struct CustomGradients {
  std::vector<Tensor> of_inputs;
  bool last = false;
  CustomGradients(std::vector<Tensor> of_inputs, bool last = false)
      : of_inputs(std::move(of_inputs)), last(last) {}
};
// Makes them of what was saved and of the gradients of the results, of which some may be empty.
using CustomGradient =
    std::function<CustomGradients(const std::vector<Tensor>& saved, std::vector<Tensor> g)>;

class CustomNode final : public Node {
 public:
  struct Call {
    std::string name;
    CustomGradient gradient;
    const std::vector<Tensor>& inputs;
    const std::vector<Tensor>& saved;         // empty ones are places for nothing
    const std::vector<Tensor>& results;       // as the function computed them
    const std::vector<bool>& differentiable;  // by result
    const std::vector<bool>& changed;         // by result: whether it is an input, changed in place
    bool passes_on = false;  // the i-th result is the i-th input, and so is its gradient
  };
  static constexpr std::size_t kMostResults = 255;
  // Puts the call into the graph and returns its results. Those that are inputs, views, or have a
  // place in the graph already, get headers of their own: the frontend moves those that are changed
  // inputs to such a header's place. Raises ValueError for too many results.
  static std::vector<Tensor> record(Call call);
  ~CustomNode() override;
  // Makes a result that shows memory of `x`, an input or another result, a view of it, as in-place
  // changes of either concern both. A change of `x` can take the place of a node that `passes_on`;
  // else the result is of no use after one.
  static void show_as_view(const Tensor& result, const Tensor& x, bool passes_on);

  void apply(const Tensor* g, Tensor* input_grads, Waiting* waiting) override;
  void release() override;
  void each_saved(SavedVisitor visit, void* context) const override;
  const CustomNode* custom() const override { return this; }

  // What the search for cycles (cycles.h) asks of a node that holds a function of the frontend, as
  // of a checkpoint's frame.
  std::uint64_t id() const { return id_; }
  const CustomGradient& gradient() const { return gradient_; }
  bool passes_on() const { return passes_on_; }
  static void forget_gradient(std::uint64_t id);

 private:
  explicit CustomNode(Call& call);
  Tensor fitting(Tensor g, int input) const;
  void refuse_more(const std::vector<Tensor>& g, Tensor* input_grads) const;

  const std::uint64_t id_;
  const bool passes_on_;
  const std::string name_;
  CustomGradient gradient_;
  std::vector<Edge> all_edges_;
  std::vector<Shape> shapes_;  // by input
  std::vector<ResultPlace> all_places_;
  std::vector<SavedTensor> saved_;
};

}  // namespace tw
