// How a call runs, step by step.
#include "core/ops/engine/apply.h"

#include <algorithm>
#include <memory>
#include <new>

#include "core/autograd/capture.h"
#include "core/autograd/op_node.h"
#include "core/base/axis_order.h"
#include "core/base/error.h"
#include "core/base/float_environment.h"
#include "core/base/thresholds.h"
#include "core/memory/texts.h"
#include "core/ops/engine/call_cache.h"
#include "core/ops/copy/copy.h"
#include "core/ops/shape/view.h"
#include "core/runtime/choice.h"
#include "core/runtime/device.h"
#include "core/runtime/launch.h"
#include "core/runtime/signature.h"
#include "core/tensor/access.h"

namespace tw {

namespace {

constexpr int kFew = 6;

// Room for a few, on the heap beyond.
template <class T> class Few {
 public:
  explicit Few(int count) : many_(count > kFew ? new T[count] : nullptr) {}
  ~Few() { delete[] many_; }
  Few(const Few&) = delete;
  Few& operator=(const Few&) = delete;
  T* data() { return many_ ? many_ : few_; }

 private:
  T few_[kFew];
  T* const many_;
};

const Shape kScalarShape{};

// A number has the type that a tensor of it alone would have.
DType weak_dtype(const Scalar& number) {
  const DType types[] = {DType::bool_, DType::int64, default_dtype(),
                         complex_dtype(default_dtype())};
  return number.reach == Scalar::Reach::int64 ? types[static_cast<int>(number.kind)]
                                              : DType::uint64;
}

}  // namespace

void describe_operand(const Operand& x, Meta& meta) {
  if (!x.is_tensor()) {
    meta = {&kScalarShape, &kScalarShape, 1, weak_dtype(x.scalar), true, true, x.scalar.absent()};
    return;
  }
  const TensorHeader& header = *x.tensor.get();
  meta = {&header.shape,     &header.strides, header.count, header.dtype,
          header.contiguous, false,           false};
}

namespace {

// Whether no mode and no listener is in force that only the slow path knows.
bool is_plain() { return modes.plain && !observed_everywhere.load(std::memory_order_relaxed); }

// Whether nothing keeps calls from their shortcuts but that some of these are off. Cold: while all
// are on, nobody asks.
[[gnu::cold, gnu::noinline]] bool is_plain_but_in_full() {
  Modes like = modes;
  like.in_full = false;
  like.update_plain();
  return like.plain && !observed();
}
// Whether calls that are not plain may be kept: while all threads are observed, but not for an
// observer of this one, who wants all details.
[[gnu::cold, gnu::noinline]] bool may_keep_unusual_calls() {
  const bool in_full = observed_everywhere.load(std::memory_order_relaxed) & kCallsInFull;
  return (modes.plain && !in_full) || (is_plain_but_in_full() && uses(Optimization::call_cache));
}

// What dispatch asks of operands: the marks of all of them in one number.
class DispatchFlags {
 public:
  DispatchFlags(const Operand* in, int inputs) {
    for (int i = 0; i < inputs; ++i)
      if (const TensorHeader* x = in[i].tensor.get()) marks_ |= x->word();
  }
  // Whether a mode, a listener or a device scope is in force that only the slow path knows, or the
  // operands are not where this thread makes new tensors.
  bool needs_slow_path() const { return !is_plain() || (marks_ & kElsewhere); }
  bool is_elsewhere() const { return marks_ & kElsewhere; }
  // Some may take part in the graph: of views more must be asked.
  bool in_graph() const { return marks_ & (kRequiresGrad | kViews); }
  bool has_views() const { return marks_ & kViews; }

