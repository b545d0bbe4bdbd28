// The definitions of optimizers' steps: one parameter after the other, the formula of the step goes
// over its elements one at a time. And of the norm over all elements of many tensors.
#include <cmath>
#include <vector>

#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/copy/plain.h"
#include "core/cpu/optim/steps.h"
#include "core/cpu/optim/total_norm.h"
#include "core/problems/update_factors.h"

namespace tw {
namespace {

using std::int64_t;

// Of float16 and bfloat16 in float32, as which the states are kept.
void step_in_float32(UpdateTable::Loop formula, const double* factors, const ParameterSlice& s) {
  const auto bytes = int64_t(size_of(s.dtype));
  std::vector<float> param(s.n), grad(s.n);
  for (int64_t i = 0; i < s.n; ++i) {
    convert_plainly(s.dtype, static_cast<char*>(s.param) + i * bytes, DType::float32, &param[i]);
    if (s.grad)
      convert_plainly(s.dtype, static_cast<const char*>(s.grad) + i * bytes, DType::float32,
                      &grad[i]);
  }
  ParameterSlice wide = s;
  wide.param = param.data();
  if (s.grad) wide.grad = grad.data();
  formula(factors, wide);
  for (int64_t i = 0; i < s.n; ++i)
    convert_plainly(DType::float32, &param[i], s.dtype, static_cast<char*>(s.param) + i * bytes);
}
void step(const void* problem) {
  const auto& p = *static_cast<const UpdateProblem*>(problem);
  double factors[kMaxFactors] = {};  // what is the same for all elements
  const double number = p.numbers[0] ? number_value(p.types[0], p.numbers[0]) : 1;
  kUpdateFactors[p.row](number, number_value(p.types[1], p.numbers[1]), {p.attribute, p.attributes},
                        factors);
  const UpdateTable& formulas = *scalar_kernels().update;
  for (const ParameterSlice* s = p.slices(); s < p.slices() + p.count; ++s) {
    if (s->dtype == DType::float64)
      formulas.float64[p.row](factors, *s);
    else if (s->dtype == DType::float32)
      formulas.float32[p.row](factors, *s);
    else
      step_in_float32(formulas.float32[p.row], factors, *s);
  }
}

// long double holds the squares of float64.
void find_total_norm(const void* problem) {
  const auto& p = *static_cast<const TotalNormProblem*>(problem);
  long double sum = 0, largest = 0;
  for (const NormSlice* s = p.slices(); s < p.slices() + p.count; ++s)
    for (int64_t i = 0; i < s->n; ++i) {
      double x;
      convert_plainly(s->dtype, static_cast<const char*>(s->data) + i * int64_t(size_of(s->dtype)),
                      DType::float64, &x);
      sum += p.terms == NormTerms::squares ? static_cast<long double>(x) * x : std::fabs(x);
      if (x != x || std::fabs(x) > largest) largest = largest != largest ? largest : std::fabs(x);
    }
  const auto norm = static_cast<double>(p.terms == NormTerms::largest   ? largest
                                        : p.terms == NormTerms::squares ? std::sqrt(sum)
                                                                        : sum);
  convert_plainly(DType::float64, &norm, p.result_type, p.result);
}

}  // namespace

void register_naive_update_kernels() {
#define TW_UPDATE(row, ...) add_definition(#row, step);
#include "core/problems/updates.inc"
#undef TW_UPDATE
  add_definition("total_norm", find_total_norm);
}

}  // namespace tw
