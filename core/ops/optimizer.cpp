// Optimizer steps on tensors.
#include "core/ops/optimizer.h"

#include "core/base/error.h"
#include "core/cpu/isa.h"
#include "core/ops/copy.h"
#include "core/ops/in_place.h"
#include "core/runtime/profile.h"
#include "core/tensor/access.h"

namespace tw {

namespace {

// A step's operands, checked before anything changes.
struct Group {
  const char* op;
  struct Operands {
    Tensor param, grad;
    const Tensor *state1, *state2;
  };
  std::vector<Operands> operands;
  double bytes = 0;

  explicit Group(const char* op) : op(op) {}

  void add(const Tensor& param, const Tensor* state1, const Tensor* state2) {
    if (!param.grad()) return;
    if (!is_floating(param.dtype()))
      fail(ErrorKind::type, op, ": parameters must be of a floating type, got ", describe(param));
    if (!param.contiguous())
      fail(ErrorKind::value, op, ": parameter ", describe(param), " is not contiguous");
    const GradModeGuard off(false);
    Tensor grad = contiguous(param.grad());
    for (const Tensor* target : {&param, state1, state2})
      if (target) grad = InPlaceChange(op, *target).apart(grad);
    for (const Tensor* state : {state1, state2})
      if (state) check_state(param, *state);
    operands.push_back({param, grad, state1, state2});
    // Parameters and states are read and written, gradients read.
    const double state_bytes = static_cast<double>(size_of(state_type(param.dtype())));
    bytes +=
        static_cast<double>(param.count()) * (3 * static_cast<double>(param.item_bytes()) +
                                              state_bytes * ((state1 ? 2 : 0) + (state2 ? 2 : 0)));
  }

  void check_state(const Tensor& param, const Tensor& state) const {
    const DType type = state_type(param.dtype());
    if (!(state.shape() == param.shape()) || state.dtype() != type || !state.contiguous())
      fail(ErrorKind::value, op, ": state ", describe(state), " does not fit parameter ",
           describe(param), ", whose states are contiguous ", name_of(type));
  }

  template <class Step> void run(Step step) {
    Access at;
    std::vector<ParameterSlice> slices[kDTypes];
    for (const auto& [param, grad, state1, state2] : operands)
      slices[index_of(param.dtype())].push_back({at(param), at(grad),
                                                 state1 ? at(*state1) : nullptr,
                                                 state2 ? at(*state2) : nullptr, param.count()});
    for (const auto& [param, grad, state1, state2] : operands) {
      param.touch(op);
      for (const Tensor* state : {state1, state2})
        if (state) state->touch(op);
    }
    dispatch(
        0, bytes,
        [&] {
          for (int type = 0; type < kDTypes; ++type) {
            const auto& list = slices[type];
            if (!list.empty())
              step(static_cast<DType>(type), list.data(), static_cast<std::int64_t>(list.size()));
          }
        },
        [&](Observation& seen) {
          seen.op = op;
          seen.kernel = "vector";
          seen.isa = name_of(active_isa());
          seen.problem = std::to_string(operands.size()) + " tensors";
        });
  }
};

void check_length(const char* op, std::size_t params, std::size_t states) {
  if (params != states)
    fail(ErrorKind::value, op, ": ", params, " parameters, but ", states, " state tensors");
}

}  // namespace

void sgd_step(const SgdArgs& args, const std::vector<Tensor>& params,
              const std::vector<Tensor>& momentum) {
  Group group("sgd_step");
  if (!momentum.empty()) check_length(group.op, params.size(), momentum.size());
  for (std::size_t i = 0; i < params.size(); ++i)
    group.add(params[i], momentum.empty() ? nullptr : &momentum[i], nullptr);
  group.run([&](DType type, const ParameterSlice* list, std::int64_t count) {
    sgd_step(type, args, list, count);
  });
}

void adam_step(const AdamArgs& args, const std::vector<Tensor>& params,
               const std::vector<Tensor>& averages, const std::vector<Tensor>& square_averages) {
  Group group("adam_step");
  check_length(group.op, params.size(), averages.size());
  check_length(group.op, params.size(), square_averages.size());
  for (std::size_t i = 0; i < params.size(); ++i)
    group.add(params[i], &averages[i], &square_averages[i]);
  group.run([&](DType type, const ParameterSlice* list, std::int64_t count) {
    adam_step(type, args, list, count);
  });
}

void adagrad_step(const AdagradArgs& args, const std::vector<Tensor>& params,
                  const std::vector<Tensor>& sums) {
  Group group("adagrad_step");
  check_length(group.op, params.size(), sums.size());
  for (std::size_t i = 0; i < params.size(); ++i) group.add(params[i], &sums[i], nullptr);
  group.run([&](DType type, const ParameterSlice* list, std::int64_t count) {
    adagrad_step(type, args, list, count);
  });
}

void zero_grad(const std::vector<Tensor>& params) {
  for (const Tensor& param : params)
    if (param->extras) param->extras->grad = Tensor();
}

}  // namespace tw
