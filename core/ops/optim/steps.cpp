// The rows of updates.inc as records: steps of optimizers on many parameters, in place.
#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/in_place.h"
#include "core/ops/engine/records.h"
#include "core/runtime/device.h"

namespace tw {

namespace {

int states_of(const OpRecord& op) { return *static_cast<const int*>(op.row); }
// Operands of one parameter: itself, its gradient, its states. Of a change: the tensor alone.
int operands_of(const OpRecord& op) { return 2 + states_of(op); }
// Behind the parameters: step and lr, or the number of a change.
int numbers_of(const OpRecord& op) { return states_of(op) < 0 ? 1 : 2; }

void check_parameter(const char* op, const Tensor& x) {
  if (!is_floating(x.dtype()))
    fail(ErrorKind::type, op, ": expected tensors of a floating type, got ", describe(x));
}

// 16-bit sums would soon stop growing, because what is added to them falls below their last place.
void check_state(const char* op, const Tensor& x, const Tensor& state) {
  const DType type = working_dtype(x.dtype());
  if (!(state.shape() == x.shape()) || state.dtype() != type || !state.contiguous())
    fail(ErrorKind::value, op, ": state ", describe(state), " does not fit parameter ", describe(x),
         ", whose states are contiguous ", name_of(type));
}

// The gradient as kernels read it.
Tensor gradient_for(const char* op, const Operand* at, int operands) {
  const Tensor &x = at[0].tensor, &g = at[1].tensor;
  if (!(g.shape() == x.shape()) || g.dtype() != x.dtype())
    fail(ErrorKind::value, op, ": gradient ", describe(g), " does not fit parameter ", describe(x));
  Tensor grad = contiguous(g);
  for (int i = 0; i < operands; ++i)
    if (i != 1) grad = InPlaceChange(op, at[i].tensor).apart(grad);
  return grad;
}

bool overlap(const Tensor& a, const Tensor& b) {
  return a->storage == b->storage && byte_range(a).low < byte_range(b).high &&
         byte_range(b).low < byte_range(a).high;
}

// Raises where a parameter and its states share memory.
void keep_states_apart(const char* op, const Operand* at, int operands) {
  for (int i = 0; i < operands; ++i)
    for (int j = i + 1; j < operands; ++j) {
      const Tensor &a = at[i].tensor, &b = at[j].tensor;
      if (i != 1 && j != 1 && a.count() > 0 && overlap(a, b))
        fail(ErrorKind::value, op, ": ", describe(a), " and ", describe(b),
             " of one parameter share memory, and both are to be changed; copy() one");
    }
}

// Whether two of the tensors that are written share memory; gradients that are among them are
// copied, as all are read before any is written.
bool keep_apart(const char* op, std::vector<Operand>& in, int end, int operands) {
  std::vector<const Tensor*> written;
  for (int i = 0; i < end; ++i)
    if (i % operands != 1 && in[i].tensor.count() > 0) written.push_back(&in[i].tensor);
  const auto place = [](const Tensor* x) {
    return std::pair((*x)->storage.get(), (*x)->offset_bytes);
  };
  std::sort(written.begin(), written.end(),
            [&](const Tensor* a, const Tensor* b) { return place(a) < place(b); });
  bool shared = false;
  for (std::size_t i = 1; i < written.size(); ++i) shared |= overlap(*written[i - 1], *written[i]);
  for (int at = 0; shared && at < end; at += operands) keep_states_apart(op, &in[at], operands);
  for (int i = 1; i < end && operands > 1; i += operands) {
    const Tensor& g = in[i].tensor;
    const auto at = std::partition_point(written.begin(), written.end(), [&](const Tensor* x) {
      return (*x)->storage.get() < g->storage.get();
    });
    if (at != written.end() && (**at)->storage == g->storage) in[i].tensor = copy(g);
  }
  return shared;
}

// A number, or a tensor of one.
void check_number(const char* op, const Operand& number, const char* name) {
  const Tensor& x = number.tensor;
  const bool fits = x ? x.count() == 1 && (x.dtype() == DType::float32 ||
                                           x.dtype() == DType::float64 || x.dtype() == DType::int64)
                      : number.scalar.kind != Scalar::Kind::complex;
  if (!fits)
    fail(ErrorKind::type, op, ": ", name,
         " must be a number, or a tensor of one of type float32, float64 or int64, got ",
         x ? describe(x) : "a complex one");
}

void infer(Call& call, Result*) { call.type = DType::float64; }

Estimate estimate(const Call& call) {
  const int operands = operands_of(*call.op), end = call.inputs - numbers_of(*call.op);
  Estimate estimate;
  for (int i = 0; i < end; ++i) {
    // The parameter and its states are read and written, the gradient is read.
    const int times = i % operands == 1 ? 1 : 2;
    estimate.bytes += static_cast<double>(times * call.in[i].count) *
                      static_cast<double>(size_of(call.in[i].dtype));
  }
  return estimate;
}

// Whether its memory may leave its place; a device's own pool keeps what it gave.
bool may_move(const Storage& storage) {
  const Block* const block = storage.block;
  return block && !(storage.device && block->source == storage.device->source);
}

// Kernels take row-major memory: what lies otherwise is changed in a copy and written back.
class RowMajor {
 public:
  RowMajor(std::vector<Operand>& in, int end, int operands) {
    for (int at = 0; at < end; at += operands) {
      Tensor& x = in[at].tensor;
      if (x.contiguous()) continue;
      const Tensor packed = copy(x);
      written_.emplace_back(std::exchange(x, packed), packed);
    }
  }
  void write_back() {
    for (auto& [x, packed] : written_) assign(x, packed);
  }

