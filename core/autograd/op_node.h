// The node of a recorded op: its record, its attributes, the values that its gradient reads, and
// where the gradients of its inputs go. All of it lies behind the node in one piece of memory.
#pragma once
#include "core/autograd/node.h"
#include "core/runtime/op.h"
#include "core/tensor/operand.h"

namespace tw {

// Tells the frame of a checkpointed function that an op has read `in` and written `out`.
void tell_frame(const Operand* in, int inputs, const Tensor* out, int results);

struct OpNode final : Node {
  const OpRecord& record;
  // Bits of inputs and results that are saved; of the inputs, those that are numbers.
  std::uint64_t saved_inputs = 0, numbers = 0;
  std::uint16_t saved_results = 0;
  std::uint16_t saved_count = 0;  // of `saved`
  std::uint32_t bytes;            // of the node and what lies behind it
  SavedTensor* saved;     // inputs that are tensors, then results, in the order of their bits
  Scalar* scalars;        // inputs that are numbers
  Attributes attributes;  // the call's, then the shapes that edges point to

  // Records that `out` came from `in`; call only where one of them takes part in the graph. Raises
  // before anything is changed.
  static void record_call(const OpRecord& record, const Operand* in, int inputs,
                          Attributes attributes, const Tensor* out);
  // The same in two steps, for in-place calls: the edges before the write, what is saved behind it,
  // where `in` has copies of what was overwritten.
  static Ref<NodeBase> create(const OpRecord& record, const Operand* in, int inputs,
                              Attributes attributes, const Tensor& result);
  void save(const Operand* in, const Tensor* out);
  // What the gradients of those operands read that take part in the graph.
  static Reads reads_of(const OpRecord& record, const Operand* in, int inputs);

  void apply(const Tensor* g, Tensor* dx, Waiting* waiting) override;
  void release() override;
  void each_saved(SavedVisitor visit, void* context) const override;
  static void operator delete(OpNode* node, std::destroying_delete_t) noexcept;

 private:
  OpNode(const OpRecord& record, std::uint32_t bytes)
      : Node(record.name), record(record), bytes(bytes) {}
  ~OpNode() override = default;
  static OpNode* make(const OpRecord& record, const Operand* in, int inputs, Attributes attributes,
                      const TensorHeader& result);
  void keep_shapes(const Operand* in, const TensorHeader& result);
};

// One use of a record's gradient rule.
class Vjp {
 public:
  Vjp(const OpNode& node, const Tensor* g, Tensor* dx, Waiting* waiting)
      : node_(node), g_(g), dx_(dx), waiting_(waiting) {}
  const OpRecord& record() const { return node_.record; }
  Attributes attributes() const { return node_.attributes; }
  int inputs() const { return node_.inputs; }
  bool wants(int input) const { return node_.edges[input].wanted(); }
  // The gradient of a result; empty where nothing depends on it.
  const Tensor& g(int result = 0) const { return g_[result]; }
  // What was saved, as the record's reads say. RuntimeError where it was changed in place since.
  Operand in(int input) const;
  Tensor out(int result = 0) const;
  // Of any input whose shape the record keeps, and of inputs that are tensors.
  Shape shape(int input) const;
  // The shape that a gradient without terms may have: the input's where broadcasting may have
  // stretched it, else the result's.
  Shape own_shape(int input) const {
    return node_.edges[input].shape_at ? shape(input) : g().shape();
  }
  DType dtype(int input) const { return node_.edges[input].dtype; }

  // The gradient of an input. It is summed to the input's shape where broadcasting stretched it,
  // and converted to its type.
  void give(int input, Tensor dx);
  // The same of an op that is yet to run: where a gradient waits, a kernel may add to it.
  void give(int input, const OpRecord& op, std::initializer_list<Operand> in,
            Attributes attributes = {});

 private:
  const OpNode& node_;
  const Tensor* g_;
  Tensor* dx_;
  Waiting* waiting_;
};

}  // namespace tw
