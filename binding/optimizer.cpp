// Fused optimizer steps.
#include "binding/module.h"
#include "core/base/error.h"
#include "core/ops/optimizer.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

// None where there is no momentum.
Parameters read_buffers(nb::handle source) {
  Parameters buffers;
  if (!source.is_none() && !read_parameters(source.ptr(), buffers))
    fail(ErrorKind::type, "sgd_step: momentum_buffers must be a sequence of tensors or None");
  return buffers;
}

}  // namespace

void bind_optimizer(nb::module_& m) {
  m.def(
      "sgd_step",
      [](const Parameters& params, nb::object buffers, double lr, double momentum, double dampening,
         double weight_decay, bool nesterov, bool first_step) {
        sgd_step({lr, momentum, dampening, weight_decay, nesterov, first_step}, params,
                 read_buffers(buffers));
      },
      "params"_a, "momentum_buffers"_a.none(), nb::kw_only(), "lr"_a, "momentum"_a = 0.0,
      "dampening"_a = 0.0, "weight_decay"_a = 0.0, "nesterov"_a = false, "first_step"_a = false,
      "Stochastic gradient descent on all params in place, from their grads.");
  m.def(
      "adam_step",
      [](const Parameters& params, const Parameters& averages, const Parameters& square_averages,
         std::int64_t step, double lr, double beta1, double beta2, double eps, double weight_decay,
         bool decoupled) {
        adam_step({lr, beta1, beta2, eps, weight_decay, decoupled, step}, params, averages,
                  square_averages);
      },
      "params"_a, "exp_avgs"_a, "exp_avg_sqs"_a, nb::kw_only(), "step"_a, "lr"_a, "beta1"_a = 0.9,
      "beta2"_a = 0.999, "eps"_a = 1e-8, "weight_decay"_a = 0.0, "decoupled"_a = false,
      "Adam (Kingma and Ba, 2015), or AdamW where decoupled, on all params in place.");
  m.def(
      "adagrad_step",
      [](const Parameters& params, const Parameters& sums, double lr, double eps,
         double weight_decay, double lr_decay, std::int64_t step) {
        adagrad_step({lr, lr_decay, weight_decay, eps, step}, params, sums);
      },
      "params"_a, "sums"_a, nb::kw_only(), "lr"_a, "eps"_a = 1e-10, "weight_decay"_a = 0.0,
      "lr_decay"_a = 0.0, "step"_a = 1,
      "Adagrad (Duchi, Hazan, Singer, 2011) on all params in place.");
  m.def(
      "zero_grad", [](const Parameters& params) { zero_grad(params); }, "params"_a,
      "Drops the grads of params.");
}

}  // namespace tw::binding
