// Nodes wait in a heap ordered by sequence number, newest first; a node is taken when every
// consumer has been, so its gradient is complete.
#include "core/autograd/backward.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "core/autograd/anomaly.h"
#include "core/autograd/capture.h"
#include "core/autograd/planner.h"
#include "core/runtime/device.h"
#include "core/runtime/interruption.h"

namespace tw {

namespace {

GradientArithmetic arithmetic;
constexpr int kFewInputs = 4;

bool unique_memory(const Tensor& g) {
  const Storage& storage = *g->storage;
  const std::uint32_t held = modes.capture ? modes.capture->references_to(storage) : 0;
  return g->references == 1 && storage.references == 1 + held && g.contiguous() && !storage.owner;
}

void accumulate(Tensor& into, Tensor g) {
  if (!into) {
    into = std::move(g);
  } else if (!modes.grad && unique_memory(into) && into.dtype() == g.dtype()) {
    arithmetic.add_in_place(into, g);
  } else {
    into = arithmetic.add(into, g);
  }
}

Tensor run_hooks(const HookList& hooks, Tensor g, const char* op) {
  refuse_in_capture("a hook runs");
  if (DryRun* dry = DryRun::running()) {
    dry->expose(g);
    return g;
  }
  const std::vector<HookEntry> snapshot = hooks.entries();  // a hook may remove itself
  const BlockSourceGuard source(PlannedPass::source_outside());
  for (const HookEntry& hook : snapshot) {
    Tensor replaced = hook.call(g);
    if (!replaced) continue;
    if (!(replaced.shape() == g.shape()))
      fail(ErrorKind::value, op, ": a hook returned shape ", replaced.shape(),
           " for a gradient of shape ", g.shape());
    if (replaced.device() != g.device())
      fail(ErrorKind::value, op, ": a hook returned ", describe(replaced), " for a gradient ",
           describe(g), " on another device");
    if (replaced.dtype() != g.dtype())
      fail(ErrorKind::type, op, ": a hook returned ", name_of(replaced.dtype()),
           " for a gradient of ", name_of(g.dtype()));
    g = replaced;
  }
  return g;
}

void run_grad_hooks(const Tensor& leaf) {
  refuse_in_capture("a hook runs");
  const std::vector<HookEntry> snapshot = leaf->extras->grad_hooks.entries();
  const BlockSourceGuard source(PlannedPass::source_outside());
  for (const HookEntry& hook : snapshot) hook.call(leaf);
}

class Walk final : public Waiting {
 public:
  // `planned` is told of each node before it is visited.
  explicit Walk(BackwardOptions options, PlannedPass* planned = nullptr)
      : options_(options), pass_(++last_pass()), dry_(DryRun::running()), planned_(planned) {}
  ~Walk() {
    for (Node* node : touched_)
      for (int i = 0; i < node->results; ++i) node->places[i].pending = Tensor();
  }

  // Restricts the walk to paths that end in `inputs` and collects their gradients.
  void capture(const std::vector<Tensor>& roots, const std::vector<Tensor>& inputs) {
    capturing_ = true;
    captured.resize(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      captures_[key_of(inputs[i])].push_back(i);
    }
    for (const Tensor& root : roots) mark_useful(root);
  }

  void seed(const Tensor& root, Tensor g) {
    seeds_.push_back(g);
    deliver(Edge(root), std::move(g));
  }

