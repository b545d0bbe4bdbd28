// The tape: one node for each recorded op, with edges to the nodes or leaves its inputs came from.
#pragma once
#include <array>
#include <initializer_list>
#include <memory>
#include <vector>

#include "core/autograd/grad_mode.h"
#include "core/base/error.h"
#include "core/base/free_list.h"
#include "core/memory/events.h"
#include "core/tensor/tensor.h"

namespace tw {

// Where the gradient of an input goes: on to a result of the node that made it, into a leaf, or
// nowhere.
struct Edge {
  Ref<NodeBase> node;
  Tensor leaf;
  std::uint8_t result = 0;
  DType dtype = DType::float32;  // of the input
  std::uint32_t shape_at = 0;    // in an OpNode's attributes, where the input's shape is kept
  bool wanted() const { return node || leaf; }
  Edge() = default;
  // To where `x` came from; nowhere for an empty one.
  explicit Edge(const Tensor& x) {
    if (!x) return;
    dtype = x.dtype();
    if (!x.requires_grad()) return;
    if (x.is_leaf()) {
      leaf = x;
    } else {
      node = x->grad_fn;
      result = x->result;
    }
  }
};

class SavedTensor;

inline constexpr int kMaxResults = 4;

struct Use;
// The gradients that a pass has so far.
class Waiting {
 public:
  // Adds the result of an op to the one that waits where `edge` leads. False where none does, or
  // where no kernel adds as it computes.
  virtual bool add(const Edge& edge, const Use& use) = 0;

 protected:
  ~Waiting() = default;
};

class CustomNode;
struct Node;
// Keeps where the program makes the node, in anomaly mode or while ops are observed (origins.h).
void note_origin(Node& node);

// Sequence numbers grow with creation: a consumer's is always larger than its producers', which is
// all the order the walk needs.
struct Node : NodeBase {
  const char* op;
  std::uint64_t sequence;
  Edge* edges = nullptr;
  int inputs = 0;
  bool released = false;     // its saved values are gone
  bool running = false;      // its gradients are being computed
  std::uint16_t origin = 0;  // where it was made, if that was noted (origins.h)
  std::uint64_t pass = 0;    // the one that wrote what is pending

  explicit Node(const char* op) : op(op), sequence(next_sequence()) {
    if (!modes.plain || observed_everywhere.load(std::memory_order_relaxed)) [[unlikely]]
      note_origin(*this);
  }
  bool wants(int input) const { return edges[input].wanted(); }
  // Writes the gradients of the wanted inputs, given those of the results, of which some may be
  // missing; those that `waiting` (null: none) takes are not written.
  virtual void apply(const Tensor* g, Tensor* input_grads, Waiting* waiting) = 0;
  // Drops saved values; a later apply raises.
  virtual void release() = 0;
  // Shows the saved values that the node holds, each once: those it does not show count as held
  // from outside the graph when cycles are looked for (cycles.h).
  using SavedVisitor = void (*)(void* context, const SavedTensor& saved);
  virtual void each_saved(SavedVisitor, void*) const {}
  // Null where the gradient is not a function of a frontend (user_function.h).
  virtual const CustomNode* custom() const { return nullptr; }

