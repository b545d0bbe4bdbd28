// Recording finds out whose memory each operand is: made inside (its block comes from the
// recording's own source, which also sees when it is given back), or there before. What is neither
// was made by others meanwhile.
#include "core/autograd/capture.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <sstream>

#include "core/autograd/backward.h"
#include "core/base/error.h"
#include "core/memory/pool.h"
#include "core/runtime/device.h"
#include "core/runtime/registry.h"
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

// Whether an op writes to one of its inputs: rows of the sequences' tensors, then the other
// operands.
bool writes_to(const OpRecord& op, int input, int inputs) {
  const Signature& signature = signature_of(op);
  const int others = inputs - (signature.operands - signature.sequences);
  const int slot =
      input < others ? input % signature.sequences : input - others + signature.sequences;
  for (const Parameter& p : signature.parameters)
    if (p.written && p.is_operand() && p.slot == slot) return true;
  return false;
}

// As the program gave them: what they are rounded to may hide that they differ.
bool same_number(const Scalar& a, const Scalar& b) {
  const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
  return a.kind == b.kind && a.reach == b.reach && a.i == b.i && bits(a.re) == bits(b.re) &&
         bits(a.im) == bits(b.im);
}
std::string text_of(const Scalar& number) {
  std::ostringstream text;
  text.precision(17);
  text << number.re;
  if (number.kind == Scalar::Kind::complex) text << " + " << number.im << "j";
  return text.str();
}

// A second call of the function is not what was recorded of the first.
template <class... Fact> [[noreturn]] void fail_varies(const Fact&... fact) {
  fail(ErrorKind::runtime, "capture: called again, the function ", fact...,
       "; a replay repeats the first call: what varies must be a tensor among the inputs");
}

}  // namespace

// Memory of the device's default pool, with the times at which it was asked for and given back.
class Capture::Source final : public BlockSource {
 public:
  explicit Source(const Device* device) : device_(device) {}
  struct Recorded : Block {
    Block* inner;  // where the device's memory has a source
    std::size_t index;
    int buffer = Captured::kAbsent;  // once an op has used it
  };
  Block* allocate(std::size_t bytes) override {
    auto block = std::make_unique<Recorded>();
    block->source = this;
    block->bytes = bytes;
    block->index = plan.blocks.size();
    plan.blocks.push_back({.bytes = bytes, .begin = tick_, .end = 0, .own = true});
    block->inner = device_ && device_->source ? device_->source->allocate(bytes) : nullptr;
    if (block->inner)
      block->data = block->inner->data;
    else
      block->data = device_ ? device_->allocate(*device_, bytes) : pool_allocate(bytes);
    ++tick_;
    ++live_;
    return block.release();
  }
  void release(Block* block) noexcept override {
    const std::unique_ptr<Recorded> recorded(static_cast<Recorded*>(block));
    if (recorded->inner)
      recorded->inner->source->release(recorded->inner);
    else if (device_)
      device_->release(*device_, recorded->data, recorded->bytes);
    else
      pool_release(recorded->data, recorded->bytes);
    if (!closed_) plan.blocks[recorded->index].end = tick_++;
    if (--live_ == 0 && closed_) delete this;
  }
  bool use(Block& block) override {
    Block* const inner = static_cast<Recorded&>(block).inner;
    return inner && inner->source->use(*inner);
  }
  void pin(Block& block) override {
    if (Block* const inner = static_cast<Recorded&>(block).inner) inner->source->pin(*inner);
  }
  void unpin(Block& block) noexcept override {
    if (Block* const inner = static_cast<Recorded&>(block).inner) inner->source->unpin(*inner);
  }
  BlockSource* serving(const Device* device) override { return device == device_ ? this : nullptr; }
  Block& holder(Block& block) override {
    Block* const inner = static_cast<Recorded&>(block).inner;
    return inner ? inner->source->holder(*inner) : block;
  }

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
  const Device* const device_;
  std::uint32_t tick_ = 0;
  std::size_t live_ = 0;
  bool closed_ = false;
};

void refuse_in_capture(const char* what) {
  if (modes.capture) [[unlikely]]
    fail(ErrorKind::runtime, "capture: ", what, ", which a replay could not repeat");
}

