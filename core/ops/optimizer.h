// Optimizer steps on tensors: every parameter of a group in one native call.
#pragma once
#include <vector>

#include "core/cpu/optimizer.h"
#include "core/tensor/tensor.h"

namespace tw {

// Each updates `params` in place from their grad, outside the graph; parameters without one are
// left alone. States (momentum buffers, averages, sums) have the parameters' shapes and the types
// that state_type() says; `momentum` may be empty for SGD without momentum. Raises ValueError for
// lists of different lengths or shapes, TypeError for parameters that are not floating; then
// nothing has changed.
void sgd_step(const SgdArgs& args, const std::vector<Tensor>& params,
              const std::vector<Tensor>& momentum);
void adam_step(const AdamArgs& args, const std::vector<Tensor>& params,
               const std::vector<Tensor>& averages, const std::vector<Tensor>& square_averages);
void adagrad_step(const AdagradArgs& args, const std::vector<Tensor>& params,
                  const std::vector<Tensor>& sums);
void zero_grad(const std::vector<Tensor>& params);

}  // namespace tw
