// Gradient checkpointing (Chen et al., "Training deep nets with sublinear memory cost", 2016):
// values that ops save inside a checkpointed function are not kept; the first one that a backward
// pass asks for runs the function again, which brings back all of them. What is kept are the keys
// of the random numbers drawn inside: a rerun gets those and moves no generator.
#pragma once
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/autograd/node.h"

namespace tw {

// One call of a checkpointed function. Alive while some node has a saved value in it.
class CheckpointFrame : public Counted {
 public:
  // `rerun` computes the same as the function did, from the same inputs.
  using Rerun = std::function<void(const std::vector<Tensor>& inputs)>;
  CheckpointFrame(Rerun rerun, const std::vector<Tensor>& inputs);
  ~CheckpointFrame();
  static void destroy(CheckpointFrame* frame) noexcept { delete frame; }

  // The function's own run: what it saves from here on belongs to this frame.
  class Recording {
   public:
    explicit Recording(CheckpointFrame& frame);
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

   private:
    CheckpointFrame& frame_;
    const std::uint32_t outer_run_ = modes.run;
  };

  // A place for a value that is being saved. Raises RuntimeError where a rerun saves another one
  // than the run did.
  SavedPlace* place(const Tensor& x);
  // What an op reads, a recorded one or one of constants. True in a rerun that finds it changed in
  // place since, or made from what was: no operand that is saved need tell.
  bool read(const Tensor& x);
  // A result of an op that reads such an operand: a rerun that saves it raises RuntimeError.
  void spoil(const Tensor& y);
  // The value, after a rerun where it is not there.
  Tensor value(std::uint32_t place);
  void drop(std::uint32_t place) noexcept;
  // The key of `words` random words: drawn anew in the run, and by a frame around this one where
  // there is one; that of the run in a rerun. Raises RuntimeError where a rerun draws others.
  Tensor key(std::int64_t words, const std::function<Tensor()>& draw);

  // For whoever looks for cycles: the frame's number, its function, and all tensors it holds.
  std::uint64_t id() const { return id_; }
  const Rerun& rerun() const { return rerun_; }
  void each_held(void (*visit)(void* context, const SavedTensor* saved, const Tensor* value),
                 void* context) const;
  // Frees the function of a frame that nobody can reach any more, where it still exists.
  static void forget_function(std::uint64_t id);

 private:
  enum class State : std::uint8_t { recording, idle, rerunning };
  struct Entry {
    Shape shape;
    Strides strides;
    DType dtype;
    std::uint32_t version;
    bool wanted = true;  // its node has not been released
    Tensor value = {};
  };
  // Memory from before the run, as ops found it first.
  struct Read {
    Ref<Storage> storage;  // others could be taken for it
    std::uint32_t version;
    std::uint32_t run;  // the last one that has read it
  };
  struct Key {
    std::int64_t words;
    Tensor value;
  };
  void run_again();
  std::uint32_t match(const Tensor& x);
  void note_version(const Tensor& x);
  void check_version(const Tensor& x);
  bool is_spoiled(const Tensor& x) const;

  const std::uint64_t id_;
  Rerun rerun_;
  std::vector<SavedTensor> inputs_;
  std::vector<const Storage*> memory_of_inputs_;  // until the run ends
  std::vector<Entry> entries_;
  std::vector<Key> keys_;  // in the order in which they were drawn
  std::unordered_map<const Storage*, Read> reads_;
  std::uint32_t run_ = 0;  // counts the runs of all frames
  // Of a rerun; the storages live on, as others could be taken for them.
  std::size_t next_ = 0, next_key_ = 0;
  std::vector<Ref<Storage>> spoiled_;
  std::string changed_;                           // the first read of what was changed
  const std::uint8_t autocast_ = modes.autocast;  // of the run, and so of its reruns
  CheckpointFrame* outer_ = nullptr;              // whose function runs around this one's
  State state_ = State::idle;
};

CheckpointFrame* frame_of(const SavedPlace& place);
// The node that made the value, null for one without.
const Node* origin_of(const SavedPlace& place);

}  // namespace tw