// ---- recording ----

Capture::Capture(std::vector<Tensor> inputs, Captured* recorded)
    : out_(std::make_unique<Captured>()),
      inputs_(std::move(inputs)),
      source_before_(modes.source),
      recorded_(recorded) {
  if (modes.capture) fail(ErrorKind::runtime, "capture: one is running on this thread");
  out_->choice_ = modes.choice;
  out_->autocast_ = modes.autocast;
  out_->choice_epoch_ = choice_epoch.load(std::memory_order_acquire);
  out_->device_ = inputs_.empty() ? modes.device : inputs_[0].device();
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Tensor& x = inputs_[i];
    if (x.device() != out_->device_)
      fail(ErrorKind::value, "capture: inputs are on different devices: ", placed(inputs_[0]),
           " and ", placed(x), "; move one of them with to(device)");
    const auto [found, is_new] =
        kept_.try_emplace(x->storage.operator->(), static_cast<int>(out_->buffers_.size()));
    const ByteRange range = byte_range(x);
    if (is_new)
      out_->buffers_.push_back({.role = Captured::Role::input,
                                .bytes = x->storage->bytes,
                                .input = static_cast<int>(i),
                                .range = range});
    ByteRange& all = out_->buffers_[static_cast<std::size_t>(found->second)].range;
    all = {std::min(all.low, range.low), std::max(all.high, range.high)};
    out_->inputs_.push_back({{found->second, x->offset_bytes}, x.shape(), x.strides(), x.dtype()});
  }
  source_ = new Source(out_->device_);
  modes.source = source_;
  modes.capture = this;
  modes.update_plain();
  if (recorded_) take_back_gradients();
}

Capture::~Capture() { leave(); }

// A rehearsal begins with the gradients that the first call began with. Those that it added to in
// place are where they were.
void Capture::take_back_gradients() {
  for (Captured::LeafGradient& noted : recorded_->gradients_) {
    Tensor before = std::exchange(noted.before, Tensor());
    if (!noted.assigned) continue;
    gradients_after_.push_back({noted.leaf, noted.leaf.grad()});
    noted.leaf.extras().grad = std::move(before);
  }
}

void Capture::leave() {
  if (!source_) return;
  modes.capture = nullptr;
  modes.source = source_before_;
  modes.update_plain();
  for (Put& after : gradients_after_) after.leaf.extras().grad = std::move(after.grad);
  std::exchange(source_, nullptr)->close();
}

int Capture::known_buffer_of(const Tensor& x, bool written, const char* op) {
  const auto [found, is_new] =
      kept_.try_emplace(x->storage.operator->(), static_cast<int>(out_->buffers_.size()));
  if (is_new) {
    if (births_.has(*x->storage))
      fail(ErrorKind::runtime, "capture: ", op, " uses ", describe(x),
           ", which another thread or library made meanwhile, so that a replay would not make it "
           "again; make it before, or by ops of this thread");
    out_->buffers_.push_back(
        {.role = Captured::Role::kept, .bytes = x->storage->bytes, .kept = x->storage});
  }
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

bool Capture::note(const PreparedCall& call, const void* problem, std::size_t problem_bytes,
                   const Call& described, const Operand* in, const Tensor* out,
                   void* const* addresses) {
  const OpRecord& op = *call.op;
  if (modes.dry_run) return true;
  if (modes.device != out_->device_)
    fail(ErrorKind::runtime, "capture: ", op.name, " runs on '", active_device().name,
         "', the inputs are on '", name_of_device(out_->device_), "'; one capture has one device");
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
      c.given_.push_back(in[i].scalar);
    } else {
      const Tensor& x = in[i].tensor;
      // A target is no value that is read.
      bool is_target = writes_to(op, i, described.inputs);
      for (int k = 0; k < op.results; ++k) is_target |= out[k]->storage == x->storage;
      c.places_.push_back({buffer_of(x, is_target, op.name), x->offset_bytes});
    }
  }
  for (int k = 0; k < op.results; ++k)
    c.places_.push_back({buffer_of(out[k], true, op.name), out[k]->offset_bytes});
  const Attributes attributes = described.attributes;
  c.units_.push_back({c.problems_.size(), first_place, c.places_.size() - first_place,
                      c.attributes_.size(), static_cast<std::size_t>(attributes.count)});
  c.attributes_.insert(c.attributes_.end(), attributes.at, attributes.at + attributes.count);
  c.problems_.resize(c.problems_.size() + (problem_bytes + 15) / 16);
  std::memcpy(c.problems_[c.units_.back().problem].bytes, problem, problem_bytes);
  c.calls_.push_back(call);
  if (recorded_) compare_call(described);
  return !recorded_;
}

