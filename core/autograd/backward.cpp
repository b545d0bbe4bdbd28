// Nodes wait in a heap ordered by sequence number, newest first; a node is taken when every
// consumer has been, so its gradient is complete.
#include "core/autograd/backward.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "core/autograd/anomaly.h"
#include "core/autograd/capture.h"
#include "core/autograd/origins.h"
#include "core/autograd/user_function.h"
#include "core/autograd/gradient_hooks.h"
#include "core/autograd/planner.h"
#include "core/runtime/choice.h"
#include "core/runtime/device.h"
#include "core/runtime/interruption.h"

namespace tw {

namespace {

GradientArithmetic arithmetic;
constexpr int kFewInputs = 4;

bool unique_memory(const Tensor& g) { return is_alone(g) && g.contiguous(); }

void accumulate(Tensor& into, Tensor g) {
  if (!into) {
    into = std::move(g);
  } else if (!modes.grad && unique_memory(into) && into.dtype() == g.dtype() &&
             uses(Optimization::in_place_accumulation)) {
    arithmetic.add_in_place(into, g);
  } else {
    into = arithmetic.add(into, g);
  }
}

// A leaf with hooks: they see the sum of what a pass brings, `alone`. Where the leaf has a grad,
// the same terms are added to that one by one too, as without hooks: `together` is the grad to be,
// unless a hook changes something. So looking on changes no bit.
struct HookedLeaf {
  Tensor leaf, alone;
  Tensor before, together;    // empty where there is no grad
  std::uint32_t version = 0;  // of `before`

  void begin(const Tensor& grad) {
    before = together = grad;
    if (grad) version = grad.version();
  }
  // Whether nobody else has changed the grad since.
  bool still(const Tensor& grad) const {
    return before && grad && grad.is(before) && grad.version() == version;
  }
};

class Walk final : public Waiting {
 public:
  // `planned` gets each node before it is visited.
  Walk(BackwardOptions options, const std::vector<Tensor>& lent, PlannedPass* planned)
      : options_(options),
        pass_(++last_pass()),
        dry_(DryRun::running()),
        planned_(planned),
        lent_(lent) {}
  ~Walk() {
    for (Node* node : touched_)
      for (int i = 0; i < node->results; ++i) node->places[i].pending = Tensor();
  }

  // Restricts the walk to paths that end in `inputs` and collects their gradients.
  void restrict_to(const std::vector<Tensor>& roots, const std::vector<Tensor>& inputs) {
    restricted_ = true;
    collected.resize(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      wanted_[key_of(inputs[i])].push_back(i);
    }
    for (const Tensor& root : roots) mark_useful(root);
  }

  // `own`: made for the pass, where the caller gave none.
  void seed(const Tensor& root, Tensor g, bool own) {
    if (own) own_seeds_.push_back(g);
    deliver(Edge(root), std::move(g));
  }

