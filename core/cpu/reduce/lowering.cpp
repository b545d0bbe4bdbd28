// The kernels of the rows of problems/reductions.inc, and of sums of squares and products.
#include <cmath>
#include <new>
#include <string_view>

#include "core/cpu/isa/families.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/reduce/positions.h"
#include "core/cpu/reduce/reduce.h"
#include "core/cpu/reduce/types.h"
#include "core/problems/reduction_graphs.h"
#include "core/runtime/choice.h"

namespace tw {
namespace {

using std::int64_t;

// Whether other orders of the terms give other bits, and a mode asks for one that does not depend
// on how many results there are.
template <ReduceOp op> bool goes_by_place(const Call& call) {
  const DType in = call.in[0].dtype;
  const bool rounds = is_floating(in) || is_complex(in) || is_floating(call.out[0].dtype);
  return is_additive(op) && rounds && is_batch_invariant();
}
// Strides along axes of one element say nothing: then the axes' places decide, in an operand that
// is row-major.
template <ReduceOp op> std::uint32_t copies(const Call& call) {
  return goes_by_place<op>(call) && !call.in[0].contiguous;
}
// Kept and reduced ones in turn, neighbours as one.
void set_axes_by_place(const Meta& x, std::uint32_t reduced, ReduceProblem& p) {
  const Shape& shape = *x.shape;
  int64_t step = x.count;
  bool begun[2] = {};  // the last axis of either kind goes on
  p.by_place = true;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool is_reduced = reduced >> i & 1;
    if (shape[i] > 0) step /= shape[i];
    if (is_reduced && shape[i] == 1) continue;
    PlainDims& counts = is_reduced ? p.reduced : p.kept;
    PlainDims& strides = is_reduced ? p.reduced_strides : p.kept_strides;
    if (begun[is_reduced]) {
      counts[counts.rank() - 1] *= shape[i];
      strides[counts.rank() - 1] = step;
    } else {
      counts.push_back(shape[i]);
      strides.push_back(step);
    }
    begun[is_reduced] = true;
    begun[!is_reduced] = false;
  }
}

template <ReduceOp op, ReduceFinish finish> void set_up(const Call& call, void* problem) {
  const Meta& x = call.in[0];
  ReduceProblem& p = *new (problem) ReduceProblem;
  p.op = is_floating(x.dtype) ? op : combination_of(op).whole;
  p.finish = finish;
  p.in = x.dtype;
  p.out = call.out[0].dtype;
  const bool by_place = goes_by_place<op>(call);
  if (x.contiguous && call.out[0].count == 1 && x.count > 0 && !by_place) {  // one run
    p.reduced.push_back(x.count);
    p.reduced_strides.push_back(1);
    return;
  }
  const std::uint32_t reduced = is_arg(op) ? call.attributes.axis(0, x.rank(), call.op->name)
                                           : call.attributes.axes(0, x.rank(), call.op->name);
  if (by_place) return set_axes_by_place(x, reduced, p);
  for (int i = 0; i < x.rank(); ++i) {
    const bool is_reduced = reduced >> i & 1;
    (is_reduced ? p.reduced : p.kept).push_back(x.size(i));
    (is_reduced ? p.reduced_strides : p.kept_strides).push_back((*x.strides)[i]);
  }
}
void bind(void* problem, void* const* at) {
  ReduceProblem& p = *static_cast<ReduceProblem*>(problem);
  p.x = at[0];
  p.y = at[1];
}
void bind_squares(void* problem, void* const* at) {
  ReduceProblem& p = *static_cast<ReduceProblem*>(problem);
  p.x = at[0];
  p.centres = at[1];
  p.y = at[2];
}
void bind_products(void* problem, void* const* at) {
  ReduceProblem& p = *static_cast<ReduceProblem*>(problem);
  p.x = at[0];
  p.factors = at[1];
  p.y = at[2];
}
void run_reduce(const void* problem) { reduce(*static_cast<const ReduceProblem*>(problem)); }
double reduce_cost_ns(const void* problem) {
  const auto& p = *static_cast<const ReduceProblem*>(problem);
  constexpr double bytes_per_ns = 16;  // one core reading memory
  return 100 +
         double(p.kept.product()) * double(p.reduced.product()) * size_of(p.in) / bytes_per_ns;
}
const char* refuses_squares(const Call& call) {
  const DType terms = call.in[0].dtype, centres = call.in[1].dtype;
  const bool of_wide = terms == DType::float64 && centres == DType::float64;
  const bool of_single = is_floating(terms) && size_of(terms) <= 4 && centres == DType::float32;
  return of_wide || of_single ? nullptr : "numbers of other types";
}
const char* refuses_products(const Call& call) {
  const Meta &x = call.in[0], &y = call.in[1];
  if (is_batch_invariant())
    return "in a batch-invariant mode operands that broadcast go the same way";
  if (!(*x.shape == *y.shape)) return "operands broadcast";
  if (x.dtype != y.dtype || x.dtype == DType::float16) return "numbers of other types";
  bool without_gaps = x.count <= 1;
  for (int i = 0; i < x.rank(); ++i) {
    if (x.size(i) == 1) continue;
    const int64_t step = (*x.strides)[i];
    if (step != (*y.strides)[i]) return "factors lie otherwise";
    if (step == 0 || step == -1) return "elements repeat or lie backwards";
    without_gaps |= step == 1;
  }
  return without_gaps ? nullptr : "elements lie apart";
}
// Of a row with terms, whose third attribute is the type that they are converted to: loops widen
// floating ones.
const char* refuses(const Call& call) {
  const DType terms = call.in[0].dtype,
              type = call.attributes.none(2) ? terms : call.attributes.dtype(2);
  const bool widens = is_floating(terms) && is_floating(type) && size_of(type) > size_of(terms);
  return type == terms || widens ? nullptr : kOtherType;
}
constexpr char kHelp[] = "rows and columns, fixed blocks added pairwise";

// The rows' ways to finish; null where nothing is left to do.
#define TW_REDUCTION(name, parameters, kinds, outcome, of_none, combination, ending, gradient, \
                     help)                                                                     \
  constexpr ReduceFinish finish_##name =                                                       \
      is_input(formula::graphs_of(ReductionRow::name).finish, reduction_y)                     \
          ? nullptr                                                                            \
          : +[](std::int64_t n, [[maybe_unused]] ReducedCount count, double* results) {        \
              for (std::int64_t i = 0; i < n; ++i) {                                           \
                const double y = results[i];                                                   \
                results[i] = ending;                                                           \
              }                                                                                \
            };
