// Optimizer steps over many parameters in one call, with the formulas of torch.optim.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"

namespace tw {

struct SgdArgs {
  double lr, momentum, dampening, weight_decay;
  bool nesterov;
  bool first_step;  // the momentum buffer starts as the gradient
};
struct AdamArgs {
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled;     // AdamW: the decay shrinks the parameter instead of joining the gradient
  std::int64_t step;  // 1 for the first, corrects the bias of the averages
};
struct AdagradArgs {
  double lr, lr_decay, weight_decay, eps;
  std::int64_t step;  // 1 for the first
};

// One parameter: n contiguous elements of each array, which do not overlap. States, all updated in
// place: sgd state1 = momentum buffer (null without momentum), adam state1 = average of the
// gradient and state2 = of its square, adagrad state1 = sum of squares. States have state_type()'s
// elements.
struct ParameterSlice {
  void* param;
  const void* grad;
  void* state1;
  void* state2;
  std::int64_t n;
};

// What a step on parameters of this type is computed in and keeps its states in: a float16 or
// bfloat16 sum would soon stop growing, because what is added to it falls below its last place.
constexpr DType state_type(DType param) {
  return param == DType::float64 ? DType::float64 : DType::float32;
}

// dtype is the parameters', any floating one. Shared between threads in fixed pieces: the result
// does not depend on their number.
void sgd_step(DType dtype, const SgdArgs& args, const ParameterSlice* parameters,
              std::int64_t count);
void adam_step(DType dtype, const AdamArgs& args, const ParameterSlice* parameters,
               std::int64_t count);
void adagrad_step(DType dtype, const AdagradArgs& args, const ParameterSlice* parameters,
                  std::int64_t count);

// What the registered kernels of ops sgd_step, adam_step and adagrad_step take.
template <class Args> struct StepProblem {
  DType dtype;
  Args args;
  const ParameterSlice* parameters;
  std::int64_t count;
};

// What the loops need of AdamArgs and AdagradArgs, once a step.
struct AdamFactors {
  double decay;       // multiplies the parameter
  double grad_decay;  // times the parameter joins the gradient
  double beta1, beta2, eps;
  double step_size;        // lr / (1 - beta1^step)
  double root_correction;  // sqrt(1 - beta2^step)
};
struct AdagradFactors {
  double lr, grad_decay, eps;
};
struct OptimizerLoops {
  void (*sgd)(const SgdArgs& args, const ParameterSlice& slice);
  void (*adam)(const AdamFactors& factors, const ParameterSlice& slice);
  void (*adagrad)(const AdagradFactors& factors, const ParameterSlice& slice);
};
struct OptimizerTable {
  OptimizerLoops float32, float64;
};

}  // namespace tw
