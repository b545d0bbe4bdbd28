// Recording finds out whose memory each operand is: made inside (its block comes from the
// recording's own source, which also sees when it is given back), or there before.
#include "core/autograd/capture.h"

#include <algorithm>
#include <cstring>

#include "core/autograd/backward.h"
#include "core/base/error.h"
#include "core/memory/pool.h"
#include "core/runtime/device.h"
#include "core/runtime/launch.h"
#include "core/runtime/signature.h"

namespace tw {

namespace {

// Offsets of all elements.
std::vector<std::int64_t> places_of(const Tensor& x) {
  std::vector<std::int64_t> places = {x->offset_bytes};
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::size_t before = places.size();
    const std::int64_t step = x.strides()[axis] * static_cast<std::int64_t>(x.item_bytes());
    for (std::int64_t i = 1; step != 0 && i < x.size(axis); ++i)
      for (std::size_t k = 0; k < before; ++k) places.push_back(places[k] + i * step);
  }
  return places;
}

// Whether the elements of `x` are elements of `whole`, or parts of them.
bool lies_within(const Tensor& x, const Tensor& whole) {
  if (x.count() > 0 && whole.count() > 0 && !whole.contiguous()) {
    std::vector<std::int64_t> all = places_of(whole);
    std::sort(all.begin(), all.end());
    const auto bytes = static_cast<std::int64_t>(x.item_bytes());
    for (const std::int64_t place : places_of(x)) {
      const auto above = std::upper_bound(all.begin(), all.end(), place);
      if (above == all.begin() ||
          place + bytes > *(above - 1) + static_cast<std::int64_t>(whole.item_bytes()))
        return false;
    }
    return true;
  }
  const ByteRange part = byte_range(x), all = byte_range(whole);
  return x.count() == 0 || (part.low >= all.low && part.high <= all.high);
}

// Whether elements lie in the same order and distances; axes of one element have no distance.
bool same_steps(const Shape& shape, const Strides& a, const Strides& b) {
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] > 1 && a[i] != b[i]) return false;
  return true;
}

struct Memory {
  const char *low, *high;
};
bool overlap(const Memory& a, const Memory& b) { return a.low < b.high && b.low < a.high; }
// None where blocks lie elsewhere: no two of those share memory.
Memory memory_of(const Storage& storage) {
  const char* low = static_cast<const char*>(storage.place());
  return {low, low ? low + storage.bytes : low};
}
Memory memory_of(const Tensor& x) {
  const char* start = static_cast<const char*>(x->storage->place());
  const ByteRange range = byte_range(x);
  return start ? Memory{start + range.low, start + range.high} : Memory{nullptr, nullptr};
}

// Whether an op without results writes to one of its inputs: rows of the sequences' tensors, then
// the other operands.
bool writes_to(const OpRecord& op, int input, int inputs) {
  const Signature& signature = signature_of(op);
  if (input >= inputs - (signature.operands - signature.sequences)) return false;
  for (const Parameter& p : signature.parameters)
    if (p.written && p.slot == input % signature.sequences) return true;
  return false;
}

}  // namespace

// Memory of the default pool, with the times at which it was asked for and given back.
class Capture::Source final : public BlockSource {
 public:
  struct Recorded : Block {
    std::size_t index;
    int buffer = Captured::kAbsent;  // once an op has used it
  };
  Block* allocate(std::size_t bytes) override {
    auto block = std::make_unique<Recorded>();
    block->source = this;
    block->bytes = bytes;
    block->index = plan.blocks.size();
    plan.blocks.push_back({.bytes = bytes, .begin = tick_, .end = 0, .own = true});
    block->data = pool_allocate(bytes);
    ++tick_;
    ++live_;
    return block.release();
  }
  void release(Block* block) noexcept override {
    const std::unique_ptr<Recorded> recorded(static_cast<Recorded*>(block));
    pool_release(recorded->data, recorded->bytes);
    if (!closed_) plan.blocks[recorded->index].end = tick_++;
    if (--live_ == 0 && closed_) delete this;
  }
  bool use(Block&) override { return false; }
  void pin(Block&) override {}
  void unpin(Block&) noexcept override {}

