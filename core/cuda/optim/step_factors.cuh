// The factors of a row of problems/updates.inc where step or learning rate lie in the GPU's memory:
// in a step that is captured once and replayed they change without the program. Settings: TW_STEP
// and TW_RATE (their types), TW_FACTORS (fills f from step, lr and the attributes w).
#include "prelude.cuh"
#include "steps_parameters.h"
#include "update_factors.inc"

// As formulas ask for attributes.
struct Settings {
  const UpdateAttributes& all;
  TW_DEVICE double real(int i) const { return all.reals[i]; }
  TW_DEVICE bool flag(int i) const { return all.numbers[i] != 0; }
};
using Factors = FactorsOf<TW_STEP, TW_RATE>;

TW_KERNEL(update_factors, Factors, 1) {
  const double step = p.step ? double(*p.step) : p.step_number;
  const double lr = p.rate ? double(*p.rate) : p.rate_number;
  const Settings w = {p.attributes};
  double* const f = p.f;
  (void)step, (void)lr;
  (void)w;
  TW_FACTORS
}
