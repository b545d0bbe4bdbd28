// Connectionist temporal classification: the probability of a sequence of labels, of all ways in
// which steps can spell it. Source: A. Graves et al., "Connectionist temporal classification", ICML
// 2006.
#include <algorithm>
#include <limits>

#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/move/join.h"
#include "core/ops/losses/loss_reduction.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/move/scatter.h"
#include "core/ops/shape/view.h"

namespace tw {
namespace {

using std::int64_t;

// ---- in other ops ----

// log(0), but with gradients; less than any log-probability of a path.
constexpr double kNever = -1e30;

struct Paths {
  Tensor labels;   // (batch, states): blanks and targets in turn
  Tensor emitted;  // (batch, steps, states): the log-probability of each state's label
  Tensor skips;    // (batch, states): whether a state may follow the one two before it
  Tensor steps;    // (batch, 1): input lengths
  Tensor last;     // (batch, 1): the last state, a blank
  Tensor place;    // (1, states)
  int64_t length() const { return emitted.size(1); }
  Tensor at(int64_t step) const {
    const Range ranges[] = {{0, 1, emitted.size(0)}, {step, 1, 1}, {0, 1, emitted.size(2)}};
    return slice(emitted, ranges, 2);
  }
};

// States later or earlier by `by`; what comes in can never be.
Tensor moved(const Tensor& x, int64_t by) {
  const int64_t states = x.size(1), size = by < 0 ? -by : by;
  const Tensor never = full({x.size(0), std::min(size, states)}, kNever, x.dtype());
  if (size >= states) return never;
  const Range rows = {0, 1, x.size(0)};
  const Range ranges[] = {rows, {by < 0 ? size : 0, 1, states - size}};
  const Tensor kept = slice(x, ranges);
  return by < 0 ? concat({kept, never}, 1) : concat({never, kept}, 1);
}

// Operands: log_probs (steps, batch, classes), targets, input and target lengths. Attribute: blank.
Paths paths_of(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
               const Tensor& target_lengths, Attribute blank) {
  Paths p;
  const int64_t steps = log_probs.size(0), batch = log_probs.size(1), length = targets.size(1);
  const Tensor blanks = full({batch, length, 1}, Scalar(blank), DType::int64);
  const Tensor pairs = reshape(concat({blanks, expand_dims(targets, 2)}, 2), {batch, 2 * length});
  p.labels = concat({pairs, full({batch, 1}, Scalar(blank), DType::int64)}, 1);
  const int64_t states = 2 * length + 1;
  p.place = reshape(arange(0, Scalar(states), 1, DType::int64), {1, states});
  const Tensor index = broadcast_to(expand_dims(p.labels, 1), {batch, steps, states});
  p.emitted = maximum(
      gather_along(permute_dims(log_probs, {1, 0, 2}), contiguous(index), 2, AlongUser::gather),
      kNever);
  const Range rows = {0, 1, batch};
  const Range front[] = {rows, {0, 1, std::max<int64_t>(states - 2, 0)}};
  const Range behind[] = {rows,
                          {std::min<int64_t>(2, states), 1, std::max<int64_t>(states - 2, 0)}};
  const Tensor differs = not_equal(slice(p.labels, behind), slice(p.labels, front));
  p.skips = concat({full({batch, std::min<int64_t>(2, states)}, false, DType::bool_), differs}, 1) &
            equal(remainder(p.place, 2), 1);
  p.steps = expand_dims(input_lengths, 1);
  p.last = expand_dims(target_lengths, 1) * 2;
  return p;
}

// Where paths may begin, or end: the first or last two states, one where there is one alone.
Tensor begins(const Paths& p) { return less_equal(p.place, 1) & less_equal(p.place, p.last); }
Tensor ends(const Paths& p) {
  return less_equal(p.place, p.last) & greater_equal(p.place, p.last - 1);
}

// The log-probability of all beginnings of paths that are in a state, by step.
std::vector<Tensor> forward(const Paths& p) {
  std::vector<Tensor> found;
  for (int64_t t = 0; t < p.length(); ++t) {
    if (t == 0) {
      found.push_back(where(begins(p), p.at(0), kNever));
      continue;
    }
    const Tensor& before = found.back();
    const Tensor near = logaddexp(before, moved(before, 1));
    const Tensor all = logaddexp(near, where(p.skips, moved(before, 2), kNever));
    found.push_back(where(greater(p.steps, Scalar(t)), all + p.at(t), before));
  }
  return found;
}
// That of all ends of paths, from a state on and with it.
std::vector<Tensor> backward(const Paths& p) {
  std::vector<Tensor> found(static_cast<std::size_t>(p.length()));
  // A state may be skipped from two before it.
  const Tensor skipped = moved(where(p.skips, Operand(0.0), Operand(kNever)), -2);
  for (int64_t t = p.length() - 1; t >= 0; --t) {
    const Tensor here = p.at(t);
    Tensor y = where(ends(p), here, kNever);
    if (t + 1 < p.length()) {
      const Tensor& behind = found[static_cast<std::size_t>(t + 1)];
      const Tensor near = logaddexp(behind, moved(behind, -1));
      const Tensor far = where(less(skipped, 0), kNever, moved(behind, -2));
      const Tensor all = logaddexp(near, far) + here;
      y = where(equal(p.steps, Scalar(t + 1)), y, where(greater(p.steps, Scalar(t)), all, kNever));
    }
    found[static_cast<std::size_t>(t)] = y;
  }
  return found;
}

// (batch,): -log of the probability of all paths.
Tensor losses_of(const Paths& p, const Tensor& last) {
  const Tensor none = equal(p.steps, 0);
  const Tensor at_end = where(ends(p) & logical_not(none), last, kNever);
  const Tensor empty = where(none & equal(p.last, 0) & equal(p.place, 0), 0.0, at_end);
  const Tensor y = -logsumexp(empty, Axes{1}, false);
  return where(greater(y, -kNever / 10), std::numeric_limits<double>::infinity(), y);
}

void terms_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  const Paths p =
      paths_of(x, use.in[1].tensor, use.in[2].tensor, use.in[3].tensor, use.attributes[0]);
  std::vector<Tensor> found = forward(p);
  for (Tensor& each : found) each = expand_dims(each, 1);
  const int64_t batch = x.size(1), states = 2 * use.in[1].tensor.size(1) + 1;
  if (found.empty()) {
    out[1] = full({batch, 0, states}, 0.0, x.dtype());
    out[0] = losses_of(p, full({batch, states}, kNever, x.dtype()));
    return;
  }
  out[0] = losses_of(p, squeeze(found.back(), {1}));
  const Tensor all = concat(found, 1);
  out[1] = where(less(all, kNever / 10), -std::numeric_limits<double>::infinity(), all);
}

// Operands: g, then those and the results of ctc_terms; the results are found again, so that all
// that this is made of is in the graph.
void terms_backward_body(const Use& use, Tensor* out) {
  const Tensor &g = use.in[0].tensor, &x = use.in[1].tensor;
  const int64_t batch = x.size(1);
  const Paths p =
      paths_of(x, use.in[2].tensor, use.in[3].tensor, use.in[4].tensor, use.attributes[0]);
  const std::vector<Tensor> before = forward(p), behind = backward(p);
  if (before.empty()) {
    out[0] = full(x.shape(), 0.0, x.dtype());
    return;
  }
  const Tensor losses = expand_dims(losses_of(p, before.back()), 1);
  const Tensor possible = less(losses, -kNever / 10);
  const Tensor finite = where(possible, losses, 0.0);
  const Tensor column = expand_dims(g, 1);
  std::vector<Tensor> shares;
  for (int64_t t = 0; t < p.length(); ++t) {
    const auto i = static_cast<std::size_t>(t);
    const Tensor sum = before[i] + behind[i];
    const Tensor counts = possible & greater(p.steps, Scalar(t)) & greater(sum, kNever / 10);
    const Tensor log_share = where(counts, sum - p.at(t) + finite, kNever);
    shares.push_back(expand_dims(-exp(log_share) * column, 1));
  }
  const Tensor share = concat(shares, 1);
  const Tensor index = contiguous(broadcast_to(expand_dims(p.labels, 1), share.shape()));
  const Tensor zero = full({batch, p.length(), x.size(2)}, 0.0, x.dtype());
  out[0] =
      permute_dims(scatter_add_along(zero, index, share, 2, AlongUser::scatter_add), {1, 0, 2});
}

// ---- ctc_loss ----

Tensor lengths_of(const Use& use, int operand, int64_t batch, bool batched) {
  const Tensor& x = use.in[operand].tensor;
  const char* const name = operand == 2 ? "input_lengths" : "target_lengths";
  if (!is_integer(x.dtype()))
    fail(ErrorKind::type, "ctc_loss: ", name, " must be integers, got ", name_of(x.dtype()));
  if (!(x.rank() == 1 && x.size(0) == batch) && !(x.rank() == 0 && !batched))
    fail(ErrorKind::value, "ctc_loss: ", name, " ", x.shape(), " for a batch of ", batch);
  const Tensor wide = astype(x, DType::int64);
  return x.rank() ? wide : reshape(wide, {1});
}

// Attributes: blank, reduction, zero_infinity.
void ctc_loss_body(const Use& use, Tensor* out) {
  const Tensor &x = use.in[0].tensor, &targets = use.in[1].tensor;
  const bool batched = x.rank() == 3;
  if (x.rank() != 2 && x.rank() != 3)
    fail(ErrorKind::value,
         "ctc_loss: log_probs must be (steps, batch, classes), or (steps, "
         "classes) without a batch, got ",
         x.shape());
  if (!is_floating(x.dtype()))
    fail(ErrorKind::type, "ctc_loss: log_probs must be floating-point, got ", name_of(x.dtype()));
  if (!is_integer(targets.dtype()))
    fail(ErrorKind::type, "ctc_loss: targets must be integers, got ", name_of(targets.dtype()));
  const Tensor wide = astype(x, working_dtype(x.dtype()));
  const Tensor log_probs = batched ? wide : expand_dims(wide, 1);
  const int64_t steps = log_probs.size(0), batch = log_probs.size(1), classes = log_probs.size(2);
  const Tensor labels = astype(batched ? targets : expand_dims(targets, 0), DType::int64);
  if (labels.rank() != 2 || labels.size(0) != batch)
    fail(ErrorKind::value, "ctc_loss: targets ", targets.shape(), " for log_probs ", x.shape(),
         ": expected (batch, labels), padded to one length");
  if (use.attributes[0] < 0 || use.attributes[0] >= classes)
    fail(ErrorKind::value, "ctc_loss: blank ", use.attributes[0], " is no class of ", classes);
  const Tensor input_lengths = lengths_of(use, 2, batch, batched);
  const Tensor target_lengths = lengths_of(use, 3, batch, batched);
  AttributeList sizes(3);
  sizes.set(0, steps).set(1, classes).set(2, use.attributes[0]);
  const Tensor checked = apply(kCtcTargets, {labels, input_lengths, target_lengths}, sizes);
  Tensor made[2];
  const Operand in[] = {log_probs, checked, input_lengths, target_lengths};
  apply(kCtcTerms, in, 4, AttributeList(1).set(0, use.attributes[0]), made);
  Tensor losses = made[0];
  if (use.attributes.flag(2)) losses = where(isinf(losses), 0.0, losses);
  const auto reduction = static_cast<Reduction>(use.attributes[1]);
  if (reduction == Reduction::mean)
    losses = mean(losses / astype(maximum(target_lengths, 1), losses.dtype()), {}, false);
  else if (reduction == Reduction::sum)
    losses = sum(losses, {}, false);
  else if (!batched)
    losses = reshape(losses, {});
  out[0] = astype(losses, x.dtype());
}

}  // namespace