  void run() {
    GradModeGuard mode(options_.create_graph);
    std::optional<RunsToItsEnd> whole;  // leaves would keep a part of the gradient
    if (!restricted_) whole.emplace();
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), older);
      Node* node = heap_.back();
      heap_.pop_back();
      visit(*node);
    }
    for (HookedLeaf& hooked : hooked_) {
      begin_step();
      const Tensor leaf = hooked.leaf;
      if (hooked.alone) finish(hooked);
      if (!restricted_ && !dry_ && !leaf->extras->grad_hooks.empty()) run_grad_hooks(leaf);
    }
  }

  bool add(const Edge& edge, const Use& use) override {
    if (is_off(Optimization::accumulate_into_product)) return false;
    if (edge.leaf && has_hooks(edge.leaf)) [[unlikely]]
      return add_hooked(edge, use);
    if (held_functions && passes_on(edge.node)) [[unlikely]]
      return add_tapped(edge, use);
    Tensor* const place = gradient_at(edge);
    if (!place || !*place || !uses(Optimization::accumulate_into_product)) return false;
    if (dry_ && edge.leaf && place == &edge.leaf->extras->grad)
      return place->dtype() == edge.dtype && add_dry(*edge.leaf.get(), use);
    // Leaves belong to all threads: none may come in between.
    std::optional<LockKept> kept;
    if (edge.leaf) kept.emplace();
    return add_into(*place, edge, use);
  }

  // What was asked for, each in memory of its own: a program may write to it.
  std::vector<Tensor> taken() {
    for (const auto& [key, places] : wanted_)
      for (std::size_t i = 1; i < places.size(); ++i) collected[places[i]] = collected[places[0]];
    for (std::size_t i = 0; i < collected.size(); ++i)
      if (collected[i]) collected[i] = own(collected[i], i);
    own_seeds_.clear();
    return std::move(collected);
  }

 private:
  std::vector<Tensor> collected;

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
    if (restricted_ && !useful_.contains(&node)) return;
    Tensor few[kFewInputs];
    std::vector<Tensor> many(node.inputs > kFewInputs ? node.inputs : 0);
    Tensor* grads = many.empty() ? few : many.data();
    const bool door = held_functions && passes_on(&node);
    std::vector<std::uint32_t> versions;  // no handles: what is handed out should be alone
    for (int i = 0; door && i < node.results; ++i) versions.push_back(g[i] ? g[i].version() : 0);
    std::optional<GradientScope> scope;
    if (node.origin || observed()) [[unlikely]]
      scope.emplace(node);
    run_gradient(node, g, grads);
    if (modes.anomaly && !dry_) [[unlikely]]
      refuse_nan(node, grads);
    if (door) return leave_door(node, versions, g, grads);
    for (int i = 0; i < node.results; ++i) g[i] = Tensor();
    if (!dry_ && !options_.retain_graph && !options_.create_graph &&
        uses(Optimization::early_release))
      node.release();
    for (int i = 0; i < node.inputs; ++i)
      if (grads[i]) deliver(node.edges[i], std::move(grads[i]));
  }

  // The complete gradient of a result.
  Tensor arrived(const Node& node, ResultPlace& place) {
    Tensor g = std::move(place.pending);
    place.pending = Tensor();
    if (!g) return g;
    if (place.hooks && options_.hooks) g = seen_by(*place.hooks, g, node.op);
    if (place.retainer) keep(*place.retainer, g);
    if (restricted_) collect(&place, g);
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

  // What a program may write to: a gradient that nobody else has, and all of whose elements are
  // its own. What shows the pass's own seed, as a sum's gradient does, stays a view.
  Tensor leaving(const Tensor& g) const {
    if (modes.grad || (is_alone(g) && !repeats(g))) return g;
    return repeats(g) && shows_seed(g) ? g : arithmetic.copy(g);
  }
  bool shows_seed(const Tensor& g) const {
    return std::any_of(own_seeds_.begin(), own_seeds_.end(),
                       [&](const Tensor& seed) { return seed->storage == g->storage; });
  }

  // A gradient after its hooks: the same one, with the layout it had, where none changed anything.
  Tensor seen_by(const HookList& hooks, const Tensor& g, const char* op) const {
    const Tensor shown = leaving(g);
    const std::uint32_t version = shown.version();
    Tensor left = run_hooks(hooks, shown, op);
    return left.is(shown) && left.version() == version ? g : left;
  }

  // The i-th result. With a graph, which holds gradients too, what counts is whether another
  // result or the caller shows the same memory.
  Tensor own(const Tensor& g, std::size_t i) const {
    if (repeats(g) && shows_seed(g)) return g->references > 1 ? g.detached() : g;
    if (!modes.grad) return is_alone(g) && !repeats(g) ? g : arithmetic.copy(g);
    const auto shared = [&](const Tensor& other) { return other && other->storage == g->storage; };
    const bool given = std::any_of(lent_.begin(), lent_.end(), shared);
    return given || std::any_of(collected.begin(), collected.begin() + static_cast<long>(i), shared)
               ? arithmetic.copy(g)
               : g;
  }

  void deliver(const Edge& edge, Tensor g) {
    if (edge.leaf) return arrive(edge, std::move(g));
    if (!edge.node) return;
    ResultPlace* const place = reached(edge);
    if (!place) return;
    if (held_functions && passes_on(edge.node)) [[unlikely]]
      add_behind(edge, *place, g);
    accumulate(place->pending, std::move(g));
  }
  // The place of a node that is to be visited; null where the walk does not go there.
  ResultPlace* reached(const Edge& edge) {
    Node* node = static_cast<Node*>(edge.node.get());
    ResultPlace& place = node->places[edge.result];
    if (restricted_ && !useful_.contains(node) && !wanted_.contains(&place)) return nullptr;
    if (node->pass != pass_) {
      for (int i = 0; i < node->results; ++i)
        if (node->places[i].pending) fail_two_passes(*node);
      node->pass = pass_;
      touched_.push_back(node);
      heap_.push_back(node);
      std::push_heap(heap_.begin(), heap_.end(), older);
    }
    return &place;
  }

  // ---- nodes that pass gradients on to onlookers, from each result to the input of its place ----

  bool passes_on(const Ref<NodeBase>& node) const { return node && passes_on(node.get()); }
  bool passes_on(const NodeBase* node) const {
    const CustomNode* const custom = static_cast<const Node*>(node)->custom();
    return custom && custom->passes_on() && !dry_ && !modes.capture;
  }
  static const Edge& edge_behind(const Edge& edge) {
    return static_cast<const Node*>(edge.node.get())->edges[edge.result];
  }
  Tensor* state_at(const Edge& edge) {
    if (!edge.leaf || !has_hooks(edge.leaf)) return gradient_at(edge);
    const auto found = hooked_index_.find(edge.leaf.get());
    return found == hooked_index_.end() ? nullptr : &hooked_[found->second].alone;
  }
  Tap* tap_at(const Edge& edge) {
    const auto found = taps_.find(&static_cast<Node*>(edge.node.get())->places[edge.result]);
    return found == taps_.end() ? nullptr : &found->second;
  }

  // What has arrived where an edge leads to, and behind that.
  void take_states(const Edge& edge, Snapshot& states) {
    const Tensor* const state = state_at(edge);
    states.take(state ? *state : Tensor());
    if (edge.leaf && has_hooks(edge.leaf)) {
      const auto found = hooked_index_.find(edge.leaf.get());
      states.take(found != hooked_index_.end() ? hooked_[found->second].together
                  : restricted_                ? Tensor()
                                               : grad_now(*edge.leaf.get()));
    } else if (passes_on(edge.node)) {
      if (const Tap* const tap = tap_at(edge))
        for (const Tensor& each : tap->together) states.take(each);
      else
        take_states(edge_behind(edge), states);
    }
  }
  void put_states(const Edge& edge, const Tensor* states) {
    Tensor* const state = state_at(edge);
    if (state && *states) *state = *states;
    if (edge.leaf && has_hooks(edge.leaf)) {
      const auto found = hooked_index_.find(edge.leaf.get());
      if (found != hooked_index_.end() && states[1]) hooked_[found->second].together = states[1];
    } else if (passes_on(edge.node)) {
      if (Tap* const tap = tap_at(edge))
        std::copy_n(states + 1, tap->together.size(), tap->together.begin());
    }
  }

  Tap& tap_of(const Edge& edge, ResultPlace& place) {
    const auto [found, is_new] = taps_.try_emplace(&place);
    Tap& tap = found->second;
    if (is_new) {
      take_states(edge_behind(edge), tap.before);
      tap.together = tap.before.tensors();
    }
    return tap;
  }
  void add_behind(const Edge& edge, ResultPlace& place, const Tensor& g) {
    for (Tensor& each : tap_of(edge, place).together)
      if (each) accumulate(each, g);
  }
  bool add_tapped(const Edge& edge, const Use& use) {
    ResultPlace* const place = reached(edge);
    if (!place) return false;
    int added = 0;
    for (Tensor& each : tap_of(edge, *place).together) {
      if (!each) continue;
      if (!add_into(each, edge, use)) return false;  // the first, as all others would
      ++added;
    }
    if (!added) return place->pending && add_into(place->pending, edge, use);
    add_or_start(place->pending, edge, use);
    return true;
  }

  // What onlookers left as it was counts as it would have without them.
  void leave_door(Node& node, const std::vector<std::uint32_t>& versions, Tensor* g,
                  Tensor* grads) {
    std::vector<bool> unchanged;
    for (int i = 0; i < node.results; ++i)
      unchanged.push_back(g[i] && grads[i] && grads[i].is(g[i]) && g[i].version() == versions[i]);
    for (int i = 0; i < node.results; ++i) g[i] = Tensor();
    if (!options_.retain_graph && !options_.create_graph) node.release();
    for (int i = 0; i < node.inputs; ++i)
      if (grads[i]) pass_on(node.edges[i], node.places[i], unchanged[i], std::move(grads[i]));
  }
  void pass_on(const Edge& edge, const ResultPlace& place, bool unchanged, Tensor g) {
    const auto found = taps_.find(&place);
    if (found == taps_.end()) return deliver(edge, std::move(g));
    const LockKept kept;
    const Tap tap = std::move(found->second);
    taps_.erase(found);
    Snapshot now;
    take_states(edge, now);
    deliver(edge, std::move(g));
    if (unchanged && now == tap.before) put_states(edge, tap.together.data());
  }

  void arrive(const Edge& edge, Tensor g) {
    const Tensor& leaf = edge.leaf;
    if (leaf->extras && leaf->extras->has_gradient_hooks()) [[unlikely]] {
      if (restricted_ && !wanted_.contains(leaf.get())) return;
      HookedLeaf& hooked = hooked_at(leaf);
      if (has_hooks(leaf)) return wait(hooked, std::move(g));
    }
    add_to(leaf, std::move(g));
  }

  bool has_hooks(const Tensor& leaf) const {
    return options_.hooks && leaf->extras && !leaf->extras->backward_hooks.empty();
  }
  // The entry of a leaf with hooks, made as the first term arrives.
  HookedLeaf& hooked_at(const Tensor& leaf) {
    const auto [found, is_new] = hooked_index_.try_emplace(leaf.get(), hooked_.size());
    if (!is_new) return hooked_[found->second];
    HookedLeaf& hooked = hooked_.emplace_back();
    hooked.leaf = leaf;
    if (!restricted_ && has_hooks(leaf)) hooked.begin(grad_now(*leaf.get()));
    return hooked;
  }

  // A leaf may have consumers anywhere on the tape: its gradient is complete when the walk ends.
  static void wait(HookedLeaf& hooked, Tensor g) {
    if (hooked.together) accumulate(hooked.together, g);
    accumulate(hooked.alone, std::move(g));
  }

  bool add_hooked(const Edge& edge, const Use& use) {
    if (restricted_ && !wanted_.contains(edge.leaf.get())) return false;
    HookedLeaf& hooked = hooked_at(edge.leaf);
    if (!hooked.together) return hooked.alone && add_into(hooked.alone, edge, use);
    if (!add_into(hooked.together, edge, use)) return false;
    add_or_start(hooked.alone, edge, use);
    return true;
  }
  // Of an op that could be added elsewhere.
  static void add_or_start(Tensor& place, const Edge& edge, const Use& use) {
    if (place && add_into(place, edge, use)) return;
    Tensor g;
    arithmetic.apply(use.op, use.in, use.inputs, use.attributes, &g);
    accumulate(place, std::move(g));
  }

  static bool add_into(Tensor& place, const Edge& edge, const Use& use) {
    if (place.dtype() != edge.dtype) return false;
    if (!unique_memory(place)) place = arithmetic.copy(place);
    return use.op.add_into(use, place);
  }

  void finish(HookedLeaf& hooked) {
    if (!has_hooks(hooked.leaf)) return add_to(hooked.leaf, std::move(hooked.alone));
    const Tensor g = seen_by(hooked.leaf->extras->backward_hooks, hooked.alone, "leaf");
    const bool unchanged = g.is(hooked.alone);
    hooked.alone = Tensor();
    const LockKept kept;
    if (!restricted_ && unchanged && hooked.still(grad_now(*hooked.leaf.get()))) {
      grad_of(*hooked.leaf.get()) = std::move(hooked.together);
      return;
    }
    hooked.before = hooked.together = Tensor();
    add_to(hooked.leaf, g);
  }

  void add_to(const Tensor& leaf, Tensor g) {
    if (restricted_) return collect(leaf.get(), g);
    if (dry_ && is_added_in_place(*leaf.get(), g)) return;
    if (modes.capture) [[unlikely]]
      modes.capture->note_gradient(*leaf.get());
    const LockKept kept;  // passes of several threads may end in one leaf
    Tensor& into = grad_of(*leaf.get());
    if (into || unique_memory(g)) return accumulate(into, std::move(g));
    into = arithmetic.copy(g);
  }

  void collect(const void* key, const Tensor& g) {
    const auto found = wanted_.find(key);
    if (found != wanted_.end()) accumulate(collected[found->second[0]], g);
  }

  void keep(TensorHeader& header, const Tensor& g) {
    refuse_in_capture("a result keeps its gradient");
    if (dry_ && is_added_in_place(header, g)) return;
    const LockKept kept;
    Tensor& into = grad_of(header);
    if (into) return accumulate(into, g);
    into = arithmetic.copy(g);
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
    if (restricted_) {
      const auto found = wanted_.find(leaf);
      return found == wanted_.end() ? nullptr : &collected[found->second[0]];
    }
    if (leaf->extras && !leaf->extras->grad_hooks.empty()) hooked_at(edge.leaf);
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
  Tensor grad_now(const TensorHeader& header) const {
    const auto found = dry_grads_.find(&header);
    if (found != dry_grads_.end()) return found->second;
    return header.extras ? header.extras->grad : Tensor();
  }
  // Whether the walk would only write into a grad that is there already.
  bool is_added_in_place(const TensorHeader& header, const Tensor& g) const {
    if (!header.extras || dry_grads_.contains(&header)) return false;
    const Tensor& grad = header.extras->grad;
    return grad && unique_memory(grad) && grad.dtype() == g.dtype();
  }

  // Depth-first without recursion: a node is useful when an edge leads to an input or a useful
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
        if ((edge.leaf && wanted_.contains(edge.leaf.get())) ||
            (next && (wanted_.contains(&next->places[edge.result]) || useful_.contains(next))))
          useful_[node] = true;
      }
  }

  BackwardOptions options_;
  std::uint64_t pass_;
  DryRun* dry_;
  PlannedPass* planned_;
  std::unordered_map<const TensorHeader*, Tensor> dry_grads_;
  std::vector<Node*> heap_, touched_;
  std::vector<HookedLeaf> hooked_;  // in order of arrival
  std::unordered_map<const TensorHeader*, std::size_t> hooked_index_;
  std::unordered_map<const ResultPlace*, Tap> taps_;
  std::vector<Tensor> own_seeds_;
  const std::vector<Tensor>& lent_;  // by the caller, to start from
  bool restricted_ = false;
  std::unordered_map<const void*, std::vector<std::size_t>> wanted_;
  std::unordered_map<const Node*, bool> useful_;
};