void Capture::compare_call(const Call& described) const {
  const Captured &now = *out_, &first = *recorded_;
  const std::size_t i = now.calls_.size() - 1;
  const char* op = now.calls_[i].op->name;
  if (i >= first.calls_.size()) fail_varies("ran ", op, " where it had ended before");
  if (first.calls_[i].op != now.calls_[i].op)
    fail_varies("ran ", op, " where it ran ", first.calls_[i].op->name, " before");
  const Captured::Unit &a = now.units_[i], &b = first.units_[i];
  const auto attributes = now.attributes_.begin() + static_cast<std::ptrdiff_t>(a.attributes);
  if (a.count != b.count || a.attribute_count != b.attribute_count ||
      !std::equal(attributes, attributes + static_cast<std::ptrdiff_t>(a.attribute_count),
                  first.attributes_.begin() + static_cast<std::ptrdiff_t>(b.attributes)))
    fail_varies("ran ", op, " with other sizes, indices or settings than before");
  for (std::size_t k = 0; k < a.count; ++k)
    compare_operand(now.places_[a.places + k], first.places_[b.places + k], op);
}

void Capture::compare_operand(const Captured::BufferOffset& place,
                              const Captured::BufferOffset& first, const char* op) const {
  if (place.buffer == Captured::kNumber && first.buffer == Captured::kNumber) {
    const Scalar& x = out_->given_[static_cast<std::size_t>(place.offset)];
    const Scalar& y = recorded_->given_[static_cast<std::size_t>(first.offset)];
    if (same_number(x, y)) return;
    fail_varies("gave ", op, " the number ", text_of(x), ", and ", text_of(y), " before");
  }
  bool same = place.buffer == first.buffer && place.offset == first.offset;
  if (same && place.buffer >= 0) {
    const auto index = static_cast<std::size_t>(place.buffer);
    const Ref<Storage>& kept = out_->buffers_[index].kept;
    const bool is_constant = kept && kept->block && kept->block->source == source_;
    same = !kept || is_constant || kept == recorded_->buffers_[index].kept;
  }
  if (!same) fail_varies("gave ", op, " another tensor, or another part of it, than before");
}

void Capture::note_values(const Tensor& x) {
  const auto index = static_cast<std::size_t>(buffer_of(x, false, "a constant"));
  if (!recorded_ || x.device() || x.count() == 0) return;
  const auto bytes = static_cast<std::size_t>(x.count()) * x.item_bytes();
  const Captured::Buffer* const first =
      index < recorded_->buffers_.size() ? &recorded_->buffers_[index] : nullptr;
  if (!first || !first->kept || first->bytes != out_->buffers_[index].bytes ||
      std::memcmp(first->kept->place(), x.pinned_bytes(), bytes) != 0)
    fail_varies("made ", describe(x), " of other values than before");
}

std::uint32_t Capture::references_to(const Storage& storage) const {
  std::uint32_t count = kept_.contains(&storage);
  for (const Captured::LeafGradient& noted : out_->gradients_)
    count += noted.before && noted.before->storage.operator->() == &storage;
  if (recorded_)
    for (const Captured::Buffer& buffer : recorded_->buffers_)
      count += buffer.kept && buffer.kept.operator->() == &storage;
  return count;
}