  void run() {
    GradModeGuard mode(options_.create_graph);
    std::optional<RunsToItsEnd> whole;  // leaves would keep a part of the gradient
    if (!capturing_) whole.emplace();
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), older);
      Node* node = heap_.back();
      heap_.pop_back();
      visit(*node);
    }
    for (auto& [leaf, g] : hooked_) {
      begin_step();
      if (!leaf->extras->backward_hooks.empty())
        g = run_hooks(leaf->extras->backward_hooks, leaving(std::move(g)), "leaf");
      add_to(leaf, std::move(g));
      if (!capturing_ && !dry_ && !leaf->extras->grad_hooks.empty()) run_grad_hooks(leaf);
    }
    seeds_.clear();
  }

  bool add(const Edge& edge, const Use& use) override {
    Tensor* const place = gradient_at(edge);
    if (!place || !*place || place->dtype() != edge.dtype) return false;
    if (dry_ && edge.leaf && place == &edge.leaf->extras->grad)
      return add_dry(*edge.leaf.get(), use);
    // Leaves belong to all threads: none may come in between.
    std::optional<LockKept> kept;
    if (edge.leaf) kept.emplace();
    if (!unique_memory(*place)) *place = arithmetic.copy(*place);
    return use.op.add_into(use, *place);
  }

  std::vector<Tensor> captured;

 private:
  static std::uint64_t& last_pass() {
    static std::uint64_t pass = 0;
    return pass;
  }
  static Node* node_of(const Tensor& x) { return static_cast<Node*>(x->grad_fn.get()); }
  // What a gradient is collected by: a leaf, or a result's place in its node.
  static const void* key_of(const Tensor& x) {
    return x.is_leaf() ? static_cast<const void*>(x.get()) : &place_of(*x.get());
  }
  static bool older(const Node* a, const Node* b) { return a->sequence < b->sequence; }

  void begin_step() {
    if (dry_) dry_->begin_step();
    if (planned_) planned_->begin_step();
  }

  void visit(Node& node) {
    begin_step();
    Tensor few_g[kMaxResults];
    std::vector<Tensor> many_g(node.results > kMaxResults ? node.results : 0);
    Tensor* g = many_g.empty() ? few_g : many_g.data();
    for (int i = 0; i < node.results; ++i) g[i] = arrived(node, node.places[i]);
    if (capturing_ && !useful_.contains(&node)) return;
    Tensor few[kFewInputs];
    std::vector<Tensor> many(node.inputs > kFewInputs ? node.inputs : 0);
    Tensor* grads = many.empty() ? few : many.data();
    run_gradient(node, g, grads);
    if (modes.anomaly && !dry_) [[unlikely]]
      refuse_nan(node, grads);
    for (int i = 0; i < node.results; ++i) g[i] = Tensor();
    if (!dry_ && !options_.retain_graph && !options_.create_graph) node.release();
    for (int i = 0; i < node.inputs; ++i)
      if (grads[i]) deliver(node.edges[i], std::move(grads[i]));
  }

  // The complete gradient of a result.
  Tensor arrived(const Node& node, ResultPlace& place) {
    Tensor g = std::move(place.pending);
    place.pending = Tensor();
    if (!g) return g;
    if (place.hooks) g = run_hooks(*place.hooks, leaving(std::move(g)), node.op);
    if (place.retainer) keep(*place.retainer, g = leaving(std::move(g)));
    if (capturing_) collect(&place, g);
    return g;
  }

  // Kernels of a gradient may run without the frontend's lock. A pass of another thread would then
  // find the node at work, and release what it reads.
  void run_gradient(Node& node, const Tensor* g, Tensor* grads) {
    const Device* device = nullptr;
    for (int i = 0; i < node.results; ++i)
      if (g[i] && g[i]->elsewhere) device = g[i].device();
    std::optional<DeviceGuard> guard;
    if (device != modes.device) guard.emplace(device);
    if (node.running) fail_two_passes(node);
    struct Running {
      explicit Running(Node& node) : node(node) { node.running = true; }
      ~Running() { node.running = false; }
      Node& node;
    } running(node);
    // What is added to a gradient as it is computed cannot be looked at alone.
    node.apply(g, grads, options_.create_graph || modes.anomaly ? nullptr : this);
  }
  [[noreturn]] static void fail_two_passes(const Node& node) {
    fail(ErrorKind::runtime, node.op,
         ": backward was called from a hook of the same graph, or by another thread meanwhile; one "
         "pass at a time may go through a graph");
  }

  // What a program may write to: a gradient that repeats gets all of its elements. What shows the
  // pass's seed, as a sum's gradient does, stays a view.
  Tensor leaving(Tensor g) const {
    if (modes.grad || !repeats(g)) return g;
    for (const Tensor& seed : seeds_)
      if (seed->storage == g->storage) return g;
    return arithmetic.copy(g);
  }

  void deliver(const Edge& edge, Tensor g) {
    if (edge.leaf) return arrive(edge.leaf, std::move(g));
    if (!edge.node) return;
    Node* node = static_cast<Node*>(edge.node.get());
    ResultPlace& place = node->places[edge.result];
    if (capturing_ && !useful_.contains(node) && !captures_.contains(&place)) return;
    if (node->pass != pass_) {
      for (int i = 0; i < node->results; ++i)
        if (node->places[i].pending) fail_two_passes(*node);
      node->pass = pass_;
      touched_.push_back(node);
      heap_.push_back(node);
      std::push_heap(heap_.begin(), heap_.end(), older);
    }
    accumulate(place.pending, std::move(g));
  }

  void arrive(const Tensor& leaf, Tensor g) {
    if (leaf->extras && leaf->extras->hears_gradient()) [[unlikely]]
      return wait(leaf, std::move(g));
    add_to(leaf, std::move(g));
  }

  // A leaf may have consumers anywhere on the tape: its gradient is complete when the walk ends.
  void wait(const Tensor& leaf, Tensor g) {
    if (capturing_ && !captures_.contains(leaf.get())) return;
    const auto [found, is_new] = hooked_index_.try_emplace(leaf.get(), hooked_.size());
    if (is_new) hooked_.emplace_back(leaf, Tensor());
    accumulate(hooked_[found->second].second, std::move(g));
  }

  void add_to(const Tensor& leaf, Tensor g) {
    if (capturing_) return collect(leaf.get(), g);
    if (dry_ && is_added_in_place(*leaf.get(), g)) return;
    if (modes.capture) [[unlikely]]
      modes.capture->note_gradient(*leaf.get());
    const LockKept kept;  // passes of several threads may end in one leaf
    Tensor& into = grad_of(*leaf.get());
    if (into || options_.create_graph || unique_memory(g)) return accumulate(into, std::move(g));
    into = arithmetic.copy(g);
  }

  void collect(const void* key, const Tensor& g) {
    const auto found = captures_.find(key);
    if (found == captures_.end()) return;
    const Tensor own = leaving(g);
    for (std::size_t i : found->second) accumulate(captured[i], own);
  }

  void keep(TensorHeader& header, const Tensor& g) {
    refuse_in_capture("a result keeps its gradient");
    if (dry_ && is_added_in_place(header, g)) return;
    const LockKept kept;
    accumulate(grad_of(header), g);
  }

  // The same in a dry walk for a grad that is there already, which stays as it is.
  bool add_dry(TensorHeader& leaf, const Use& use) {
    const Tensor& grad = leaf.extras->grad;
    if (unique_memory(grad))
      return use.op.add_into(
          use, DryRun::placeholder(grad.shape(), grad.strides(), grad.dtype(), grad.version()));
    const Tensor sum = dry_grads_[&leaf] = arithmetic.copy(grad);
    return use.op.add_into(use, sum);
  }
  // Where the gradient that an edge leads to has waited so far; null where it does not.
  Tensor* gradient_at(const Edge& edge) {
    if (edge.node) {
      Node* node = static_cast<Node*>(edge.node.get());
      return node->pass == pass_ ? &node->places[edge.result].pending : nullptr;
    }
    TensorHeader* const leaf = edge.leaf.get();
    if (!leaf) return nullptr;
    if (leaf->extras && leaf->extras->hears_gradient()) {
      const auto found = hooked_index_.find(leaf);
      return found == hooked_index_.end() ? nullptr : &hooked_[found->second].second;
    }
    if (capturing_) {
      const auto found = captures_.find(leaf);
      return found == captures_.end() || found->second.size() > 1 ? nullptr
                                                                  : &captured[found->second[0]];
    }
    if (modes.capture) modes.capture->note_gradient(*leaf);
    if (dry_ && dry_grads_.contains(leaf)) return &dry_grads_[leaf];
    return leaf->extras ? &leaf->extras->grad : nullptr;
  }

  // Where the gradient of a tensor adds up: a dry walk has grads of its own.
  Tensor& grad_of(TensorHeader& header) {
    if (!dry_) return Tensor(Ref<TensorHeader>(&header)).extras().grad;
    const auto [found, is_new] = dry_grads_.try_emplace(&header);
    if (is_new && header.extras) found->second = header.extras->grad;
    return found->second;
  }
  // Whether the walk would only write into a grad that is there already.
  bool is_added_in_place(const TensorHeader& header, const Tensor& g) const {
    if (!header.extras || dry_grads_.contains(&header)) return false;
    const Tensor& grad = header.extras->grad;
    return grad && unique_memory(grad) && grad.dtype() == g.dtype();
  }

  // Depth-first without recursion: a node is useful when an edge leads to a capture or a useful
  // node.
  void mark_useful(const Tensor& root) {
    if (root.is_leaf()) return;
    std::vector<Node*> order, stack = {node_of(root)};
    std::unordered_map<Node*, bool> seen;
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      if (std::exchange(seen[node], true)) continue;
      order.push_back(node);
      for (int i = 0; i < node->inputs; ++i)
        if (node->edges[i].node) stack.push_back(static_cast<Node*>(node->edges[i].node.get()));
    }
    std::sort(order.begin(), order.end(), older);  // producers first
    for (Node* node : order)
      for (int i = 0; i < node->inputs; ++i) {
        const Edge& edge = node->edges[i];
        Node* next = static_cast<Node*>(edge.node.get());
        if ((edge.leaf && captures_.contains(edge.leaf.get())) ||
            (next && (captures_.contains(&next->places[edge.result]) || useful_.contains(next))))
          useful_[node] = true;
      }
  }

  BackwardOptions options_;
  std::uint64_t pass_;
  DryRun* dry_;
  PlannedPass* planned_;
  std::unordered_map<const TensorHeader*, Tensor> dry_grads_;
  std::vector<Node*> heap_, touched_;
  // Leaves with hooks in order of arrival, with what has arrived.
  std::vector<std::pair<Tensor, Tensor>> hooked_;
  std::unordered_map<const TensorHeader*, std::size_t> hooked_index_;
  std::vector<Tensor> seeds_;
  bool capturing_ = false;
  std::unordered_map<const void*, std::vector<std::size_t>> captures_;
  std::unordered_map<const Node*, bool> useful_;
};

