// Optimizer steps on tensors.
#include "core/ops/optimizer.h"

#include "core/base/error.h"
#include "core/cpu/isa.h"
#include "core/ops/copy.h"
#include "core/runtime/profile.h"

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
    if (param.dtype() != DType::float32 && param.dtype() != DType::float64)
      fail(ErrorKind::type, op, ": parameters must be float32 or float64, got ", describe(param));
    if (!param.contiguous())
      fail(ErrorKind::value, op, ": parameter ", describe(param), " is not contiguous");
    for (const Tensor* state : {state1, state2})
      if (state) check_state(param, *state);
    operands.push_back({param, contiguous(param.grad()), state1, state2});
    bytes += static_cast<double>(param.count()) * static_cast<double>(param.item_bytes()) *
             (3 + (state1 ? 2 : 0) + (state2 ? 2 : 0));
  }

  void check_state(const Tensor& param, const Tensor& state) const {
    if (!(state.shape() == param.shape()) || state.dtype() != param.dtype() || !state.contiguous())
      fail(ErrorKind::value, op, ": state ", describe(state), " does not fit parameter ",
           describe(param));
  }

  template <class Step> void run(Step step) {
    // Addresses hold until an op ends: they are taken when no copy of a gradient is left to make.
    std::vector<ParameterSlice> slices[2];  // float32, float64
    for (const auto& [param, grad, state1, state2] : operands)
      slices[param.dtype() == DType::float64].push_back(
          {param.bytes(), grad.bytes(), state1 ? state1->bytes() : nullptr,
           state2 ? state2->bytes() : nullptr, param.count()});
    for (const Operands& each : operands) each.param.touch(op);
    dispatch(
        0, bytes,
        [&] {
          for (const DType type : {DType::float32, DType::float64}) {
            const auto& list = slices[type == DType::float64];
            if (!list.empty()) step(type, list.data(), static_cast<std::int64_t>(list.size()));
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
