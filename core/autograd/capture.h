// A recorder of calls, and what runs them again: without the frontend, without choosing kernels,
// and with no new memory but that of the results.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/memory/arena.h"
#include "core/runtime/device.h"
#include "core/runtime/op.h"
#include "core/tensor/access.h"
#include "core/tensor/births.h"
#include "core/tensor/operand.h"

namespace tw {

// A call whose kernel is chosen and whose problem is set up.
struct PreparedCall {
  const OpRecord* op;
  const Lowering* lowering;
  const Kernel* kernel;
  Estimate estimate;
};

struct CaptureFigures {
  std::size_t calls = 0, buffers = 0;
  std::size_t arena_bytes = 0;        // of memory that one replay leaves to the next
  std::size_t sum_bytes = 0;          // what it would be if nothing were used twice
  std::size_t lower_bound_bytes = 0;  // most of it in use at one time
  std::size_t graph_launches = 0;     // that are replayed as one; 0: one by one so far
};

// What was recorded. Tensors that were there before the recording (parameters, states of an
// optimizer, a learning rate of no dimensions) are read and written where they are; numbers of the
// caller's program are what they were.
class Captured {
 public:
  // Runs all calls on other inputs, of the shapes, types and strides of the recording, and returns
  // what the recorded function returned, in memory of its own and outside the graph. Gradients that
  // the recording left in leaves are set anew. Raises ValueError for inputs that do not fit,
  // RuntimeError where a gradient that is added to is no longer where it was, and what kernels
  // raise: as in the recorded function, in-place changes before that have happened then.
  std::vector<Tensor> replay(const std::vector<Tensor>& inputs);
  // Whether what kernels and types were chosen by is still in force on this thread: forced kernels,
  // autocast, and the process's precision limit and tuning. A replay does not ask.
  bool is_current() const;
  const std::vector<PreparedCall>& calls() const { return calls_; }
  const CaptureFigures& figures() const { return figures_; }

 private:
  friend class Capture;

  // Memory by what becomes of it in a replay: that of an input; the very memory of the recording;
  // fresh; a part of the arena.
  enum class Role : std::uint8_t { input, kept, result, temporary };
  struct Buffer {
    Role role;
    bool written = false;
    std::size_t bytes = 0;
    int input = -1;
    Ref<Storage> kept = {};
    std::size_t offset = 0;  // in the arena
    ByteRange range = {};    // that inputs show of it
  };
  // Of an operand: bytes from the start of its buffer. Numbers lie in a list of their own.
  static constexpr int kNumber = -1, kAbsent = -2;
  struct BufferOffset {
    int buffer;
    std::int64_t offset;
  };
  // A tensor over a buffer.
  struct Layout {
    BufferOffset at = {kAbsent, 0};
    Shape shape;
    Strides strides;
    DType dtype = DType::float32;
    bool is_constant = false;  // of the program's values: results are copies
  };
  struct LeafGradient {
    Tensor leaf;
    Tensor before = {};      // what its gradient was, until the recording is rehearsed
    int input = -1;          // the leaf is this input
    int added_to = kAbsent;  // the buffer of the gradient that was there before
    bool assigned = false;   // the recording left another one, `left`, or none
    Layout left;
  };
  struct alignas(16) Bytes16 {
    char bytes[16];
  };
  struct Unit {  // where the parts of a call start
    std::size_t problem, places, count, attributes, attribute_count;
  };

  void check(const std::vector<Tensor>& inputs) const;
  std::vector<char*> bases_of(Access& at, const std::vector<Tensor>& inputs,
                              const std::vector<Ref<Storage>>& storages) const;
  void run_call(std::size_t i, const std::vector<char*>& bases);
  void run(const std::vector<Tensor>& inputs, const std::vector<Ref<Storage>>& storages);
  bool runs_as_one() const;
  bool is_in_graph(std::size_t call) const;
  void reserve_fixed_memory();
  void run_as_one(const std::vector<Tensor>& inputs, const std::vector<Ref<Storage>>& storages);
  Tensor over(const Layout& layout, const std::vector<Tensor>& inputs,
              const std::vector<Ref<Storage>>& storages) const;

