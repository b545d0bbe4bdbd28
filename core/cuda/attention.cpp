// Scaled dot-product attention and its gradient: one launch forward, two backward.
#include <new>

#include "core/cuda/axes.h"
#include "core/cuda/families.h"
#include "core/cuda/lowering.h"

namespace tw::cuda {

namespace {

using std::int64_t;

// Operands that heads walk over; g is the last of a backward call.
enum Walked { kQ, kK, kV, kG, kMask, kWalked };

// The parameter of kernels/attention.cuh.
struct Parameter {
  int64_t queries, keys, size, value_size;
  int64_t row[kG + 1], mask_row, mask_column;
  double scale;
  int64_t causal;
  Extents heads;
  Strides strides[kWalked];
  const void *q, *k, *v, *mask, *out, *log_sums, *g;
  void *y, *y_log_sums, *dq, *dk, *dv;
};
struct Problem {
  Parameter parameter;
  DType dtype;
  int mask;  // 0: none, 1: bool, 2: added
  int64_t heads;
};

const Meta* operand_of(const Call& call, int which) {
  if (which == kG) return call.inputs > 4 ? &call.in[6] : nullptr;
  const int at = which == kMask ? 3 : which;
  return call.in[at].absent ? nullptr : &call.in[at];
}

// False where kernels do not take so many axes.
bool walk_heads(const Call& call, Axes<kWalked>& axes) {
  bool fits = true;
  for (int axis = 0; axis < call.in[0].rank() - 2; ++axis) {
    int64_t steps[kWalked];
    for (int which = 0; which < kWalked; ++which) {
      const Meta* x = operand_of(call, which);
      steps[which] = x ? (*x->strides)[axis] : 0;
    }
    fits = fits && axes.push(call.in[0].size(axis), steps);
  }
  axes.finish();
  return fits;
}
const char* refuses(const Call& call) {
  Axes<kWalked> axes(kWalked);
  return walk_heads(call, axes) ? nullptr : "too many axes that do not merge";
}
// Rows of these are read without gaps between elements.
std::uint32_t copies(const Call& call) {
  std::uint32_t copied = 0;
  for (const int i : {0, 1, 2, 6})
    if (i < call.inputs && call.in[i].size(call.in[i].rank() - 1) > 1 &&
        (*call.in[i].strides)[call.in[i].rank() - 1] != 1)
      copied |= 1u << i;
  return copied;
}

void set_up(const Call& call, void* problem) {
  Problem& p = *new (problem) Problem{};
  const Meta &q = call.in[0], &k = call.in[1], &mask = call.in[3];
  const int batch = q.rank() - 2;
  p.dtype = q.dtype;
  p.mask = mask.absent ? 0 : is_bool(mask.dtype) ? 1 : 2;
  p.heads = 1;
  for (int i = 0; i < batch; ++i) p.heads *= q.size(i);
  Axes<kWalked> axes(kWalked);
  walk_heads(call, axes);
  Parameter& a = p.parameter;
  a.heads = axes.extents;
  for (int which = 0; which < kWalked; ++which) a.strides[which] = axes.strides[which];
  a.queries = q.size(batch);
  a.keys = k.size(batch);
  a.size = q.size(batch + 1);
  a.value_size = call.in[2].size(batch + 1);
  for (int which = 0; which <= kG; ++which)
    if (const Meta* x = operand_of(call, which)) a.row[which] = (*x->strides)[batch];
  a.mask_row = mask.absent ? 0 : (*mask.strides)[batch];
  a.mask_column = mask.absent ? 0 : (*mask.strides)[batch + 1];
  a.causal = call.words.flag(0);
  a.scale = call.words.real(1);
}
Parameter& bind_operands(void* problem, void* const* at) {
  Parameter& a = static_cast<Problem*>(problem)->parameter;
  a.q = at[0];
  a.k = at[1];
  a.v = at[2];
  a.mask = at[3];
  return a;
}
void bind_forward(void* problem, void* const* at) {
  Parameter& a = bind_operands(problem, at);
  a.y = at[4];
  a.y_log_sums = at[5];
}
void bind_backward(void* problem, void* const* at) {
  Parameter& a = bind_operands(problem, at);
  a.out = at[4];
  a.log_sums = at[5];
  a.g = at[6];
  a.dq = at[7];
  a.dk = at[8];
  a.dv = at[9];
}

// A block for each head, tile of `rows` and piece of `columns`. `wide`: columns that a thread
// holds; more cost registers, fewer mean that scores are made more than once.
void launch(const Problem& p, const char* kernel, int64_t rows, int64_t columns, int wide) {
  const bool is_double = p.dtype == DType::float64;
  const int64_t tile = is_double ? 32 : 64;  // kTile
  if (p.heads * rows == 0) return;
  const std::uint64_t key =
      (static_cast<std::uint64_t>(p.dtype) * 4 + static_cast<std::uint64_t>(p.mask)) * 16 +
      static_cast<std::uint64_t>(wide);
  const Function function = kernel_of(kernel, key, "attention.cuh", kernel, [&] {
    return define("TW_IN", type_name(p.dtype)) +
           define("TW_TYPE", type_name(compute_dtype(p.dtype))) +
           define("TW_MASK", std::to_string(p.mask)) + define("TW_WIDE", std::to_string(wide));
  });
  Grid grid;
  grid.blocks[0] = static_cast<unsigned>(p.heads * divide_up(rows, tile));
  grid.blocks[1] = static_cast<unsigned>(std::max<int64_t>(1, divide_up(columns, 16 * wide)));
  grid.threads = 256;
  Gpu::current().launch(function, grid, &p.parameter);
}
int wide_for(const Problem& p, int64_t columns) {
  return p.dtype == DType::float64 || columns <= 64 ? 4 : 8;
}

constexpr char kForward[] = "attention", kQueries[] = "attention_queries_backward",
               kKeys[] = "attention_keys_backward";
void run_forward(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  const Parameter& a = p.parameter;
  launch(p, kForward, a.queries, a.value_size, wide_for(p, a.value_size));
}
void run_backward(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  const Parameter& a = p.parameter;
  launch(p, kQueries, a.queries, a.size, wide_for(p, a.size));
  launch(p, kKeys, a.keys, std::max(a.size, a.value_size), 4);
}

}  // namespace

void register_attention_kernels() {
  add_kernel<Problem>(kForward, "a tile of queries a block, scores in registers", refuses, set_up,
                      bind_forward, run_forward)
      .copies = copies;
  add_kernel<Problem>("attention_backward",
                      "weights again from the log-sums: by queries, then by keys", refuses, set_up,
                      bind_backward, run_backward, 3 << 4)
      .copies = copies;
}

}  // namespace tw::cuda
