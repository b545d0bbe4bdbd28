// Nodes of recorded ops: one allocation each, from free lists by size.
#include "core/autograd/op_node.h"

#include <new>

#include "core/autograd/backward.h"

namespace tw {

namespace {

// Free lists of node memory in steps of 64 bytes; not thread-safe, like reference counts.
constexpr std::uint32_t kStep = 64;
constexpr int kSizes = 16;
constexpr int kKept = 16384;  // of each size: the tape of a deep network
struct Link {
  Link* next;
};
Link* free_nodes[kSizes];
int kept_nodes[kSizes];

void* take(std::uint32_t bytes) {
  const std::uint32_t size = bytes / kStep - 1;
  if (size >= kSizes || !free_nodes[size]) return ::operator new(bytes);
  Link* const link = free_nodes[size];
  free_nodes[size] = link->next;
  --kept_nodes[size];
  return link;
}

void give_back(void* memory, std::uint32_t bytes) noexcept {
  const std::uint32_t size = bytes / kStep - 1;
  if (size >= kSizes || kept_nodes[size] >= kKept) return ::operator delete(memory);
  free_nodes[size] = new (memory) Link{free_nodes[size]};
  ++kept_nodes[size];
}

// The parts behind a node, in this order.
struct Layout {
  std::uint32_t edges, places, saved, scalars, attributes, bytes;
  Layout(int inputs, int results, int tensors, int numbers, int attribute_count) {
    edges = sizeof(OpNode);
    places = edges + static_cast<std::uint32_t>(sizeof(Edge)) * inputs;
    saved = places + static_cast<std::uint32_t>(sizeof(ResultPlace)) * results;
    scalars = saved + static_cast<std::uint32_t>(sizeof(SavedTensor)) * tensors;
    attributes = scalars + static_cast<std::uint32_t>(sizeof(Scalar)) * numbers;
    bytes = attributes + static_cast<std::uint32_t>(sizeof(Attribute)) * attribute_count;
    bytes = (bytes + kStep - 1) / kStep * kStep;
  }
};

template <class T> T* at(OpNode* node, std::uint32_t offset) {
  return reinterpret_cast<T*>(reinterpret_cast<char*>(node) + offset);
}

int bits_of(std::uint64_t mask) {  // few: without a call on processors' common ground
  int count = 0;
  for (; mask; mask &= mask - 1) ++count;
  return count;
}

// Whether broadcasting may have stretched an input.
bool is_stretched(const TensorHeader& x, const TensorHeader& result) {
  return x.count != result.count || x.shape.rank() != result.shape.rank() || !x.count;
}

// Whether the node keeps the shape of an input: always, or where the result's may be another one.
bool keeps_shape(const OpRecord& record, int input, const TensorHeader& x,
                 const TensorHeader& result) {
  if (record.shapes == kAllShapes) return true;
  if (record.shapes)
    return input < 15 && (record.shapes >> input & 1) &&
           (!(record.shapes & kOfStacks) || result.shape.rank() > 2);
  return (record.flags & kBroadcasts) && is_stretched(x, result);
}

bool any_stretched(const Operand* in, int inputs, const TensorHeader& result) {
  for (int i = 0; i < inputs; ++i)
    if (const TensorHeader* x = in[i].tensor.get(); x && is_stretched(*x, result)) return true;
  return false;
}

// What a node has to keep of a call.
struct Kept {
  std::uint64_t tensors = 0, numbers = 0;  // bits
  std::uint16_t results = 0;
  int shape_attributes = 0;