void Capture::note_gradient(TensorHeader& leaf) {
  for (const Captured::LeafGradient& known : out_->gradients_)
    if (known.leaf.get() == &leaf) return;
  const Tensor x{Ref<TensorHeader>(&leaf)};
  const Tensor grad = x.grad();
  gradients_before_.push_back(grad ? grad->storage.operator->() : nullptr);
  Captured::LeafGradient& noted = out_->gradients_.emplace_back();
  noted.leaf = x;
  // A header of its own: what the leaf holds stays that header's only holder.
  if (grad)
    noted.before =
        Tensor::over(grad->storage, grad->offset_bytes, grad.shape(), grad.strides(), grad.dtype());
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

// Where launches are replayed as one, what reads the program's state comes before them: it writes
// to memory that nothing else uses meanwhile.
void Capture::set_apart_host_work() {
  Captured& c = *out_;
  if (!c.device_ || !c.device_->record) return;
  for (std::size_t i = 0; i < c.calls_.size(); ++i) {
    if (!c.calls_[i].lowering->reads_host) continue;
    const Captured::Unit& unit = c.units_[i];
    for (std::size_t k = 0; k < unit.count; ++k) {
      const int index = c.places_[unit.places + k].buffer;
      if (index < 0) continue;
      Captured::Buffer& buffer = c.buffers_[static_cast<std::size_t>(index)];
      if (buffer.role != Captured::Role::temporary) continue;
      source_->plan.blocks[buffer.offset].own = true;
      buffer.role = Captured::Role::kept;
    }
  }
}

// What the function returned, and what became of gradients.
void Capture::note_results(const std::vector<Tensor>& outputs) {
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
}

std::unique_ptr<Captured> Capture::finish(const std::vector<Tensor>& outputs) {
  Captured& c = *out_;
  note_results(outputs);
  for (const Captured::Buffer& buffer : c.buffers_)
    c.changes_what_is_held_ |= buffer.written && (buffer.role == Captured::Role::input ||
                                                  buffer.role == Captured::Role::kept);
  set_apart_host_work();
  const ArenaPlan plan = source_->laid_out();
  for (Captured::Buffer& buffer : c.buffers_)
    if (buffer.role == Captured::Role::temporary) buffer.offset = plan.blocks[buffer.offset].offset;
  c.figures_ = {c.calls_.size(), c.buffers_.size(), plan.arena_bytes, plan.sum_bytes,
                plan.lower_bound_bytes};
  leave();
  const BlockSourceGuard default_pool(nullptr);
  const DeviceGuard there(c.device_);
  c.arena_ = Storage::allocate(plan.arena_bytes);
  for (Captured::Buffer& buffer : c.buffers_)
    if (buffer.role == Captured::Role::kept && !buffer.kept)
      buffer.kept = Storage::allocate(buffer.bytes);
  return std::move(out_);
}

void Capture::compare_layout(const Captured::Layout& layout, const Captured::Layout& first,
                             const char* what) const {
  if (layout.at.buffer < 0 && first.at.buffer < 0) return;  // no gradient
  compare_operand(layout.at, first.at, what);
  if (layout.shape != first.shape || layout.strides != first.strides || layout.dtype != first.dtype)
    fail_varies("gave ", what, " another shape, layout or type than before");
}

void Capture::finish_rehearsal(const std::vector<Tensor>& outputs) {
  const Captured& first = *recorded_;
  const std::size_t calls = out_->calls_.size();
  if (calls < first.calls_.size())
    fail_varies("ended where it ran ", first.calls_[calls].op->name, " before");
  note_results(outputs);
  const auto &results = out_->outputs_, &before = first.outputs_;
  if (results.size() != before.size())
    fail_varies("returned ", results.size(), " tensors, and ", before.size(), " before");
  for (std::size_t i = 0; i < results.size(); ++i)
    compare_layout(results[i], before[i], "the result");
  if (out_->gradients_.size() != first.gradients_.size())
    fail_varies("set gradients of other leaves than before");
  for (std::size_t i = 0; i < first.gradients_.size(); ++i) {
    const Captured::LeafGradient &a = out_->gradients_[i], &b = first.gradients_[i];
    // Leaves that the function makes are others each time.
    const bool same_leaf =
        a.leaf->storage == b.leaf->storage || Source::block_of(a.leaf, source_) != nullptr;
    if (!same_leaf || a.assigned != b.assigned || a.added_to != b.added_to)
      fail_varies("set gradients of other leaves than before");
    compare_layout(a.left, b.left, "a gradient");
  }
}

}  // namespace tw
