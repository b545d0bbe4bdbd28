// Recorded calls run again: one after another, or on a device that can, as one launch.
#include <algorithm>

#include "core/autograd/backward.h"
#include "core/autograd/capture.h"
#include "core/base/error.h"
#include "core/base/float_environment.h"
#include "core/memory/texts.h"
#include "core/runtime/device.h"
#include "core/runtime/launch.h"

namespace tw {

namespace {

// Of memory that kernels choose their loads by.
constexpr std::int64_t kAlignment = 256;

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

}  // namespace

bool Captured::is_current() const {
  return choice_ == modes.choice && autocast_ == modes.autocast &&
         choice_epoch_ == choice_epoch.load(std::memory_order_acquire);
}

void Captured::check(const std::vector<Tensor>& inputs) const {
  refuse_in_capture("it replays another capture");
  for (const Tensor& x : inputs)
    if (x.device() != device_)
      fail(ErrorKind::value, "replay: ", placed(x), "; the recording was on '",
           name_of_device(device_), "'");
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

// Where buffers are: inputs and results in fixed memory, where launches are replayed as one.
std::vector<char*> Captured::bases_of(Access& at, const std::vector<Tensor>& inputs,
                                      const std::vector<Ref<Storage>>& storages) const {
  std::vector<char*> bases(buffers_.size());
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const Buffer& buffer = buffers_[i];
    if (buffer.role == Role::temporary) {
      bases[i] = at.start_of(*arena_) + buffer.offset;
    } else if (buffer.role == Role::input) {
      const auto input = static_cast<std::size_t>(buffer.input);
      bases[i] = at(inputs[input]) - inputs_[input].at.offset;
    } else {
      bases[i] = at.start_of(*storages[i]);
    }
  }
  return bases;
}

void Captured::run_call(std::size_t i, const std::vector<char*>& bases) {
  const PreparedCall& call = calls_[i];
  const Unit& unit = units_[i];
  addresses_.assign(unit.count, nullptr);
  for (std::size_t k = 0; k < unit.count; ++k) {
    const BufferOffset& place = places_[unit.places + k];
    if (place.buffer == kNumber)
      addresses_[k] = numbers_[static_cast<std::size_t>(place.offset)].bytes;
    else if (place.buffer >= 0)
      addresses_[k] = bases[static_cast<std::size_t>(place.buffer)] + place.offset;
  }
  const OpScope scope(call.op->name);
  if (active_device().fails_late) scope.note_line();
  void* const problem = problems_[unit.problem].bytes;
  call.lowering->bind(problem, addresses_.data());
  run_prepared(
      call.estimate, [&] { run_kernel(*call.lowering, *call.kernel, problem); },
      [&](Event& seen) {
        seen.op = call.op->name;
        seen.kernel = call.kernel->name;
        if (!device_) seen.isa = name_of(active_isa());
        if (call.lowering->describe) seen.problem = lasting(call.lowering->describe(problem));
      },
      !changes_what_is_held_);
}

void Captured::run(const std::vector<Tensor>& inputs, const std::vector<Ref<Storage>>& storages) {
  Access at;
  const std::vector<char*> bases = bases_of(at, inputs, storages);
  for (std::size_t i = 0; i < calls_.size(); ++i) run_call(i, bases);
}

// ---- replaying as one launch ----

// Ops are observed one by one, so not where an observer listens.
bool Captured::runs_as_one() const {
  return device_ && device_->record && !modes.dry_run && !is_observed(kinds_of(EventKind::op));
}

bool Captured::is_in_graph(std::size_t call) const { return !calls_[call].lowering->reads_host; }

// The graph's own memory of inputs and results, which callers' memory is copied to and from. An
// input's bytes are aligned as they were in the recording.
void Captured::reserve_fixed_memory() {
  fixed_.resize(buffers_.size());
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const Buffer& buffer = buffers_[i];
    const std::int64_t start = buffer.range.low / kAlignment * kAlignment;
    if (buffer.role == Role::input)
      fixed_[i] = {Storage::allocate(static_cast<std::size_t>(buffer.range.high - start)), start};
    else if (buffer.role == Role::result)
      fixed_[i] = {Storage::allocate(buffer.bytes), 0};
  }
}

void Captured::run_as_one(const std::vector<Tensor>& inputs,
                          const std::vector<Ref<Storage>>& storages) {
  if (fixed_.empty()) reserve_fixed_memory();
  Access at;
  const std::vector<char*> callers = bases_of(at, inputs, storages);
  std::vector<char*> bases = callers;
  for (std::size_t i = 0; i < bases.size(); ++i)
    if (fixed_[i].memory) bases[i] = at.start_of(*fixed_[i].memory) - fixed_[i].start;
  if (!graph_ || bases != graph_bases_) {
    graph_.reset();
    graph_ = device_->record(*device_, [&] {
      for (std::size_t i = 0; i < calls_.size(); ++i)
        if (is_in_graph(i)) run_call(i, bases);
    });
    graph_bases_ = bases;
    figures_.graph_launches = graph_->launches();
  }
  const auto copy_buffers = [&](Role role, bool written, const std::vector<char*>& to,
                                const std::vector<char*>& from) {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const Buffer& buffer = buffers_[i];
      if (buffer.role != role || (written && !buffer.written)) continue;
      const ByteRange range = role == Role::input
                                  ? buffer.range
                                  : ByteRange{0, static_cast<std::int64_t>(buffer.bytes)};
      device_->copy_within(*device_, to[i] + range.low, from[i] + range.low,
                           static_cast<std::size_t>(range.high - range.low));
    }
  };
  copy_buffers(Role::input, false, bases, callers);
  for (std::size_t i = 0; i < calls_.size(); ++i)
    if (!is_in_graph(i)) run_call(i, bases);
  graph_->launch();
  copy_buffers(Role::input, true, callers, bases);
  copy_buffers(Role::result, false, callers, bases);
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
  const FloatEnvironment environment;
  const DeviceGuard there(device_);
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
  runs_as_one() ? run_as_one(inputs, storages) : run(inputs, storages);
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
