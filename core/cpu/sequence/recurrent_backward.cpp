// Recurrent layers backwards: a step's cells, then the product that leads to the step before it;
// and of some steps at a time, as long as the gradients of their gates lie in cache, the gradients
// of weights, biases and inputs.
#include <algorithm>
#include <cstring>
#include <optional>

#include "core/base/thresholds.h"
#include "core/cpu/sequence/recurrent_products.h"
#include "core/memory/scratch.h"

namespace tw {
namespace {

using std::int64_t;

// Elements between such rows: whole rows, a power of two apart, would share few sets of L1, where
// the weights' products read down their columns.
constexpr int64_t kGap = 16;

class Backward {
 public:
  explicit Backward(const RecurrentProblem& p)
      : p_(p),
        bytes_(static_cast<int64_t>(size_of(p.dtype))),
        width_(gates_of(p) * p.hidden),
        row_(p.dproducts ? width_ : width_ + kGap),
        in_cache_(std::max(thresholds::kChainTerms, p.batch) * row_ * bytes_ <=
                  thresholds::kGateBytes),
        steps_(std::min(p.steps, std::max<int64_t>(
                                     (in_cache_ ? thresholds::kChainTerms : thresholds::kGateRows) /
                                         std::max<int64_t>(p.batch, 1),
                                     1))),
        gates_(p.dproducts ? 0 : buffer_bytes()),
        states_gates_(is_gru() ? buffer_bytes() : 0),
        ones_(p.dbias ? static_cast<std::size_t>(steps_ * p.batch * bytes_) : 0),
        states_(p.dtype, p.batch, width_, p.hidden, {p.weight, p.hidden, 1}, row_, p.hidden,
                is_gru() ? 1 : 0, has_many_rows(p)) {
    if (p.dx)
      inputs_.emplace(p.dtype, steps_ * p.batch, width_, p.in, Weight{p.weight_ih, p.in, 1}, row_,
                      p.in, 0, has_many_rows(p));
    if (p.dbias) fill_ones();
  }

  void run() {
    // What one step hands to the one before it ends as the gradient of the first states.
    const auto bytes = static_cast<std::size_t>(places_.states);
    std::memset(p_.dh0, 0, bytes);
    if (p_.dc0) std::memset(p_.dc0, 0, bytes);
    for (int64_t past = p_.steps; past > 0;) {
      const int64_t first = std::max<int64_t>(past - steps_, 0);
      earliest_ = std::min(step_at(p_, first), step_at(p_, past - 1));
      for (int64_t i = past - 1; i >= first; --i) step(i);
      give(first, past - first);
      past = first;
    }
  }

 private:
  bool is_gru() const { return p_.cell == RecurrentCell::gru; }
  std::size_t buffer_bytes() const {
    return static_cast<std::size_t>(steps_ * p_.batch * row_ * bytes_);
  }
  void fill_ones() {
    for (int64_t i = 0; i < steps_ * p_.batch; ++i)
      if (p_.dtype == DType::float64)
        ones_.as<double>()[i] = 1;
      else
        ones_.as<float>()[i] = 1;
  }
  // Gradients of the gates' sums at a place: as the inputs' product has them, and the states'.
  char* gates(int64_t place) const {
    if (p_.dproducts) return static_cast<char*>(p_.dproducts) + rows(place, width_);
    return gates_.as<char>() + rows(place - earliest_, row_);
  }
  char* states_gates(int64_t place) const {
    return is_gru() ? states_gates_.as<char>() + rows(place - earliest_, row_) : gates(place);
  }
  // Bytes of so many steps' rows.
  int64_t rows(int64_t steps, int64_t row) const { return steps * p_.batch * row * bytes_; }
  template <class V> auto* at(V* array, int64_t place, int64_t row) const {
    using Byte = std::conditional_t<std::is_const_v<V>, const char, char>;
    return static_cast<Byte*>(array) + rows(place, row);
  }