constexpr OpRecord kCtcTargets = {
    .name = "ctc_targets",
    .signature =
        "(targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, steps: int, classes: "
        "int, blank: int) -> Tensor",
    .help = "Targets with blanks behind their lengths, once all of them are in range.",
    .flags = kConstant,
    .infer = [](Call&, Result* results) {
      results[0].like = 0;
      results[0].dtype = DType::int64;
    }};
constexpr OpRecord kCtcTerms = {
    .name = "ctc_terms",
    .signature =
        "(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, "
        "blank: int) -> Tensor",
    .help = "-log of the probability of each sequence of targets; and that of all beginnings.",
    .results = 2,
    .infer =
        [](Call& call, Result* results) {
          const Meta &x = call.in[0], &targets = call.in[1];
          results[0].shape = {x.size(1)};
          results[1].shape = {x.size(1), x.size(0), 2 * targets.size(1) + 1};
          results[0].dtype = results[1].dtype = x.dtype;
        },
    .body = terms_body,
    .vjp =
        [](Vjp& v) {
          v.give(0, kCtcTermsBackward,
                 {v.g(), v.in(0), v.in(1), v.in(2), v.in(3), v.out(0), v.out(1)}, v.attributes());
        },
    .reads = {{.inputs = 15, .results = 3}}};