Tensor seed_for(const Tensor& root, const Tensor& seed) {
  if (!root.requires_grad())
    fail(ErrorKind::runtime, "backward: ", describe(root),
         " has no graph: no input of it requires grad, or it was made under no_grad");
  if (!seed) {
    if (root.count() != 1)
      fail(ErrorKind::runtime, "backward: ", describe(root),
           " is not a single number; give the gradient to start from: backward(gradient)");
    if (is_complex(root.dtype()))
      fail(ErrorKind::runtime, "backward: ", describe(root),
           " is complex; give the gradient to start from: backward(gradient)");
    return arithmetic.ones_like(root);
  }
  if (!(seed.shape() == root.shape()))
    fail(ErrorKind::value, "backward: gradient of shape ", seed.shape(), " for a tensor of shape ",
         root.shape());
  if (seed.device() != root.device())
    fail(ErrorKind::value, "backward: gradient ", describe(seed), " for ", describe(root),
         ", which is on another device");
  if (seed.dtype() != root.dtype())
    fail(ErrorKind::type, "backward: gradient of type ", name_of(seed.dtype()),
         " for a tensor of type ", name_of(root.dtype()));
  return seed;
}

void start(Walk& walk, const std::vector<Tensor>& roots, const std::vector<Tensor>& seeds) {
  if (!seeds.empty() && seeds.size() != roots.size())
    fail(ErrorKind::value, "backward: ", seeds.size(), " gradients for ", roots.size(), " tensors");
  std::vector<Tensor> checked;
  for (std::size_t i = 0; i < roots.size(); ++i)
    checked.push_back(seed_for(roots[i], seeds.empty() ? Tensor() : seeds[i]));
  for (std::size_t i = 0; i < roots.size(); ++i) walk.seed(roots[i], std::move(checked[i]));
}

}  // namespace