  void step(int64_t index) {
    const int64_t t = step_at(p_, index);
    const bool is_lstm = p_.cell == RecurrentCell::lstm;
    RecurrentStep s{};
    s.hidden = s.units = p_.hidden;
    s.before = is_lstm ? places_.before(p_.c, p_.c0, index) : places_.before(p_.y, p_.h0, index);
    s.y = places_.in(p_.y, t);
    s.c = places_.in(p_.c, t);
    s.kept = places_.in(p_.kept, t, kept_of(p_));
    s.dy = places_.in(p_.dy, t);
    s.dc = places_.in(p_.dc, t);
    s.dkept = places_.in(p_.dkept, t, kept_of(p_));
    s.dx = gates(t);
    s.dproducts = states_gates(t);
    s.gradient_row = row_;
    s.dh = p_.dh0;
    s.dcell = p_.dc0;
    run_step(p_, cells_of(p_).backward[static_cast<int>(p_.cell)], s);
    states_(states_gates(t), p_.dh0);
  }

  // What the gates of `steps` steps from the `first`-th on give to all else.
  void give(int64_t first, int64_t steps) {
    const int64_t count = steps * p_.batch;
    const char* const sums = gates(earliest_);
    if (p_.dx) (*inputs_)(sums, at(p_.dx, earliest_, p_.in), count);
    if (p_.dweight_ih)
      add_product(sums, width_, count, at(p_.x, earliest_, p_.in), p_.in, has_inputs_,
                  p_.dweight_ih);
    if (p_.dbias) add_rows(sums, width_, count, p_.dbias);
    if (p_.dstate_bias)
      add_rows(states_gates(earliest_) + 2 * p_.hidden * bytes_, p_.hidden, count, p_.dstate_bias);
    has_inputs_ = true;
    if (p_.dweight) give_states(first, steps);
  }
  // The states before the first step are an array of their own.
  void give_states(int64_t first, int64_t steps) {
    const int64_t apart = first == 0, others = steps - apart, h = p_.hidden;
    if (apart) add_states(step_at(p_, 0), 1, p_.h0);
    if (others == 0) return;
    const int64_t place = earliest_ + (apart && !p_.reverse);
    add_states(place, others, at(p_.y, place + (p_.reverse ? 1 : -1), h));
  }
  void add_states(int64_t place, int64_t steps, const void* before) {
    add_product(states_gates(place), width_, steps * p_.batch, before, p_.hidden, has_states_,
                p_.dweight);
    has_states_ = true;
  }
  // (m, n) (+)= sums (count, m) transposed @ x (count, n).
  void add_product(const char* sums, int64_t m, int64_t count, const void* x, int64_t n, bool adds,
                   void* to) {
    MatmulProblem p = product_of(p_.dtype, m, count, n, {x, n, 1}, 1, n);
    p.a_col = row_;
    p.beta = adds;
    p.a = sums;
    p.c = to;
    multiply(p, in_cache_);
  }
  void add_rows(const char* sums, int64_t n, int64_t count, void* to) {
    MatmulProblem p = product_of(p_.dtype, 1, count, n, {sums, row_, 1}, count, n);
    p.beta = has_inputs_;
    p.a = ones_.as<void>();
    p.c = to;
    multiply(p, in_cache_);
  }

  const RecurrentProblem& p_;
  const Places places_{p_};
  const int64_t bytes_, width_, row_;
  const bool in_cache_;
  const int64_t steps_;
  const Scratch gates_, states_gates_, ones_;
  const StateProduct states_;
  std::optional<StateProduct> inputs_;
  int64_t earliest_ = 0;                          // place of the steps at hand
  bool has_inputs_ = false, has_states_ = false;  // whether results hold earlier steps' shares
};

}  // namespace

void recurrent_backward(const RecurrentProblem& p) { Backward(p).run(); }

}  // namespace tw