 private:
  static constexpr std::uint32_t kElsewhere = Marks{.elsewhere = true}.word();
  static constexpr std::uint32_t kRequiresGrad = Marks{.requires_grad = true}.word();
  static constexpr std::uint32_t kViews = Marks{.is_view = true}.word();
  std::uint32_t marks_ = 0;
};

bool wants_recording(const OpRecord& op, const Operand* in, int inputs, DispatchFlags flags) {
  if (!modes.grad || (op.flags & kConstant)) return false;
  if (!flags.has_views()) return flags.in_graph();
  bool any = false;  // all are asked: each may be stale
  for (int i = 0; i < inputs; ++i) any |= records(in[i].tensor);
  return any;
}

bool is_wide(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float64 || is_complex(dtype);
}

// An operand of a type that the kernels refused, converted to one that they take.
Tensor converted(const OpRecord& op, const Tensor& x, const char* why, DType result) {
  if (why == kOtherType) return astype_operand(x, result);
  const bool widens = !is_wide(x.dtype()) && (is_floating(x.dtype()) || (op.flags & kWidensAll));
  return widens ? astype_operand(x, is_floating(x.dtype()) ? DType::float32 : default_dtype()) : x;
}

// The call on converted operands, with results in their own types.
void apply_converted(const OpRecord& op, const char* why, const Operand* in, int inputs,
                     Attributes attributes, const Result* results, Tensor* out) {
  Few<Operand> operands(inputs);
  for (int i = 0; i < inputs; ++i) {
    operands.data()[i] = in[i];
    if (const Tensor& x = in[i].tensor)
      operands.data()[i].tensor = converted(op, x, why, results[0].dtype);
  }
  apply(op, operands.data(), inputs, attributes, out);
  for (int i = 0; i < op.results; ++i)
    if (is_floating(results[i].dtype)) out[i] = astype(out[i], results[i].dtype);
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_refused(const OpRecord& op, const char* why) {
  fail(ErrorKind::type, op.name, ": ", why);
}

std::string problem_text(const Meta& x, const Meta& y) {
  std::string text = std::string(name_of(x.dtype)) + " " + to_string(*x.shape);
  if (x.dtype != y.dtype) text += std::string(" to ") + name_of(y.dtype);
  if (!(*x.shape == *y.shape)) text += " to " + to_string(*y.shape);
  return text;
}

// For observers: made anew for problems that this thread has not seen of late. `problem` has no
// addresses yet.
[[gnu::cold, gnu::noinline]] const char* problem_text(const Lowering& lowering, const Call& call,
                                                      const char* problem, std::uint32_t bytes) {
  const Meta& y = call.out[0];
  const Meta& x = call.inputs ? call.in[0] : y;
  TextKey key;
  if (lowering.describe) {
    key.add(&lowering);
    key.add_bytes(problem, bytes);
    return text_of(key, [&] { return lowering.describe(problem); });
  }
  key.add(static_cast<std::uint64_t>(x.dtype) << 8 | static_cast<std::uint64_t>(y.dtype));
  key.add_extents(*x.shape);
  key.add_extents(*y.shape);
  return text_of(key, [&] { return problem_text(x, y); });
}

Estimate estimate_of(const OpRecord& op, const Call& call) {
  if (op.estimate) return op.estimate(call);
  Estimate estimate;
  for (int i = 0; i < call.inputs; ++i)
    estimate.bytes +=
        static_cast<double>(call.in[i].count) * static_cast<double>(size_of(call.in[i].dtype));
  for (int i = 0; i < op.results; ++i) {
    estimate.flops += static_cast<double>(call.out[i].count);
    estimate.bytes +=
        static_cast<double>(call.out[i].count) * static_cast<double>(size_of(call.out[i].dtype));
  }
  return estimate;
}

// Numbers as kernels read them.
struct NumberSlot {
  alignas(8) char bytes[16];
};

bool is_small(const Call& call) {
  std::int64_t elements = call.op->results ? call.out[0].count : 0;
  for (int i = 0; i < call.inputs; ++i) elements += call.in[i].count;
  return elements <= thresholds::kSmallCall;
}

std::uint32_t problem_bytes(const Lowering& lowering, const Call& call) {
  return lowering.bytes ? lowering.bytes(call) : lowering.problem_bytes;
}

bool writes_to_operands(const OpRecord& op) {
  for (const Parameter& p : signature_of(op).parameters)
    if (p.written) return true;
  return false;
}

// Runs the kernel that is chosen for a call whose operands are as its lowering wants them.
// `key` of a call that makes its results and may be kept; null: none.
void launch_call(const OpRecord& op, const OpKernels& kernels, const Call& call, const Operand* in,
                 bool makes_results, const CallKey* key, Tensor* out) {
  const Lowering& lowering = *kernels.lowering;
  alignas(16) char few_bytes[kMaxProblemBytes];
  std::unique_ptr<char[]> more_bytes;
  char* problem = few_bytes;
  if (lowering.bytes && lowering.bytes(call) > kMaxProblemBytes) [[unlikely]] {
    more_bytes.reset(new char[lowering.bytes(call)]);
    problem = more_bytes.get();
  }
  Few<NumberSlot> slots(call.inputs);
  Few<void*> addresses(call.inputs + op.results);
  for (int i = 0; i < call.inputs; ++i) {
    if (!call.in[i].number || call.in[i].absent) continue;
    in[i].scalar.store(call.type, slots.data()[i].bytes, op.name);
    addresses.data()[i] = slots.data()[i].bytes;
  }
  lowering.set_up(call, problem);
  const Kernel& kernel =
      lowering.choose ? lowering.choose(problem) : choose_kernel(kernels.solver, problem);
  KnownCall* known = nullptr;
  if (key && (is_small(call) || !is_long(estimate_of(op, call))))
    known = keep_known(*key, lowering, kernel, problem, problem_bytes(lowering, call), call);
  const char* text = "";
  if (is_observed(kinds_of(EventKind::op))) [[unlikely]] {
    text = problem_text(lowering, call, problem, problem_bytes(lowering, call));
    if (known) known->text = text, known->estimate = estimate_of(op, call);
  }
  Access at;
  for (int i = 0; i < call.inputs; ++i) {
    if (!call.in[i].number) addresses.data()[i] = at(in[i].tensor);
    if (call.in[i].absent) addresses.data()[i] = nullptr;
  }
  for (int i = 0; i < op.results; ++i) {
    if (makes_results) {
      const Meta& y = call.out[i];
      out[i] = Tensor::fresh(*y.shape, *y.strides, y.count, y.dtype);
      out[i]->contiguous = y.contiguous;
    }
    addresses.data()[call.inputs + i] = at(out[i]);
  }
  lowering.bind(problem, addresses.data());
  if (is_plain() && is_small(call)) [[likely]]
    return run_kernel(lowering, kernel, problem);
  const PreparedCall prepared = {&op, &lowering, &kernel, estimate_of(op, call)};
  if (modes.capture && !modes.capture->note(prepared, problem, problem_bytes(lowering, call), call,
                                            in, out, addresses.data())) [[unlikely]]
    return;
  run_prepared(
      prepared.estimate, [&] { run_kernel(lowering, kernel, problem); },
      [&](Event& seen) {
        seen.op = op.name;
        seen.kernel = kernel.name;
        if (kernels.set == KernelSet::cpu) seen.isa = name_of(active_isa());
        seen.problem = text;
        if (modes.observers && has_choice(kernels.solver))  // explain's, not profiles'
          seen.details = std::make_shared<EventDetails>(
              EventDetails{.candidates = candidates(kernels.solver, problem)});
      },
      makes_results && is_long(prepared.estimate) && !writes_to_operands(op));
}

// Operands without gaps where kernels need them so.
struct Packed {
  Few<Operand> operands;
  Few<Meta> metas;
  Packed(std::uint32_t copied, const Operand* in, Call& call)
      : operands(call.inputs), metas(call.inputs) {
    const GradModeGuard off(false);
    for (int i = 0; i < call.inputs; ++i) {
      operands.data()[i] = in[i];
      metas.data()[i] = call.in[i];
      if (i >= 32 || !(copied >> i & 1)) continue;
      operands.data()[i].tensor = copy(in[i].tensor);
      describe_operand(operands.data()[i], metas.data()[i]);
    }
    call.in = metas.data();
  }
};

// Bits of inputs.
std::uint32_t copied_inputs(const Lowering& lowering, const Call& call) {
  std::uint32_t copied = lowering.copies ? lowering.copies(call) : 0;
  for (int i = 0; i < call.inputs && i < 32; ++i)
    if (!call.in[i].contiguous) copied |= lowering.contiguous & 1u << i;
  return copied;
}

void describe_result(Result& result, const Meta* in, Meta& meta) {
  const Meta* const x = result.like >= 0 ? &in[result.like] : nullptr;
  const Shape* const shape = x ? x->shape : &result.shape;
  const Strides* strides = &result.strides;
  const bool row_major = !x || x->contiguous || result.strides.rank() == 0;
  if (x && x->contiguous)
    strides = x->strides;
  else if (result.alias < 0 && row_major)
    result.strides = contiguous_strides(*shape);
  meta = {shape, strides, x ? x->count : element_count(*shape), result.dtype, row_major,
          false, false};
}

// Room for all results that an op may have, of which only its own are constructed.
struct Results {
  const int count;
  union {
    Result all[kMaxResults];
  };
  explicit Results(int count) : count(count) {
    for (int i = 0; i < count; ++i) new (&all[i]) Result;
  }
  ~Results() {
    for (int i = 0; i < count; ++i) all[i].~Result();
  }
};

struct Inferred {
  Few<Meta> in;
  Results room;
  Result* const results = room.all;
  Meta out[kMaxResults];
  Call call;

  Inferred(const OpRecord& op, const Operand* operands, int inputs, Attributes attributes)
      : in(inputs), room(op.results), call{&op, in.data(), inputs, out, attributes} {
    for (int i = 0; i < inputs; ++i) describe_operand(operands[i], in.data()[i]);
    op.infer(call, results);
    for (int i = 0; i < inputs; ++i)
      if (in.data()[i].number) in.data()[i].dtype = call.type;
    for (int i = 0; i < op.results; ++i) describe_result(results[i], in.data(), out[i]);
  }
};

void launch_packed(const OpRecord& op, const OpKernels& kernels, Call& call, const Operand* in,
                   bool makes_results, const CallKey* key, Tensor* out) {
  const std::uint32_t copied = copied_inputs(*kernels.lowering, call);
  if (!copied) [[likely]]
    return launch_call(op, kernels, call, in, makes_results, key, out);
  Packed packed(copied, in, call);
  launch_call(op, kernels, call, packed.operands.data(), makes_results, nullptr, out);
}

[[gnu::cold, gnu::noinline]] void run_observed(KnownCall& known, const OpRecord& op) {
  run_prepared(
      known.estimate, [&] { run_kernel(*known.lowering, *known.kernel, known.problem); },
      [&](Event& seen) {
        seen.op = op.name;
        seen.kernel = known.kernel->name;
        seen.isa = name_of(active_isa());
        seen.problem = known.text ? known.text : "";
      });
}

// Runs a call whose kernel, problem and results are in the call cache: only addresses are bound.
template <bool plain> void launch_known(KnownCall& known, const OpRecord& op, const Operand* in,
                                        int inputs, Tensor* out) {
  Few<void*> addresses(inputs + op.results);
  Access at;
  for (int i = 0; i < inputs; ++i) addresses.data()[i] = in[i].tensor ? at(in[i].tensor) : nullptr;
  for (int i = 0; i < op.results; ++i) {
    const KnownCall::Made& y = known.results[i];
    out[i] = Tensor::fresh(y.shape, y.strides, y.count, y.dtype);
    out[i]->contiguous = y.contiguous;
    addresses.data()[inputs + i] = at(out[i]);
  }
  known.lowering->bind(known.problem, addresses.data());
  if constexpr (plain)
    run_kernel(*known.lowering, *known.kernel, known.problem);
  else
    run_observed(known, op);
}

// Where the op has a vjp, its node is the only one: the ops of its body are not recorded.
void run_body(const Use& use, Tensor* out) {
  const GradModeGuard mode(modes.grad && !use.op.vjp);
  use.op.body(use, out);
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_without_kernel(const OpRecord& op) {
  fail(ErrorKind::not_implemented, op.name, ": no kernel on device '", active_device().name,
       "' yet; x.to('cpu') moves operands where there is one");
}

// Where kernels refuse the call, runs its body, or the call in another type. Returns whether the
// caller still has to record the op: false where the ops that ran instead were recorded.
bool run_fallback(const OpRecord& op, const Inferred& inferred, const char* why, const Operand* in,
                  Tensor* out) {
  const Call& call = inferred.call;
  if (why == kTooNarrow || why == kOtherType) {
    const GradModeGuard mode(modes.grad && (op.flags & kWidensAll));
    apply_converted(op, why, in, call.inputs, call.attributes, inferred.results, out);
    return !(op.flags & kWidensAll);
  }
  if (!op.body) fail_refused(op, why);
  run_body({op, in, call.inputs, call.attributes}, out);
  return op.vjp;
}

bool run(const OpRecord& op, const Operand* in, int inputs, Attributes attributes, Tensor* out);

// Along axes of operands that have all their memory in another order of axes, as a transposed
// matrix has: in that order kernels read them as they lie. (With one element along an axis there is
// no such order, so a batch-invariant mode does without.)
bool is_permuted(const OpRecord& op, const Call& call) {
  if (is_batch_invariant()) return false;
  const Meta& x = call.in[0];
  const bool may = op.flags & (kAlongAxis | kAlongAxes | kAnyOrder);
  if (!may || x.contiguous || !is_dense(*x.shape, *x.strides)) return false;
  for (int i = 1; i < call.inputs; ++i)
    if (call.in[i].number || call.in[i].rank() != x.rank()) return false;
  return uses(Optimization::memory_order);
}

Dims in_order(const Dims& dims, const AxisOrder& order) {
  Dims moved;
  for (int i = 0; i < dims.rank(); ++i) moved.push_back(dims[order.at[i]]);
  return moved;
}

// The attributes with their axes as places in the order.
AttributeList in_order(const OpRecord& op, Attributes attributes, int rank,
                       const AxisOrder& order) {
  const auto place_of = [&](Attribute axis) {
    const int at = normalize_axis(axis, rank, op.name);
    return std::find(order.at, order.at + rank, at) - order.at;
  };
  AttributeList moved(attributes.at, attributes.count);
  if (op.flags & kAnyOrder) return moved;
  if (op.flags & kAlongAxis) return moved.set(0, place_of(attributes[0]));
  if (attributes.none(0)) return moved;
  const List axes = attributes.list(0);
  const int first = static_cast<int>(attributes[0]) + 1;
  for (int i = 0; i < axes.count; ++i) moved.set(first + i, place_of(axes[i]));
  return moved;
}

// The call with all axes in the order of the first operand's memory; the results lie as that does.
void run_permuted(const OpRecord& op, const Operand* in, int inputs, Attributes attributes,
                  Tensor* out) {
  const GradModeGuard off(false);
  const int rank = in[0].tensor.rank();
  const AxisOrder order(in[0].tensor.strides());
  Few<Operand> moved(inputs);
  for (int i = 0; i < inputs; ++i) {
    const Tensor& x = in[i].tensor;
    moved.data()[i] = view_of(x, in_order(x.shape(), order), in_order(x.strides(), order));
  }
  Tensor made[kMaxResults];
  run(op, moved.data(), inputs, in_order(op, attributes, rank, order), made);
  for (int i = 0; i < op.results; ++i) {
    Shape shape = Shape::of_rank(rank);
    Strides strides = Strides::of_rank(rank);
    for (int axis = 0; axis < rank; ++axis) {
      shape[order.at[axis]] = made[i].size(axis);
      strides[order.at[axis]] = made[i].strides()[axis];
    }
    out[i] = Tensor::over(made[i]->storage, made[i]->offset_bytes, shape, strides, made[i].dtype());
  }
}

bool widens_recorded(const OpKernels& kernels, const OpRecord& op, const Operand* in, int inputs) {
  return kernels.lowering && kernels.lowering->widens_recorded && !is_wide(in[0].tensor.dtype()) &&
         wants_recording(op, in, inputs, {in, inputs});
}

// Runs a kernel, or what takes its place. Returns what run_fallback does.
[[gnu::noinline]] bool run(const OpRecord& op, const Operand* in, int inputs, Attributes attributes,
                           Tensor* out) {
  const OpKernels& kernels = kernels_of(op);
  if ((op.flags & kWidensAll) && widens_recorded(kernels, op, in, inputs)) [[unlikely]]
    return run_fallback(op, Inferred(op, in, inputs, attributes), kTooNarrow, in, out);
  const bool plain = is_plain();
  const bool may_keep = kernels.lowering && (plain || may_keep_unusual_calls());
  const CallKey key(may_keep, op, in, inputs, attributes);
  if (KnownCall* const known = find_known(key)) {
    if (plain) [[likely]] {
      launch_known<true>(*known, op, in, inputs, out);
      return true;
    }
    if (known->text || !is_observed(kinds_of(EventKind::op))) {
      launch_known<false>(*known, op, in, inputs, out);
      return true;
    }
  }
  Inferred inferred(op, in, inputs, attributes);
  if (const Result& view = inferred.results[0]; view.alias >= 0) {
    const Tensor& x = in[view.alias].tensor;
    out[0] = view.dtype == x.dtype() ? view_of(x, view.shape, view.strides, view.offset)
                                     : view_as(x, view.dtype, view.shape, view.strides);
    return true;
  }
  if (!kernels.lowering) {
    if (!op.body) fail_without_kernel(op);
    run_body({op, in, inputs, attributes}, out);
    return op.vjp;
  }
  const Lowering& lowering = *kernels.lowering;
  if (const char* why = lowering.refuses ? lowering.refuses(inferred.call) : nullptr) [[unlikely]]
    return run_fallback(op, inferred, why, in, out);
  if (is_body_forced(&kernels)) [[unlikely]] {
    run_body({op, in, inputs, attributes}, out);
    return op.vjp;
  }
  if (is_permuted(op, inferred.call)) [[unlikely]]
    run_permuted(op, in, inputs, attributes, out);
  else
    launch_packed(op, kernels, inferred.call, in, true, key ? &key : nullptr, out);
  return true;
}

}  // namespace

const Device* device_of(const OpRecord& op, const Operand* in, int inputs) {
  const Tensor* first = nullptr;
  for (int i = 0; i < inputs; ++i) {
    const Tensor& x = in[i].tensor;
    if (!x) continue;
    if (!first) first = &x;
    if (x.device() != first->device())
      fail(ErrorKind::value, op.name, ": operands are on different devices: ", placed(*first),
           " and ", placed(x), "; move one of them with to(device)");
  }
  return first ? first->device() : modes.device;
}

bool run_in_full(const OpRecord& op, const Operand* in, int inputs, Attributes attributes,
                 Tensor* out) {
  if (op.rewrite && op.rewrite({op, in, inputs, attributes}, out)) return false;
  if (op.infer && (op.vjp || !wants_recording(op, in, inputs, {in, inputs})))
    return run(op, in, inputs, attributes, out);
  if (op.vjp)
    run_body({op, in, inputs, attributes}, out);
  else
    op.body({op, in, inputs, attributes}, out);
  return op.vjp;
}

namespace {

bool run_quickly(const OpRecord& op, const Operand* in, int inputs, Attributes attributes,
                 Tensor* out) {
  return op.quick ? op.quick(op, in, inputs, attributes, out)
                  : run_in_full(op, in, inputs, attributes, out);
}

// The same, and what is done about results that take part in the graph, or may be saved.
template <decltype(OpRecord::quick) run>
[[gnu::noinline]] void apply_here(const OpRecord& op, const Operand* in, int inputs,
                                  Attributes attributes, Tensor* out, DispatchFlags flags) {
  const bool recorded = wants_recording(op, in, inputs, flags);
  if (!run(op, in, inputs, attributes, out)) return;
  if (recorded && is_differentiable(out[0].dtype()))
    OpNode::record_call(op, in, inputs, attributes, out);
  else if (modes.checkpoint) [[unlikely]]
    tell_frame(in, inputs, out, op.results);
}

// The call on operands in the type that the op's kind has under autocast, which is off for what the
// op is made of. The casts are ops: they are recorded, and gradients come back in the operands' own
// types.
void apply_autocast(const OpRecord& op, const Operand* in, int inputs, Attributes attributes,
                    Tensor* out) {
  const DType type =
      op.autocast == Autocast::narrow ? static_cast<DType>(modes.autocast - 1) : DType::float32;
  Few<Operand> operands(inputs);
  for (int i = 0; i < inputs; ++i) {
    operands.data()[i] = in[i];
    const Tensor& x = in[i].tensor;
    if (x && is_floating(x.dtype()) && x.dtype() != DType::float64)
      operands.data()[i].tensor = astype(x, type);
  }
  const AutocastGuard off(0);
  apply_here<run_in_full>(op, operands.data(), inputs, attributes, out, {operands.data(), inputs});
}

// Runs `f` with what it makes where the operands are, and named by the op.
template <class F>
[[gnu::noinline]] void as_scoped_op(const OpRecord& op, const Operand* in, int inputs, F f) {
  const OpScope scope(op.name);
  const DeviceGuard device(device_of(op, in, inputs));
  if (active_device().fails_late || modes.anomaly || observed()) scope.note_line();
  f();
}
template <class F> void as_op(const OpRecord& op, const Operand* in, int inputs, F f) {
  DispatchFlags(in, inputs).needs_slow_path() ? as_scoped_op(op, in, inputs, f) : f();
}

// Whether an op may run by its `quick` function though calls run in full.
bool may_take_shortcut() {
  return !is_off(Optimization::call_shortcuts) &&
         !(modes.choice && modes.choice->forces_plain_op());
}

[[gnu::noinline]] void apply_slow_path(const OpRecord& op, const Operand* in, int inputs,
                                       Attributes attributes, Tensor* out) {
  const DispatchFlags flags(in, inputs);
  if (!modes.plain) used = {};
  if (!flags.is_elsewhere() && is_plain_but_in_full() && may_take_shortcut())
    return apply_here<run_quickly>(op, in, inputs, attributes, out, flags);
  as_scoped_op(op, in, inputs, [&] {
    if (modes.autocast && op.autocast != Autocast::as_given)
      return apply_autocast(op, in, inputs, attributes, out);
    apply_here<run_in_full>(op, in, inputs, attributes, out, {in, inputs});
  });
}

}  // namespace

// For a thread that another library has left in an environment of its own.
[[gnu::noinline, gnu::cold]] static void apply_in_environment(const OpRecord& op, const Operand* in,
                                                              int inputs, Attributes attributes,
                                                              Tensor* out) {
  const FloatEnvironment environment;
  apply(op, in, inputs, attributes, out);
}

// What every small call passes is `hot`: the linker puts these functions side by side. Scattered
// over the library, the same instructions took 2 % longer on one processor (docs/notes/calls.md).
[[gnu::hot]] void apply(const OpRecord& op, const Operand* in, int inputs, Attributes attributes,
                        Tensor* out) {
  if (!is_engines_own(float_control())) [[unlikely]]
    return apply_in_environment(op, in, inputs, attributes, out);
  // Each way is the last thing done: a small call costs no frame here.
  const DispatchFlags flags(in, inputs);
  if (flags.needs_slow_path()) [[unlikely]]
    return apply_slow_path(op, in, inputs, attributes, out);
  if (flags.in_graph() || modes.checkpoint)
    return apply_here<run_quickly>(op, in, inputs, attributes, out, flags);
  run_quickly(op, in, inputs, attributes, out);
}

// Launches what kernels must take.
static void launch_inferred(const OpRecord& op, Inferred& inferred, const Operand* in,
                            Tensor* out) {
  const OpKernels& kernels = kernels_of(op);
  if (!kernels.lowering) fail_without_kernel(op);
  const Lowering& lowering = *kernels.lowering;
  if (const char* why = lowering.refuses ? lowering.refuses(inferred.call) : nullptr)
    fail_refused(op, why);
  launch_packed(op, kernels, inferred.call, in, false, nullptr, out);
}

void apply_into(const OpRecord& op, const Operand* in, int inputs, Attributes attributes,
                const Tensor& target) {
  const FloatEnvironment environment;
  as_op(op, in, inputs, [&] {
    Inferred inferred(op, in, inputs, attributes);
    describe_operand(target, inferred.out[0]);
    Tensor out[kMaxResults] = {target};
    launch_inferred(op, inferred, in, out);
    if (modes.checkpoint) [[unlikely]]
      tell_frame(in, inputs, &target, 1);
  });
}

void apply_in_place(const OpRecord& op, const Operand* in, int inputs, Attributes attributes) {
  const FloatEnvironment environment;
  as_op(op, in, inputs, [&] {
    Inferred inferred(op, in, inputs, attributes);
    launch_inferred(op, inferred, in, nullptr);
  });
}

Tensor apply(const OpRecord& op, std::initializer_list<Operand> in, Attributes attributes) {
  Tensor y;
  apply(op, in.begin(), static_cast<int>(in.size()), attributes, &y);
  return y;
}

}  // namespace tw