  static std::uint64_t next_sequence() {
    static std::uint64_t last = 0;
    return ++last;
  }
};

// While a checkpointed function runs, what is saved stays in its frame (checkpoint.h) instead.
class CheckpointFrame;
struct SavedPlace;
// Null where the value is to be kept as usual.
SavedPlace* place_in_frame(const Tensor& x);
// Tells the frame that an op of it reads `x`. True where `x` is not what it was in the run: whoever
// reads it must spoil its results.
bool read_in_frame(const Tensor& x);
void spoil_in_frame(const Tensor& y);
Tensor value_of(const SavedPlace& place);
void destroy(SavedPlace* place) noexcept;

// A value that a gradient needs, with the version it had.
class SavedTensor {
 public:
  SavedTensor() = default;
  // Of an op's own result, which is saved without its place in the graph (that would be a cycle):
  // which one it is.
  explicit SavedTensor(const Tensor& x, int result = -1)
      : version_(x.version()), result_(static_cast<std::int8_t>(result)) {
    if (modes.checkpoint || (x->is_view && x->family)) [[unlikely]]
      hold_apart(x);
    else
      held_ = Ref<TensorHeader>(x.get()).leak();
  }
  SavedTensor(SavedTensor&& other) noexcept
      : held_(std::exchange(other.held_, nullptr)),
        version_(other.version_),
        result_(other.result_),
        in_frame_(other.in_frame_) {}
  SavedTensor& operator=(SavedTensor&& other) noexcept {
    std::swap(held_, other.held_);
    std::swap(version_, other.version_);
    std::swap(result_, other.result_);
    std::swap(in_frame_, other.in_frame_);
    return *this;
  }
  ~SavedTensor() {
    if (!held_) return;
    if (in_frame_) [[unlikely]]
      destroy(static_cast<SavedPlace*>(held_));
    else
      Ref<TensorHeader>::adopt(static_cast<TensorHeader*>(held_));
  }
  static SavedTensor result(const Tensor& y, int index = 0) {
    return SavedTensor(y.detached(), index);
  }
  // Raises RuntimeError when the value was changed in place since; `what` names it in the message.
  Tensor get(const Node& node, const char* what) const;
  Tensor get(const char* op, const char* what) const;
  // Where the value is: the one or the other, or neither.
  TensorHeader* header() const { return in_frame_ ? nullptr : static_cast<TensorHeader*>(held_); }
  const SavedPlace* place() const { return in_frame_ ? static_cast<SavedPlace*>(held_) : nullptr; }

 private:
  // In a checkpoint's frame, or without the family of a view.
  void hold_apart(const Tensor& x);

  void* held_ = nullptr;  // a TensorHeader or, where in_frame_, a SavedPlace
  std::uint32_t version_ = 0;
  std::int8_t result_ = -1;  // where it is one of the node's results
  bool in_frame_ = false;
};

[[noreturn]] void fail_released(const Node& node);

// A node whose gradient is a function object: f(node, g, input_grads).
template <class F, class Edges> struct FunctionNode final : Node {
  Edges storage;
  F function;
  ResultPlace place;

  FunctionNode(const char* op, Edges&& edges_in, F&& f)
      : Node(op), storage(std::move(edges_in)), function(std::move(f)) {
    edges = storage.data();
    inputs = static_cast<int>(storage.size());
    places = &place;
  }
  void apply(const Tensor* g, Tensor* input_grads, Waiting*) override {
    function(*this, *g, input_grads);
  }
  void release() override {}
  static void* operator new(std::size_t) { return FreeList<FunctionNode>::take(); }
  static void operator delete(void* memory) { FreeList<FunctionNode>::give(memory); }
};

// Whether a view shows the values of a recorded change in which its place in the graph has no part.
inline bool is_stale(const Tensor& x) {
  return x->is_view &&
         x->recorded_seen != (x->family ? x->family->changes : x->storage->recorded_changes);
}
// Gives a stale view of a family the place in the graph that its base has now. Installed by the ops
// floor.
extern void (*renew_view)(const Tensor& view);
// The same for any stale view: raises RuntimeError for one without a family.
void renew(const Tensor& view);
// Of a view whose place in the graph is a function's, after a change that the function's gradient
// knows nothing of.
[[noreturn]] void fail_behind_function(const Tensor& view);

// Whether `x` takes part in the graph; raises RuntimeError for stale views that cannot be renewed.
inline bool records(const Tensor& x) {
  if (!x) return false;
  if (is_stale(x)) [[unlikely]]
    renew(x);
  return x.requires_grad();
}
template <class... Tensors> bool should_record(const Tensors&... inputs) {
  return modes.grad && (records(inputs) | ...);  // all are asked: each may be stale
}

inline void set_requires_grad(const Tensor& x, bool value) {
  x->requires_grad = value;
  x->storage->in_graph |= value;
}

inline void attach(const Tensor& y, Node* node, int result = 0) {
  set_requires_grad(y, true);
  y->grad_fn = Ref<NodeBase>(node);
  y->result = static_cast<std::uint8_t>(result);
}

// Makes `y` the result of `op` on `inputs` in the graph, where the gradient needs no saved values:
// it can be walked again and again. Call only where should_record(...) holds.
template <class F, class... Inputs>
void record(const Tensor& y, const char* op, F gradient, const Inputs&... inputs) {
  using Edges = std::array<Edge, sizeof...(Inputs)>;
  attach(y, new FunctionNode<F, Edges>(op, Edges{Edge(inputs)...}, std::move(gradient)));
}

}  // namespace tw