void set_gradient_arithmetic(const GradientArithmetic& table) { arithmetic = table; }
bool repeats(const Tensor& g) {
  for (int axis = 0; axis < g.rank(); ++axis)
    if (g.size(axis) > 1 && g.strides()[axis] == 0) return true;
  return false;
}
const GradientArithmetic& gradient_arithmetic() { return arithmetic; }

namespace {

// Runs one walk of the tape: from `roots` to all leaves, or to `inputs` where those are given,
// whose gradients it returns.
std::vector<Tensor> walk_once(const std::vector<Tensor>& roots, const std::vector<Tensor>& seeds,
                              const std::vector<Tensor>* inputs, BackwardOptions options,
                              PlannedPass* planned) {
  Walk walk(options, planned);
  const GradModeGuard mode(options.create_graph);
  if (inputs) walk.capture(roots, *inputs);
  start(walk, roots, seeds);
  walk.run();
  if (DryRun* dry = DryRun::running()) dry->end();
  return std::move(walk.captured);
}

// Whose memory a plan is for: where the pass begins, unless that device has no source of its own.
const Device* planned_device(const std::vector<Tensor>& roots) {
  const Device* const device = roots.empty() ? nullptr : roots[0].device();
  return device && device->source ? device : nullptr;
}

// What fails in the dry walk fails in the real one as well, which then follows the plan so far.
ArenaPlan plan_walk(const std::vector<Tensor>& roots, const std::vector<Tensor>& seeds,
                    const std::vector<Tensor>* inputs, BackwardOptions options) {
  DryRun dry(planned_device(roots));
  try {
    walk_once(roots, seeds, inputs, options, nullptr);
  } catch (const Error&) {
    dry.end();
  }
  return dry.plan();
}

std::vector<Tensor> run_walk(const std::vector<Tensor>& roots, const std::vector<Tensor>& seeds,
                             const std::vector<Tensor>* inputs, BackwardOptions options) {
  if (!options.plan) return walk_once(roots, seeds, inputs, options, nullptr);
  refuse_in_capture("it plans a backward pass");
  if (options.create_graph)
    fail(ErrorKind::value,
         "backward: plan=True with create_graph=True: gradients that are part of a graph outlive "
         "the pass; use one of the two");
  PlannedPass planned(plan_walk(roots, seeds, inputs, options), planned_device(roots));
  return walk_once(roots, seeds, inputs, options, &planned);
}

}  // namespace

void backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& seeds,
              BackwardOptions options) {
  run_walk(roots, seeds, nullptr, options);
}

std::vector<Tensor> gradients(const std::vector<Tensor>& roots, const std::vector<Tensor>& seeds,
                              const std::vector<Tensor>& inputs, BackwardOptions options) {
  for (const Tensor& x : inputs)
    if (!x.requires_grad())
      fail(ErrorKind::runtime, "grad: input ", describe(x), " does not require grad");
  return run_walk(roots, seeds, &inputs, options);
}

std::vector<Tensor> leaves_of(const Tensor& root) {
  std::vector<Tensor> leaves;
  std::unordered_map<const void*, bool> seen;
  std::vector<Edge> stack = {Edge(root)};
  while (!stack.empty()) {
    const Edge edge = std::move(stack.back());
    stack.pop_back();
    const void* key = edge.leaf ? static_cast<const void*>(edge.leaf.get()) : edge.node.get();
    if (!key || std::exchange(seen[key], true)) continue;
    if (edge.leaf) {
      leaves.push_back(edge.leaf);
      continue;
    }
    const Node& node = static_cast<const Node&>(*edge.node);
    stack.insert(stack.end(), node.edges, node.edges + node.inputs);
  }
  return leaves;
}

std::uint64_t register_hook(const Tensor& x, Hook hook) {
  if (!x.requires_grad())
    fail(ErrorKind::runtime, "register_hook: ", describe(x), " does not require grad");
  if (x.is_leaf()) return x.extras().backward_hooks.add(std::move(hook));
  std::unique_ptr<HookList>& hooks = place_of(*x.get()).hooks;
  if (!hooks) hooks = std::make_unique<HookList>();
  return hooks->add(std::move(hook));
}

std::uint64_t register_forward_hook(const Tensor& x, Hook hook) {
  return x.extras().forward_hooks.add(std::move(hook));
}

std::uint64_t register_grad_hook(const Tensor& leaf, Hook hook) {
  if (!leaf.requires_grad() || !leaf.is_leaf())
    fail(ErrorKind::runtime, "register_post_accumulate_grad_hook: ", describe(leaf),
         leaf.requires_grad() ? " is no leaf, whose grad a pass adds to; register_hook is called "
                                "with the gradient of any tensor"
                              : " does not require grad");
  return leaf.extras().grad_hooks.add(std::move(hook));
}

void drop_recorded_grad(TensorHeader& header) {
  if (!header.extras || !header.extras->grad || header.extras->grad.is_leaf()) return;
  const Tensor ends_last = std::move(header.extras->grad);
  header.extras->grad = Tensor();
}

void retain_grad(const Tensor& x) {
  if (!x.requires_grad())
    fail(ErrorKind::runtime, "retain_grad: ", describe(x), " does not require grad");
  if (!x.is_leaf()) place_of(*x.get()).retainer = x.get();
}

Tensor apply_forward_hooks(const Tensor& x) {
  refuse_in_capture("a hook runs");
  // An op on the value within its own hook takes it as it is.
  static thread_local std::vector<const TensorHeader*> running;
  if (std::find(running.begin(), running.end(), x.get()) != running.end()) return x;
  struct Entry {
    explicit Entry(const Tensor& x) { running.push_back(x.get()); }
    ~Entry() { running.pop_back(); }
  } entry(x);
  Tensor value = x;
  const std::vector<HookEntry> snapshot = x->extras->forward_hooks.entries();
  for (const HookEntry& hook : snapshot)
    if (Tensor replaced = hook.call(value)) value = replaced;
  return value;
}

}  // namespace tw
