// The definition of the CTC loss: the logarithm of the sum over all paths of blanks and targets
// that a sequence may take, state by state and step by step (Graves et al., "Connectionist temporal
// classification", 2006). Backward, the same sums from the end.
#include <algorithm>
#include <vector>

#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/pointwise/plain.h"
#include "core/cpu/sequence/ctc.h"

namespace tw {
namespace {

using std::int64_t;

constexpr double kNever = -__builtin_inf();

double log_sum(double a, double b, double c) {
  const double most = std::max(a, std::max(b, c));
  if (most == kNever) return most;
  const auto part = [most](double x) { return plain_value(PointwiseOp::exp, x - most); };
  return most + plain_value(PointwiseOp::log, part(a) + part(b) + part(c));
}

// One sequence of the batch: blanks and targets in turn are its states.
template <class T> struct Path {
  const PathsProblem& p;
  int64_t n;
  int64_t steps = p.input_lengths[n], states = 2 * p.target_lengths[n] + 1;
  int64_t room = 2 * p.width + 1;

  int64_t label(int64_t s) const { return s % 2 ? p.targets[n * p.width + s / 2] : p.blank; }
  // A path may go to state s from the last but one before it.
  bool skips(int64_t s) const { return s > 1 && s % 2 && label(s) != label(s - 2); }
  double log_prob(int64_t t, int64_t s) const {
    return static_cast<const T*>(p.log_probs)[(t * p.batch + n) * p.classes + label(s)];
  }
  T& beginning(int64_t t, int64_t s) const {
    return static_cast<T*>(p.beginnings)[(n * p.steps + t) * room + s];
  }

  // beginning(t, s): of all paths that are in state s at step t.
  T loss() const {
    for (int64_t t = 0; t < p.steps; ++t)
      for (int64_t s = 0; s < room; ++s) beginning(t, s) = static_cast<T>(kNever);
    if (steps == 0) return static_cast<T>(states == 1 ? 0 : -kNever);
    for (int64_t t = 0; t < steps; ++t)
      for (int64_t s = 0; s < states; ++s) {
        double before = s < 2 ? 0 : kNever;
        if (t > 0)
          before = log_sum(beginning(t - 1, s), s > 0 ? beginning(t - 1, s - 1) : kNever,
                           skips(s) ? beginning(t - 1, s - 2) : kNever);
        beginning(t, s) = static_cast<T>(log_prob(t, s) + before);
      }
    return static_cast<T>(-log_sum(beginning(steps - 1, states - 1),
                                   states > 1 ? beginning(steps - 1, states - 2) : kNever, kNever));
  }

  // With endings[s] of all ways from state s to the end: the share of the paths through it.
  void differentiate(double g, double loss) const {
    T* const dx = static_cast<T*>(p.dx);
    for (int64_t t = 0; t < p.steps; ++t)
      for (int64_t i = 0; i < p.classes; ++i) dx[(t * p.batch + n) * p.classes + i] = 0;
    if (__builtin_isinf(loss)) return;
    std::vector<double> endings(states + 2, kNever), behind;
    for (int64_t t = steps - 1; t >= 0; --t) {
      behind = endings;  // with the step's own probabilities
      std::vector<double> gradient(p.classes);
      for (int64_t s = 0; s < states; ++s) {
        double rest = s + 2 >= states ? 0 : kNever;
        if (t < steps - 1)
          rest = log_sum(behind[s], behind[s + 1],
                         s + 2 < states && skips(s + 2) ? behind[s + 2] : kNever);
        endings[s] = rest + log_prob(t, s);
        if (rest != kNever && beginning(t, s) != kNever)
          gradient[label(s)] -= g * plain_value(PointwiseOp::exp, beginning(t, s) + rest + loss);
      }
      for (int64_t i = 0; i < p.classes; ++i)
        dx[(t * p.batch + n) * p.classes + i] = static_cast<T>(gradient[i]);
    }
  }
};

template <class T> void find_losses(const PathsProblem& p) {
  for (int64_t n = 0; n < p.batch; ++n) static_cast<T*>(p.losses)[n] = Path<T>{p, n}.loss();
}
template <class T> void find_gradients(const PathsProblem& p) {
  for (int64_t n = 0; n < p.batch; ++n)
    Path<T>{p, n}.differentiate(static_cast<const T*>(p.g)[n], static_cast<const T*>(p.losses)[n]);
}
void run(const void* problem) {
  const auto& p = *static_cast<const PathsProblem*>(problem);
  p.dtype == DType::float64 ? find_losses<double>(p) : find_losses<float>(p);
}
void run_backward(const void* problem) {
  const auto& p = *static_cast<const PathsProblem*>(problem);
  p.dtype == DType::float64 ? find_gradients<double>(p) : find_gradients<float>(p);
}

}  // namespace

void register_naive_ctc_kernels() {
  add_definition("ctc_terms", run);
  add_definition("ctc_terms_backward", run_backward);
}

}  // namespace tw