  Kept(const OpRecord& record, const Operand* in, int inputs, const TensorHeader& result) {
    const Reads reads = OpNode::reads_of(record, in, inputs);
    results = reads.results;
    if (record.shapes || ((record.flags & kBroadcasts) && any_stretched(in, inputs, result)))
      for (int i = 0; i < inputs; ++i) {
        const TensorHeader* x = in[i].tensor.get();
        if (x && keeps_shape(record, i, *x, result)) shape_attributes += 1 + x->shape.rank();
      }
    for (int i = 0; reads.inputs && i < inputs && i < 64; ++i)
      if (reads.inputs >> i & 1) (in[i].tensor ? tensors : numbers) |= std::uint64_t{1} << i;
  }
  bool any() const { return tensors | numbers | results; }
};

}  // namespace

void tell_frame(const Operand* in, int inputs, const Tensor* out, int results) {
  bool spoils = false;
  for (int i = 0; i < inputs; ++i)
    if (in[i].tensor) spoils |= read_in_frame(in[i].tensor);
  for (int i = 0; spoils && i < results; ++i)
    if (out[i]) spoil_in_frame(out[i]);
}

Reads OpNode::reads_of(const OpRecord& record, const Operand* in, int inputs) {
  Reads reads;
  for (int i = 0; i < inputs && i < kMaxReads; ++i) {
    const TensorHeader* x = in[i].tensor.get();
    if (x && x->requires_grad) reads |= record.reads[i];
  }
  return reads;
}

[[gnu::always_inline]] inline OpNode* OpNode::make(const OpRecord& record, const Operand* in,
                                                   int inputs, Attributes attributes,
                                                   const TensorHeader& result) {
  const Kept kept(record, in, inputs, result);
  int saved = 0, numbers = 0;
  if (kept.any()) {
    saved = bits_of(kept.tensors) + bits_of(kept.results);
    numbers = bits_of(kept.numbers);
  }
  const Layout layout(inputs, record.results, saved, numbers,
                      attributes.count + kept.shape_attributes);
  auto* node = new (take(layout.bytes)) OpNode(record, layout.bytes);
  node->inputs = inputs;
  node->results = static_cast<std::uint8_t>(record.results);
  node->edges = at<Edge>(node, layout.edges);
  node->places = at<ResultPlace>(node, layout.places);
  node->saved = at<SavedTensor>(node, layout.saved);
  node->scalars = at<Scalar>(node, layout.scalars);
  node->saved_inputs = kept.tensors | kept.numbers;
  node->saved_results = kept.results;
  node->numbers = kept.numbers;
  Attribute* const all_attributes = at<Attribute>(node, layout.attributes);
  node->attributes = {all_attributes, attributes.count};
  for (int i = 0; i < attributes.count; ++i) all_attributes[i] = attributes.at[i];
  new (&node->places[0]) ResultPlace();
  for (int i = 1; i < record.results; ++i) new (&node->places[i]) ResultPlace();
  for (int i = 0; i < inputs; ++i) new (&node->edges[i]) Edge(in[i].tensor);
  if (kept.shape_attributes) node->keep_shapes(in, result);
  return node;
}

Ref<NodeBase> OpNode::create(const OpRecord& record, const Operand* in, int inputs,
                             Attributes attributes, const Tensor& result) {
  if (modes.checkpoint) [[unlikely]]
    tell_frame(in, inputs, &result, 1);
  return Ref<NodeBase>(make(record, in, inputs, attributes, *result.get()));
}

void OpNode::keep_shapes(const Operand* in, const TensorHeader& result) {
  Attribute* const all_attributes = const_cast<Attribute*>(attributes.at);
  int end = attributes.count;
  for (int i = 0; i < inputs; ++i) {
    const TensorHeader* x = in[i].tensor.get();
    if (!x || !keeps_shape(record, i, *x, result)) continue;
    edges[i].shape_at = static_cast<std::uint32_t>(end + 1);
    all_attributes[end++] = x->shape.rank();
    for (const std::int64_t extent : x->shape) all_attributes[end++] = extent;
  }
}

// Saving raises where a checkpointed function saves other values than before.
void OpNode::save(const Operand* in, const Tensor* out) {
  int number = 0;
  for (int i = 0; saved_inputs >> i; ++i) {
    if (!(saved_inputs >> i & 1)) continue;
    if (numbers >> i & 1) {
      scalars[number++] = in[i].scalar;
    } else {
      new (&saved[saved_count]) SavedTensor(in[i].tensor);
      ++saved_count;
    }
  }
  for (int i = 0; saved_results >> i; ++i) {
    if (!(saved_results >> i & 1)) continue;
    new (&saved[saved_count]) SavedTensor(out[i].detached(), record.smooth >> i & 1 ? i : -1);
    ++saved_count;
  }
}

void OpNode::record_call(const OpRecord& record, const Operand* in, int inputs,
                         Attributes attributes, const Tensor* out) {
  if (modes.checkpoint) [[unlikely]]
    tell_frame(in, inputs, out, record.results);
  OpNode* const node = make(record, in, inputs, attributes, *out[0].get());
  const bool saves = node->saved_inputs | node->saved_results;
  if (record.results == 1 && !saves) [[likely]]
    return attach(out[0], node);
  const Ref<NodeBase> owner(node);
  if (saves) node->save(in, out);
  for (int i = 0; i < record.results; ++i)
    if ((record.smooth >> i & 1) && is_differentiable(out[i].dtype())) attach(out[i], node, i);
}

void OpNode::operator delete(OpNode* node, std::destroying_delete_t) noexcept {
  const std::uint32_t bytes = node->bytes;
  for (int i = 0; i < node->saved_count; ++i) node->saved[i].~SavedTensor();
  for (int i = 0; i < node->results; ++i) node->places[i].~ResultPlace();
  for (int i = 0; i < node->inputs; ++i) node->edges[i].~Edge();
  node->~OpNode();
  give_back(node, bytes);
}

void OpNode::apply(const Tensor* g, Tensor* dx, Waiting* waiting) {
  if (released) fail_released(*this);
  Vjp call(*this, g, dx, waiting);
  record.vjp(call);
}

// What keeps no values can be walked again and again.
void OpNode::release() {
  for (int i = 0; i < saved_count; ++i) saved[i] = SavedTensor();
  released = saved_count > 0;
}

void OpNode::each_saved(SavedVisitor visit, void* context) const {
  for (int i = 0; i < saved_count; ++i) visit(context, saved[i]);
}

Operand Vjp::in(int input) const {
  const std::uint64_t below = (std::uint64_t{1} << input) - 1;
  if (node_.numbers >> input & 1) return node_.scalars[bits_of(node_.numbers & below)];
  const std::uint64_t tensors = node_.saved_inputs & ~node_.numbers;
  return node_.saved[bits_of(tensors & below)].get(node_, parameter_name(node_.record, input));
}

Tensor Vjp::out(int result) const {
  const std::uint64_t tensors = node_.saved_inputs & ~node_.numbers;
  const auto below = static_cast<std::uint16_t>(node_.saved_results & ((1 << result) - 1));
  return node_.saved[bits_of(tensors) + bits_of(below)].get(node_, "result");
}

Shape Vjp::shape(int input) const {
  const Attribute* at = node_.attributes.at + node_.edges[input].shape_at - 1;
  Shape shape;
  for (Attribute i = 1; i <= at[0]; ++i) shape.push_back(at[i]);
  return shape;
}

void Vjp::give(int input, Tensor dx) {
  if (!dx) return;
  const Edge& edge = node_.edges[input];
  if (edge.shape_at) dx = gradient_arithmetic().sum_to(dx, shape(input));
  if (dx.dtype() != edge.dtype) dx = gradient_arithmetic().astype(dx, edge.dtype);
  dx_[input] = dx_[input] ? gradient_arithmetic().add(dx_[input], dx) : dx;
}

void Vjp::give(int input, const OpRecord& op, std::initializer_list<Operand> in,
               Attributes attributes) {
  const Use use = {op, in.begin(), static_cast<int>(in.size()), attributes};
  if (waiting_ && op.add_into && waiting_->add(node_.edges[input], use)) return;
  Tensor dx;
  gradient_arithmetic().apply(op, use.in, use.inputs, attributes, &dx);
  give(input, std::move(dx));
}

}  // namespace tw