  // No allocation follows; this goes with its last block.
  void close() {
    closed_ = true;
    if (live_ == 0) delete this;
  }
  // Those of calls live in the arena, `own` is false for them.
  ArenaPlan laid_out() {
    for (PlannedBlock& block : plan.blocks)
      if (block.end == 0) block.end = tick_ + 1;
    lay_out(plan);
    return plan;
  }
  static Recorded* block_of(const Tensor& x, const Source* source) {
    Block* block = x->storage->block;
    return block && block->source == source ? static_cast<Recorded*>(block) : nullptr;
  }

  ArenaPlan plan;

 private:
  std::uint32_t tick_ = 0;
  std::size_t live_ = 0;
  bool closed_ = false;
};

void refuse_in_capture(const char* what) {
  if (modes.capture) [[unlikely]]
    fail(ErrorKind::runtime, "capture: ", what, ", which a replay could not repeat");
}

// ---- recording ----

Capture::Capture(std::vector<Tensor> inputs)
    : out_(std::make_unique<Captured>()), inputs_(std::move(inputs)), source_before_(modes.source) {
  if (modes.capture) fail(ErrorKind::runtime, "capture: one is running on this thread");
  out_->choice_ = modes.choice;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Tensor& x = inputs_[i];
    const auto [found, is_new] =
        kept_.try_emplace(x->storage.operator->(), static_cast<int>(out_->buffers_.size()));
    if (is_new)
      out_->buffers_.push_back({.role = Captured::Role::input,
                                .bytes = x->storage->bytes,
                                .input = static_cast<int>(i)});
    out_->inputs_.push_back({{found->second, x->offset_bytes}, x.shape(), x.strides(), x.dtype()});
  }
  source_ = new Source;
  modes.source = source_;
  modes.capture = this;
  modes.update_plain();
}

Capture::~Capture() { leave(); }

void Capture::leave() {
  if (!source_) return;
  modes.capture = nullptr;
  modes.source = source_before_;
  modes.update_plain();
  std::exchange(source_, nullptr)->close();
}

int Capture::known_buffer_of(const Tensor& x, bool written, const char* op) {
  const auto [found, is_new] =
      kept_.try_emplace(x->storage.operator->(), static_cast<int>(out_->buffers_.size()));
  if (is_new)
    out_->buffers_.push_back(
        {.role = Captured::Role::kept, .bytes = x->storage->bytes, .kept = x->storage});
  Captured::Buffer& buffer = out_->buffers_[static_cast<std::size_t>(found->second)];
  buffer.written |= written;
  if (buffer.role == Captured::Role::input) {
    bool within = false;
    for (const Tensor& input : inputs_)
      within |= input->storage == x->storage && lies_within(x, input);
    if (!within)
      fail(ErrorKind::runtime, "capture: ", op, " uses ", describe(x),
           ", which shares memory with an input but is no part of it; copy() one of them");
  }
  return found->second;
}

int Capture::buffer_of(const Tensor& x, bool written, const char* op) {
  Source::Recorded* block = Source::block_of(x, source_);
  if (!block) return known_buffer_of(x, written, op);
  if (block->buffer == Captured::kAbsent) {
    block->buffer = static_cast<int>(out_->buffers_.size());
    out_->buffers_.push_back({.role = Captured::Role::temporary, .bytes = block->bytes});
    // What no call wrote was made of the frontend's values: it stays.
    Captured::Buffer& buffer = out_->buffers_.back();
    if (written) {
      source_->plan.blocks[block->index].own = false;
      buffer.offset = block->index;  // until it is laid out
    } else {
      buffer.role = Captured::Role::kept;
      buffer.kept = x->storage;
    }
  } else if (Captured::Buffer& buffer = out_->buffers_[static_cast<std::size_t>(block->buffer)];
             written && buffer.role == Captured::Role::kept) {
    fail(ErrorKind::runtime, "capture: ", op,
         " changes in place what was made of values of the program, ", describe(x),
         "; make it before, or copy() it");
  }
  out_->buffers_[static_cast<std::size_t>(block->buffer)].written |= written;
  return block->buffer;
}

