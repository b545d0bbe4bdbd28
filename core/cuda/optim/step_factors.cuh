// The factors of a row of problems/updates.inc where step or learning rate lie in the GPU's memory:
// in a step that is captured once and replayed they change without the program. Settings: TW_STEP
// and TW_RATE (their types), TW_FACTORS (fills f from step, lr and the attributes w).
#include "prelude.cuh"
#include "update_factors.inc"

struct Settings {
  double reals[8];
  int64_t attributes[8];
  TW_DEVICE double real(int i) const { return reals[i]; }
  TW_DEVICE bool flag(int i) const { return attributes[i] != 0; }
};
struct Factors {
  const TW_STEP* step;  // null: the number
  const TW_RATE* rate;
  double step_number, rate_number;
  Settings w;
  double* f;
};

TW_KERNEL(update_factors, Factors, 1) {
  const double step = p.step ? double(*p.step) : p.step_number;
  const double lr = p.rate ? double(*p.rate) : p.rate_number;
  const Settings& w = p.w;
  double* const f = p.f;
  (void)step, (void)lr;
  (void)w;
  TW_FACTORS
}