 private:
  std::vector<std::pair<Tensor, Tensor>> written_;
};

// Of the `end` operands and the numbers behind them.
void change(const Use& use, std::vector<Operand>& in, int end) {
  RowMajor packed(in, end, operands_of(use.op));
  apply_in_place(use.op, in.data(), static_cast<int>(in.size()), use.attributes);
  packed.write_back();
}

// All at once. One parameter after the other in memory that moves, so that one at a time is held,
// and where parameters share memory, so that each is changed from what the one before left.
bool step(const Use& use, Tensor*) {
  const char* op = use.op.name;
  const int operands = operands_of(use.op), numbers = numbers_of(use.op);
  const int end = use.inputs - numbers;
  const GradModeGuard off(false);
  std::vector<Operand> in(use.in, use.in + use.inputs);
  if (numbers == 2) check_number(op, in[end], "step");
  check_number(op, in.back(), numbers == 2 ? "lr" : "number");
  if (numbers == 2 && !in[end].is_tensor() && !(in[end].scalar.re >= 1))
    fail(ErrorKind::value, op, ": step counts from 1, got ", in[end].scalar.re);
  bool one_by_one = false;
  for (int at = 0; at < end; at += operands) {
    check_parameter(op, in[at].tensor);
    for (int i = 2; i < operands; ++i) check_state(op, in[at].tensor, in[at + i].tensor);
    if (operands > 1) in[at + 1].tensor = gradient_for(op, &in[at], operands);
    one_by_one |= may_move(*in[at].tensor->storage);
  }
  one_by_one |= keep_apart(op, in, end, operands);
  for (int i = 0; i < end; ++i)
    if (i % operands != 1) in[i].tensor.touch(op);
  if (!one_by_one || end == operands) {
    change(use, in, end);
    return true;
  }
  for (int at = 0; at < end; at += operands) {
    std::vector<Operand> one(in.begin() + at, in.begin() + at + operands);
    one.insert(one.end(), in.begin() + end, in.end());
    change(use, one, operands);
  }
  return true;
}

}  // namespace

// What all steps say of themselves; what an optimizer's own source is stands in its row.
#define TW_STEP_FACTS                                                                          \
  "\nShapes: params of any shapes, grads and states of theirs.\nTypes: floating; states of "   \
  "float32 for 16-bit params, else of their type. Result: None.\nRaises ValueError for grads " \
  "and states of other numbers, shapes or types than params, TypeError for a step or lr that " \
  "is no number."
#define TW_UPDATE(name_, states, tensors, attributes, help_, factors, update)      \
  static constexpr int states_of_##name_ = states;                                 \
  constexpr OpRecord k_##name_ = {                                                 \
      .name = #name_,                                                              \
      .signature = "(params: Sequence[Tensor]!, grads: Sequence[Tensor], " tensors \
                   "*, step: Operand, lr: Operand, " attributes ") -> None",       \
      .help = help_ TW_STEP_FACTS,                                                 \
      .flags = kFunction,                                                          \
      .results = 0,                                                                \
      .rewrite = step,                                                             \
      .infer = infer,                                                              \
      .estimate = estimate,                                                        \
      .row = &states_of_##name_};
#define TW_CHANGE(name_, help_, update)                                                 \
  static constexpr int states_of_##name_ = -1;                                          \
  constexpr OpRecord k_##name_ = {                                                      \
      .name = #name_,                                                                   \
      .signature = "(tensors: Sequence[Tensor]!, *, number: Operand) -> None",          \
      .help = help_ "\nShapes: tensors of any shapes.\nTypes: floating. Result: None.", \
      .flags = kFunction,                                                               \
      .results = 0,                                                                     \
      .rewrite = step,                                                                  \
      .infer = infer,                                                                   \
      .estimate = estimate,                                                             \
      .row = &states_of_##name_};
#include "core/problems/updates.inc"
#undef TW_CHANGE
#undef TW_UPDATE
#undef TW_STEP_FACTS

}  // namespace tw
