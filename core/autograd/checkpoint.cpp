// Frames: places for saved values, and the rerun that fills them.
#include "core/autograd/checkpoint.h"

#include <algorithm>
#include <unordered_map>

#include "core/autograd/planner.h"

namespace tw {

// Where a frame keeps a value. The place of the function's own run owns the value and knows where
// it came from, as a recorded gradient leads there, past hooks and on to whoever asks for the
// gradient of that value; nodes of a rerun find it there as long as it is kept.
struct SavedPlace {
  Ref<CheckpointFrame> frame;
  std::uint32_t index;
  bool owner;
  Ref<NodeBase> origin = {};
  std::uint8_t result = 0;
  ~SavedPlace() {
    if (owner) frame->drop(index);
  }
};

void destroy(SavedPlace* place) noexcept { delete place; }

SavedPlace* place_in_frame(const Tensor& x) {
  // The edge to a leaf keeps it anyway.
  if (x.requires_grad() && x.is_leaf()) return nullptr;
  return modes.checkpoint->place(x);
}

bool read_in_frame(const Tensor& x) { return modes.checkpoint->read(x); }
void spoil_in_frame(const Tensor& y) { modes.checkpoint->spoil(y); }

Tensor value_of(const SavedPlace& place) {
  const Tensor x = place.frame->value(place.index);
  if (!place.origin || !modes.grad) return x;
  Tensor y = x.detached();
  attach(y, static_cast<Node*>(place.origin.get()), place.result);
  return y;
}
const Node* origin_of(const SavedPlace& place) {
  return static_cast<const Node*>(place.origin.get());
}
CheckpointFrame* frame_of(const SavedPlace& place) { return place.frame.get(); }

namespace {

[[noreturn]] void fail_different(const std::string& difference) {
  fail(ErrorKind::runtime, "checkpoint: the function is not deterministic: run again, it ",
       difference,
       "; a checkpointed function must do the same each time, on values that stay as they were: "
       "change none that it reads in place before backward");
}
[[noreturn]] void fail_saved(const std::string& difference) {
  fail_different("saved " + difference);
}
std::string describe_changed(const Tensor& x, std::uint32_t expected) {
  std::ostringstream text;
  text << "checkpoint: " << describe(x)
       << ", which the function reads, was changed in place since (version " << x.version()
       << ", expected " << expected << "); change a copy() instead";
  return text.str();
}
[[noreturn]] void fail_drawn(const std::string& difference) {
  fail_different("drew other random numbers: " + difference);
}

// Never destroyed: frames may end later.
std::unordered_map<std::uint64_t, CheckpointFrame*>& frames() {
  static auto& instance = *new std::unordered_map<std::uint64_t, CheckpointFrame*>;
  return instance;
}

std::uint32_t next_run() {
  static std::uint32_t last = 0;
  return ++last;
}

std::uint64_t next_id() {
  static std::uint64_t last = 0;
  return ++last;
}

}  // namespace

CheckpointFrame::CheckpointFrame(Rerun rerun, const std::vector<Tensor>& inputs)
    : id_(next_id()), rerun_(std::move(rerun)) {
  // Within another frame they are saved in that one.
  for (const Tensor& x : inputs) {
    inputs_.emplace_back(x);
    memory_of_inputs_.push_back(x->storage.get());
  }
  frames()[id_] = this;
  ++held_functions;
}
CheckpointFrame::~CheckpointFrame() {
  frames().erase(id_);
  --held_functions;
}

void CheckpointFrame::each_held(void (*visit)(void*, const SavedTensor*, const Tensor*),
                                void* context) const {
  for (const SavedTensor& x : inputs_) visit(context, &x, nullptr);
  for (const Entry& entry : entries_) visit(context, nullptr, &entry.value);
}

void CheckpointFrame::forget_function(std::uint64_t id) {
  const auto found = frames().find(id);
  if (found == frames().end()) return;
  const Rerun ends_last = std::exchange(found->second->rerun_, nullptr);
}

CheckpointFrame::Recording::Recording(CheckpointFrame& frame) : frame_(frame) {
  frame_.outer_ = std::exchange(modes.checkpoint, &frame);
  modes.run = frame_.run_ = next_run();
  frame_.state_ = State::recording;
}
CheckpointFrame::Recording::~Recording() {
  frame_.state_ = State::idle;
  frame_.memory_of_inputs_.clear();
  modes.checkpoint = std::exchange(frame_.outer_, nullptr);
  modes.run = outer_run_;
}

Tensor CheckpointFrame::key(std::int64_t words, const std::function<Tensor()>& draw) {
  if (state_ == State::rerunning) {
    if (next_key_ == keys_.size())
      fail_drawn("more often than the " + std::to_string(keys_.size()) + " times of the first run");
    const Key& known = keys_[next_key_++];
    if (known.words != words)
      fail_drawn(std::to_string(words) + " words instead of " + std::to_string(known.words));
    return known.value;
  }
  keys_.push_back({words, outer_ ? outer_->key(words, draw) : draw()});
  return keys_.back().value;
}

bool CheckpointFrame::read(const Tensor& x) {
  // A function that is checkpointed inside of this one's is run anew when this one is.
  const bool spoils_outer = outer_ && outer_->read(x);
  if (state_ != State::rerunning) {
    note_version(x);
    return spoils_outer;
  }
  check_version(x);
  return spoils_outer || is_spoiled(x);
}

// Not of inputs, whose versions are compared before a rerun, and whose memory may go until then.
void CheckpointFrame::note_version(const Tensor& x) {
  const Storage* const memory = x->storage.get();
  const bool made_inside = memory->run >= run_;  // later runs have later numbers
  if (made_inside || reads_.contains(memory)) return;
  if (std::count(memory_of_inputs_.begin(), memory_of_inputs_.end(), memory)) return;
  reads_[memory] = {x->storage, x.version(), run_};
}

// What the function itself changes from here on, it changed in its run as well.
void CheckpointFrame::check_version(const Tensor& x) {
  const auto found = reads_.find(x->storage.get());
  if (found == reads_.end() || std::exchange(found->second.run, run_) == run_) return;
  const std::uint32_t expected = found->second.version;
  if (expected == x.version()) return;
  if (changed_.empty()) changed_ = describe_changed(x, expected);
  spoiled_.push_back(x->storage);
}

void CheckpointFrame::spoil(const Tensor& y) {
  if (outer_) outer_->spoil(y);
  if (state_ == State::rerunning && !is_spoiled(y)) spoiled_.push_back(y->storage);
}

bool CheckpointFrame::is_spoiled(const Tensor& x) const {
  return std::any_of(spoiled_.begin(), spoiled_.end(), [&](const Ref<Storage>& storage) {
    return storage.get() == x->storage.get();
  });
}

SavedPlace* CheckpointFrame::place(const Tensor& x) {
  const Ref<CheckpointFrame> self(this);
  if (state_ == State::rerunning) return new SavedPlace{self, match(x), false};
  entries_.push_back({x.shape(), x.strides(), x.dtype(), x.version()});
  const auto index = static_cast<std::uint32_t>(entries_.size() - 1);
  return new SavedPlace{self, index, true, x->grad_fn, x->result};
}

std::uint32_t CheckpointFrame::match(const Tensor& x) {
  const auto index = static_cast<std::uint32_t>(next_++);
  if (index >= entries_.size())
    fail_saved("more than the " + std::to_string(entries_.size()) + " values of the first run");
  Entry& entry = entries_[index];
  if (!(entry.shape == x.shape()) || entry.dtype != x.dtype())
    fail_saved(describe(x) + " instead of " + name_of(entry.dtype) + " " + to_string(entry.shape));
  if (entry.version != x.version()) fail(ErrorKind::runtime, describe_changed(x, entry.version));
  if (!changed_.empty() && is_spoiled(x)) fail(ErrorKind::runtime, changed_);
  if (entry.wanted) entry.value = x.detached();
  return index;
}

Tensor CheckpointFrame::value(std::uint32_t index) {
  if (!entries_[index].value) {
    const Entry& entry = entries_[index];
    if (DryRun::running())
      return DryRun::placeholder(entry.shape, entry.strides, entry.dtype, entry.version);
    if (state_ != State::idle)
      fail(
          ErrorKind::runtime,
          "checkpoint: backward ran inside the checkpointed function on values that it saves; call "
          "it outside");
    run_again();
  }
  return entries_[index].value;
}

void CheckpointFrame::run_again() {
  const Ref<CheckpointFrame> self(this);
  const BlockSourceGuard source(PlannedPass::source_outside());
  const GradModeGuard mode(true);
  std::vector<Tensor> inputs;
  for (const SavedTensor& x : inputs_) inputs.push_back(x.get("checkpoint", "input"));
  const AutocastGuard types(autocast_);
  const Recording scope(*this);
  // What a failed rerun saved is not the run's: the next one starts afresh.
  struct Values {
    std::vector<Entry>* entries;
    std::vector<Ref<Storage>>* spoiled;
    ~Values() {
      spoiled->clear();
      if (!entries) return;
      for (Entry& entry : *entries) const Tensor ends = std::exchange(entry.value, Tensor());
    }
  } values{&entries_, &spoiled_};
  state_ = State::rerunning;
  next_ = next_key_ = 0;
  changed_.clear();
  const OriginScope own_lines{Origin()};  // the program's, while it runs its function again
  rerun_(inputs);
  if (next_key_ != keys_.size())
    fail_drawn(std::to_string(next_key_) + " times instead of " + std::to_string(keys_.size()));
  if (next_ != entries_.size())
    fail_saved(std::to_string(next_) + " values instead of " + std::to_string(entries_.size()));
  values.entries = nullptr;
}

void CheckpointFrame::drop(std::uint32_t index) noexcept {
  entries_[index].wanted = false;
  const Tensor value = std::move(entries_[index].value);
  entries_[index].value = Tensor();
}

}  // namespace tw