  std::vector<PreparedCall> calls_;
  std::vector<Unit> units_;
  std::vector<Bytes16> problems_, numbers_;
  std::vector<BufferOffset> places_;
  std::vector<Attribute> attributes_;
  std::vector<Scalar> given_;  // numbers_ as the program gave them
  std::vector<Buffer> buffers_;
  std::vector<Layout> inputs_, outputs_;
  std::vector<LeafGradient> gradients_;
  Ref<Storage> arena_;
  const Device* device_ = nullptr;  // null: the CPU
  // Where launches are replayed as one, they have addresses of their own.
  struct Fixed {
    Ref<Storage> memory;
    std::int64_t start = 0;  // in the buffer
  };
  std::vector<Fixed> fixed_;
  std::vector<char*> graph_bases_;
  std::unique_ptr<LaunchGraph> graph_;
  std::vector<void*> addresses_;  // of a call
  // What was in force while it was recorded.
  const Choice* choice_ = nullptr;
  std::uint8_t autocast_ = 0;
  std::uint32_t choice_epoch_ = 0;
  CaptureFigures figures_;
  bool running_ = false;
  bool changes_what_is_held_ = false;  // an input, or what was there before the recording
};

// Records what this thread calls while it lives. Calls run as they would without it. What replays
// could not repeat is refused with a RuntimeError: reading values in the frontend, hooks, planned
// backward passes, pools of memory entered inside, generators other than the default one, and
// tensors that others made meanwhile: other threads, and libraries whose memory is shared.
//
// What the frontend computes by itself (numbers, indices, which ops it calls) is part of the
// recording, and no replay would know that it varies. So a recording is rehearsed: with `recorded`,
// that of the first call on the same inputs, nothing is computed and each call must be the same,
// and so must be which tensors are returned.
class Capture {
 public:
  explicit Capture(std::vector<Tensor> inputs, Captured* recorded = nullptr);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // `addresses`: of numbers among the inputs. Operands that the op writes to are results, or
  // marked in its signature. Returns whether the call is to run.
  bool note(const PreparedCall& call, const void* problem, std::size_t problem_bytes,
            const Call& described, const Operand* in, const Tensor* out, void* const* addresses);
  // What the frontend has just written to fresh memory.
  void note_values(const Tensor& x);
  // Before a leaf's gradient changes.
  void note_gradient(TensorHeader& leaf);
  // How many references the recording itself holds to memory that was there before.
  std::uint32_t references_to(const Storage& storage) const;
  // Ends the recording.
  std::unique_ptr<Captured> finish(const std::vector<Tensor>& outputs);
  // Ends the rehearsal.
  void finish_rehearsal(const std::vector<Tensor>& outputs);

 private:
  class Source;
  int buffer_of(const Tensor& x, bool written, const char* op);
  int known_buffer_of(const Tensor& x, bool written, const char* op);
  Captured::Layout layout_of(const Tensor& x, const char* op);
  void set_apart_host_work();
  void take_back_gradients();
  void note_results(const std::vector<Tensor>& outputs);
  void compare_call(const Call& described) const;
  void compare_operand(const Captured::BufferOffset& place, const Captured::BufferOffset& first,
                       const char* op) const;
  void compare_layout(const Captured::Layout& layout, const Captured::Layout& first,
                      const char* what) const;
  void leave();

  std::unique_ptr<Captured> out_;
  std::vector<Tensor> inputs_;
  std::unordered_map<const Storage*, int> kept_;  // buffers of what was there before
  std::vector<const Storage*> gradients_before_;  // of leaves, as in out_->gradients_
  struct Put {
    Tensor leaf, grad;
  };
  std::vector<Put> gradients_after_;  // what the first call left
  const Births births_;
  Source* source_;
  BlockSource* source_before_;
  Captured* const recorded_;  // null: this is the first call
};

// Raises RuntimeError while this thread records.
void refuse_in_capture(const char* what);

}  // namespace tw