void Capture::note(const PreparedCall& call, const void* problem, std::size_t problem_bytes,
                   const Call& described, const Operand* in, const Tensor* out,
                   void* const* addresses) {
  const OpRecord& op = *call.op;
  if (modes.dry_run) return;
  if (modes.device)
    fail(ErrorKind::runtime, "capture: ", op.name, " runs on '", modes.device->name,
         "'; capture is for the CPU");
  if (modes.source != source_)
    fail(ErrorKind::runtime, "capture: ", op.name, " runs with memory of another source");
  Captured& c = *out_;
  const std::size_t first_place = c.places_.size();
  for (int i = 0; i < described.inputs; ++i) {
    if (described.in[i].absent) {
      c.places_.push_back({Captured::kAbsent, 0});
    } else if (described.in[i].number) {
      c.places_.push_back({Captured::kNumber, static_cast<std::int64_t>(c.numbers_.size())});
      std::memcpy(c.numbers_.emplace_back().bytes, addresses[i], 16);
    } else {
      const Tensor& x = in[i].tensor;
      // A target is no value that is read.
      bool is_target = op.results == 0 && writes_to(op, i, described.inputs);
      for (int k = 0; k < op.results; ++k) is_target |= out[k]->storage == x->storage;
      c.places_.push_back({buffer_of(x, is_target, op.name), x->offset_bytes});
    }
  }
  for (int k = 0; k < op.results; ++k)
    c.places_.push_back({buffer_of(out[k], true, op.name), out[k]->offset_bytes});
  c.units_.push_back({c.problems_.size(), first_place, c.places_.size() - first_place});
  c.problems_.resize(c.problems_.size() + (problem_bytes + 15) / 16);
  std::memcpy(c.problems_[c.units_.back().problem].bytes, problem, problem_bytes);
  c.calls_.push_back(call);
}

void Capture::note_gradient(TensorHeader& leaf) {
  for (const Captured::LeafGradient& known : out_->gradients_)
    if (known.leaf.get() == &leaf) return;
  const Tensor x{Ref<TensorHeader>(&leaf)};
  const Tensor grad = x.grad();
  gradients_before_.push_back(grad ? grad->storage.operator->() : nullptr);
  Captured::LeafGradient& noted = out_->gradients_.emplace_back();
  noted.leaf = x;
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].is(x)) noted.input = static_cast<int>(i);
}

Captured::Layout Capture::layout_of(const Tensor& x, const char* op) {
  const int index = buffer_of(x, false, op);
  Captured::Buffer& buffer = out_->buffers_[static_cast<std::size_t>(index)];
  const bool is_constant =
      buffer.role == Captured::Role::kept && Source::block_of(x, source_) != nullptr;
  if (buffer.role == Captured::Role::temporary) {
    buffer.role = Captured::Role::result;
    source_->plan.blocks[buffer.offset].own = true;
  }
  return {{index, x->offset_bytes}, x.shape(), x.strides(), x.dtype(), is_constant};
}