#include "core/problems/reductions.inc"
#undef TW_REDUCTION

}  // namespace

void register_reduce_kernels() {
#define TW_REDUCTION(name, parameters, kinds, outcome, of_none, combination, ending, gradient, \
                     help)                                                                     \
  add_kernel<ReduceProblem>(                                                                   \
      #name, kHelp,                                                                            \
      {.refuses = std::string_view(#parameters) == "terms" ? refuses : nullptr,                \
       .set_up = set_up<ReduceOp::combination, finish_##name>,                                 \
       .bind = bind,                                                                           \
       .cost_ns = reduce_cost_ns,                                                              \
       .run = run_reduce})                                                                     \
      .copies = copies<ReduceOp::combination>;
#include "core/problems/reductions.inc"
#undef TW_REDUCTION
  add_kernel<ReduceProblem>("squares_about", kHelp,
                            {.refuses = refuses_squares,
                             .set_up = set_up<ReduceOp::sum, nullptr>,
                             .bind = bind_squares,
                             .cost_ns = reduce_cost_ns,
                             .run = run_reduce,
                             .contiguous = 2})
      .copies = copies<ReduceOp::sum>;
  add_kernel<ReduceProblem>("sum_of_products", kHelp,
                            {.refuses = refuses_products,
                             .set_up = set_up<ReduceOp::sum, nullptr>,
                             .bind = bind_products,
                             .cost_ns = reduce_cost_ns,
                             .run = run_reduce});
}

}  // namespace tw