constexpr OpRecord kCtcTermsBackward = {
    .name = "ctc_terms_backward",
    .signature =
        "(g: Tensor, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: "
        "Tensor, losses: Tensor, beginnings: Tensor, blank: int) -> Tensor",
    .help = "The gradient of ctc_terms.",
    .infer =
        [](Call& call, Result* results) {
          results[0].like = 1;
          results[0].dtype = call.in[1].dtype;
        },
    .body = terms_backward_body};

constexpr OpRecord kCtcLoss = {
    .name = "ctc_loss",
    .signature =
        "(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, "
        "blank: int = 0, reduction: 'mean' | 'sum' | 'none' = 'mean', zero_infinity: bool = False) "
        "-> Tensor",
    .help =
        "-log of the probability of sequences of labels under log_probs (steps, batch, classes), "
        "summed over all ways to spread the labels over the steps with blanks between them (Graves "
        "et al., 2006).\n"
        "targets are (batch, labels), of which target_lengths (batch,) count, as input_lengths "
        "(batch,) of the steps do; without a batch, (steps, classes), (labels,) and (). 'mean' "
        "divides each by its number of labels first. What no path spells costs inf, or 0 with "
        "zero_infinity, and has no gradient. Raises ValueError for lengths, labels and shapes that "
        "do not fit.\n"
        "Shapes: log_probs (steps, batch, classes), targets (batch, labels), lengths (batch,); the "
        "result is (), or (batch,) for 'none'.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.ctc_loss.",
    .flags = kFunction,
    .body = ctc_loss_body,
    .autocast = Autocast::wide};

}  // namespace tw