std::unique_ptr<Captured> Capture::finish(const std::vector<Tensor>& outputs) {
  Captured& c = *out_;
  for (const Tensor& x : outputs) c.outputs_.push_back(layout_of(x, "the result"));
  for (std::size_t i = 0; i < c.gradients_.size(); ++i) {
    Captured::LeafGradient& noted = c.gradients_[i];
    const auto before = kept_.find(gradients_before_[i]);
    if (before != kept_.end()) noted.added_to = before->second;
    const Tensor grad = noted.leaf.grad();
    noted.assigned = !grad || grad->storage.operator->() != gradients_before_[i];
    if (grad && noted.assigned) noted.left = layout_of(grad, "a gradient");
  }
  const ArenaPlan plan = source_->laid_out();
  for (Captured::Buffer& buffer : c.buffers_)
    if (buffer.role == Captured::Role::temporary) buffer.offset = plan.blocks[buffer.offset].offset;
  c.figures_ = {c.calls_.size(), c.buffers_.size(), plan.arena_bytes, plan.sum_bytes,
                plan.lower_bound_bytes};
  leave();
  const BlockSourceGuard default_pool(nullptr);
  const DeviceGuard on_cpu(nullptr);
  c.arena_ = Storage::allocate(plan.arena_bytes);
  return std::move(out_);
}

// ---- replaying ----

void Captured::check(const std::vector<Tensor>& inputs) const {
  refuse_in_capture("it replays another capture");
  for (const Tensor& x : inputs)
    if (x->elsewhere)
      fail(ErrorKind::value, "replay: ", describe(x), "; the recording was on 'cpu'");
  if (running_) fail(ErrorKind::runtime, "replay: it is at work on another thread");
  if (inputs.size() != inputs_.size())
    fail(ErrorKind::value, "replay: ", inputs.size(), " inputs, but ", inputs_.size(),
         " were recorded");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& x = inputs[i];
    const Layout& recorded = inputs_[i];
    if (x.dtype() != recorded.dtype || !(x.shape() == recorded.shape) ||
        !same_steps(x.shape(), x.strides(), recorded.strides))
      fail(ErrorKind::value, "replay: input ", i, " is ", describe(x), " with strides ",
           x.strides(), "; recorded was ", name_of(recorded.dtype), " ", recorded.shape,
           " with strides ", recorded.strides);
    const Buffer& buffer = buffers_[static_cast<std::size_t>(recorded.at.buffer)];
    const auto first = static_cast<std::size_t>(buffer.input);
    if (buffer.written) x.check_writable("replay");
    for (std::size_t k = 0; k < i; ++k)
      if (inputs_[k].at.buffer != recorded.at.buffer &&
          overlap(memory_of(x), memory_of(inputs[k])) &&
          (buffer.written || buffers_[static_cast<std::size_t>(inputs_[k].at.buffer)].written))
        fail(ErrorKind::value, "replay: inputs ", k, " and ", i,
             " share memory that is written to, those of the recording did not");
    for (const Buffer& kept : buffers_)
      if (kept.kept && (kept.written || buffer.written) &&
          overlap(memory_of(x), memory_of(*kept.kept)))
        fail(ErrorKind::value, "replay: input ", i,
             " shares memory that is written to with a tensor that the recorded function uses");
    if (!(inputs[first]->storage == x->storage) ||
        x->offset_bytes - inputs[first]->offset_bytes !=
            recorded.at.offset - inputs_[first].at.offset)
      fail(ErrorKind::value, "replay: inputs ", first, " and ", i,
           " shared memory in the recording, these do not in the same way");
  }
  for (const LeafGradient& noted : gradients_) {
    if (noted.input >= 0 && noted.leaf.requires_grad()) {
      const Tensor& x = inputs[static_cast<std::size_t>(noted.input)];
      if (!x.requires_grad() || !x.is_leaf())
        fail(ErrorKind::value, "replay: input ", noted.input,
             " gets a gradient, so it must be a leaf that requires grad, as in the recording");
    }
    if (noted.added_to == kAbsent) continue;
    const Tensor grad =
        (noted.input < 0 ? noted.leaf : inputs[static_cast<std::size_t>(noted.input)]).grad();
    if (!grad || !(grad->storage == buffers_[static_cast<std::size_t>(noted.added_to)].kept))
      fail(ErrorKind::runtime, "replay: the gradient of ", describe(noted.leaf),
           " that is added to is not the one of the recording; drop gradients inside");
  }
}