Tensor seed_for(const Tensor& root, const Tensor& seed) {
  refuse_behind_function(root);
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
  for (std::size_t i = 0; i < roots.size(); ++i)
    walk.seed(roots[i], std::move(checked[i]), seeds.empty() || !seeds[i]);
}

}  // namespace

void set_gradient_arithmetic(const GradientArithmetic& table) { arithmetic = table; }
bool repeats(const Tensor& g) {
  for (int axis = 0; axis < g.rank(); ++axis)
    if (g.size(axis) > 1 && g.strides()[axis] == 0) return true;
  return false;
}
bool is_alone(const Tensor& g) {
  const Storage& storage = *g->storage;
  const std::uint32_t held = modes.capture ? modes.capture->references_to(storage) : 0;
  return g->references == 1 && storage.references == 1 + held && !storage.owner;
}
const GradientArithmetic& gradient_arithmetic() { return arithmetic; }

namespace {

// Runs one walk of the tape: from `roots` to all leaves, or to `inputs` where those are given,
// whose gradients it returns.
std::vector<Tensor> walk_once(const std::vector<Tensor>& roots, const std::vector<Tensor>& seeds,
                              const std::vector<Tensor>* inputs, BackwardOptions options,
                              PlannedPass* planned) {
  Walk walk(options, seeds, planned);
  const GradModeGuard mode(options.create_graph);
  if (inputs) walk.restrict_to(roots, *inputs);
  start(walk, roots, seeds);
  walk.run();
  std::vector<Tensor> taken = walk.taken();
  if (DryRun* dry = DryRun::running()) dry->end();
  return taken;
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
  for (const Tensor& x : inputs) {
    refuse_behind_function(x);
    if (!x.requires_grad())
      fail(ErrorKind::runtime, "grad: input ", describe(x), " does not require grad");
  }
  return run_walk(roots, seeds, &inputs, options);
}

}  // namespace tw