void Captured::run(const std::vector<Tensor>& inputs, const std::vector<Ref<Storage>>& storages) {
  Access at;
  std::vector<char*> bases(buffers_.size());
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const Buffer& buffer = buffers_[i];
    if (buffer.role == Role::temporary) {
      bases[i] = static_cast<char*>(arena_->data) + buffer.offset;
    } else if (buffer.role == Role::input) {
      const auto input = static_cast<std::size_t>(buffer.input);
      bases[i] = at(inputs[input]) - inputs_[input].at.offset;
    } else {
      bases[i] = at.start_of(*storages[i]);
    }
  }
  std::vector<void*> addresses;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const PreparedCall& call = calls_[i];
    const Unit& unit = units_[i];
    addresses.assign(unit.count, nullptr);
    for (std::size_t k = 0; k < unit.count; ++k) {
      const Place& place = places_[unit.places + k];
      if (place.buffer == kNumber)
        addresses[k] = numbers_[static_cast<std::size_t>(place.offset)].bytes;
      else if (place.buffer >= 0)
        addresses[k] = bases[static_cast<std::size_t>(place.buffer)] + place.offset;
    }
    void* const problem = problems_[unit.problem].bytes;
    call.lowering->bind(problem, addresses.data());
    run_prepared(
        call.estimate, [&] { run_kernel(*call.lowering, *call.kernel, problem); },
        [&](Event& seen) {
          seen.op = call.op->name;
          seen.kernel = call.kernel->name;
          seen.isa = name_of(active_isa());
          if (call.lowering->describe) seen.problem = call.lowering->describe(problem);
        });
  }
}

Tensor Captured::over(const Layout& layout, const std::vector<Tensor>& inputs,
                      const std::vector<Ref<Storage>>& storages) const {
  const auto index = static_cast<std::size_t>(layout.at.buffer);
  const Buffer& buffer = buffers_[index];
  if (buffer.role != Role::input)
    return Tensor::over(storages[index], layout.at.offset, layout.shape, layout.strides,
                        layout.dtype);
  const auto first = static_cast<std::size_t>(buffer.input);
  const Tensor& input = inputs[first];
  return Tensor::over(input->storage,
                      input->offset_bytes + layout.at.offset - inputs_[first].at.offset,
                      layout.shape, layout.strides, layout.dtype);
}

std::vector<Tensor> Captured::replay(const std::vector<Tensor>& inputs) {
  check(inputs);
  const DeviceGuard on_cpu(nullptr);
  struct Running {
    explicit Running(Captured& captured)
        : captured(captured), choice(std::exchange(modes.choice, captured.choice_)) {
      captured.running_ = true;
    }
    ~Running() {
      captured.running_ = false;
      modes.choice = choice;
    }
    Captured& captured;
    const Choice* choice;
  } running(*this);
  std::vector<Ref<Storage>> storages(buffers_.size());
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const Buffer& buffer = buffers_[i];
    if (buffer.role == Role::kept) storages[i] = buffer.kept;
    if (buffer.role == Role::result) storages[i] = Storage::allocate(buffer.bytes);
    if (!buffer.written) continue;
    if (buffer.role == Role::kept) buffer.kept->count_change();
    if (buffer.role == Role::input)
      inputs[static_cast<std::size_t>(buffer.input)]->storage->count_change();
  }
  run(inputs, storages);
  for (const LeafGradient& noted : gradients_) {
    if (!noted.assigned) continue;
    const Tensor& leaf =
        noted.input < 0 ? noted.leaf : inputs[static_cast<std::size_t>(noted.input)];
    leaf.extras().grad =
        noted.left.at.buffer == kAbsent ? Tensor() : over(noted.left, inputs, storages);
  }
  std::vector<Tensor> outputs;
  for (const Layout& layout : outputs_) {
    outputs.push_back(over(layout, inputs, storages));
    if (layout.is_constant) outputs.back() = gradient_arithmetic().copy(outputs.back());
  }
  return outputs;
}

}  // namespace tw
