// Scaled dot-product attention and its gradient: one launch forward, two backward.
#include <cmath>
#include <new>

#include "core/cuda/gpu/axes.h"
#include "core/cuda/gpu/families.h"
#include "core/cuda/gpu/add_kernel.h"
#include "core/cuda/sequence/attention/attention_parameters.h"
#include "core/cuda/gpu/rates.h"

namespace tw::cuda {

namespace {

using std::int64_t;

using Parameter = Attention;
struct Problem {
  Parameter parameter;
  DType dtype;
  int mask;  // a TW_MASK
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
  p.mask = mask.absent ? TW_MASK_NONE : is_bool(mask.dtype) ? TW_MASK_BOOL : TW_MASK_ADDED;
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
  a.causal = call.attributes.flag(0);
  a.scale = call.attributes.real(1);
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

Grid grid_of(const Problem& p, int64_t rows, int64_t tile, int64_t pieces, unsigned threads) {
  Grid grid;
  grid.blocks[0] = static_cast<unsigned>(p.heads * divide_up(rows, tile));
  grid.blocks[1] = static_cast<unsigned>(std::max<int64_t>(1, pieces));
  grid.threads = threads;
  return grid;
}
std::string settings_of(const Problem& p) {
  return define("TW_IN", type_name(p.dtype)) +
         define("TW_TYPE", type_name(compute_dtype(p.dtype))) +
         define("TW_MASK", std::to_string(p.mask));
}

// ---- blocks: multiply-adds of any type ----

// A block for each head, tile of `rows` and piece of `columns`. `wide`: columns that a thread
// holds; more cost registers, fewer mean that scores are made more than once.
void launch(const Problem& p, const char* kernel, int64_t rows, int64_t columns, int wide) {
  const int tile = blocks_tile(static_cast<int>(size_of(compute_dtype(p.dtype))));
  if (p.heads * rows == 0) return;
  const std::uint64_t key =
      (static_cast<std::uint64_t>(p.dtype) * 4 + static_cast<std::uint64_t>(p.mask)) * 16 +
      static_cast<std::uint64_t>(wide);
  const Function function = kernel_of(kernel, key, "attention.cuh", kernel, [&] {
    return settings_of(p) + define("TW_WIDE", std::to_string(wide));
  });
  Gpu::current().launch(
      function, grid_of(p, rows, tile, divide_up(columns, blocks_columns(wide)), kBlockThreads),
      &p.parameter);
}
int wide_for(const Problem& p, int64_t columns) {
  return p.dtype == DType::float64 || columns <= 64 ? 4 : 8;
}

constexpr char kForward[] = "attention", kBackward[] = "attention_backward",
               kQueries[] = "attention_queries_backward", kKeys[] = "attention_keys_backward";
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

// ---- tensor cores: 16-bit operands whose rows are copied 16 bytes at a time ----

// Columns as kernels are compiled for them.
int padded(int64_t columns) {
  return columns > kMostAttentionPiece
             ? kMostAttentionColumns
             : static_cast<int>(divide_up(std::max<int64_t>(columns, 1), 16) * 16);
}
int forward_bytes(const Parameter& a, int high) {
  return attention_forward_bytes(high, padded(a.size), padded(a.value_size));
}
// Of the keys' pass, which needs more than that of queries.
int backward_bytes(const Parameter& a) {
  return attention_backward_bytes(1, padded(a.size), padded(a.value_size));
}

// Rows and heads on multiples of 16 bytes.
bool is_whole(const Parameter& a, int which) {
  bool fits = a.row[which] % 8 == 0;
  for (int axis = 0; axis < a.heads.rank; ++axis)
    fits = fits && (a.heads.extent[axis] == 1 || a.strides[which].stride[axis] % 8 == 0);
  return fits;
}
const char* why_not_tensor(const Problem& p, int64_t bytes) {
  constexpr int64_t kMostRows = int64_t{1} << 30;
  const Parameter& a = p.parameter;
  const GpuFacts& facts = Gpu::current().facts;
  if (size_of(p.dtype) != 2) return "for bfloat16 and float16";
  if (facts.capability < 80) return "for compute capability 8.0 and later";
  if (a.size > kMostAttentionColumns || a.value_size > kMostAttentionColumns)
    return "heads have more than 256 columns";
  if (a.size % 8 || a.value_size % 8 || !is_whole(a, kQ) || !is_whole(a, kK) || !is_whole(a, kV) ||
      !is_whole(a, kG))
    return "an operand's rows are not a multiple of 16 bytes apart";
  if (a.queries >= kMostRows || a.keys >= kMostRows) return "there are too many rows";
  // The largest product is that of the largest score.
  if (!(a.scale > 1e-30 && a.scale < 1e30)) return "the scale is not positive, or extreme";
  if (bytes > facts.shared_bytes) return "tiles do not fit into shared memory";
  return nullptr;
}
bool accepts(const char* why, std::string* reason) {
  if (why && reason) *reason = why;
  return !why;
}
template <int high> bool accepts_forward(const void* problem, std::string* reason) {
  const Problem& p = *static_cast<const Problem*>(problem);
  const char* why = why_not_tensor(p, forward_bytes(p.parameter, high));
  if (!why && p.mask && high == 2) why = "a mask's addresses leave too few registers";
  return accepts(why, reason);
}
bool accepts_backward(const void* problem, std::string* reason) {
  const Problem& p = *static_cast<const Problem*>(problem);
  return accepts(why_not_tensor(p, backward_bytes(p.parameter)), reason);
}
// Addresses are known when a kernel runs; views that begin elsewhere are few.
bool is_on_16_bytes(const Parameter& a) {
  for (const void* at : {a.q, a.k, a.v, a.g, a.out})
    if (reinterpret_cast<std::uintptr_t>(at) % 16) return false;
  return true;
}

// `high`: 16 rows of a warp, or twice as many.
void launch_tensor(const Problem& p, const char* file, const char* kernel, int64_t rows,
                   int64_t pieces, int high, int bytes) {
  if (p.heads * rows == 0) return;
  const int size = padded(p.parameter.size), values = padded(p.parameter.value_size);
  std::uint64_t key = static_cast<std::uint64_t>(p.dtype) * 4 + static_cast<std::uint64_t>(p.mask);
  for (const int each : {size, values, high}) key = key * 512 + static_cast<std::uint64_t>(each);
  const Function function = kernel_of(kernel, key, file, kernel, [&] {
    return settings_of(p) + define("TW_KIND", tensor_core_kind(p.dtype)) +
           define("TW_SIZE", std::to_string(size)) + define("TW_VALUES", std::to_string(values)) +
           define("TW_HIGH", std::to_string(high));
  });
  Grid grid = grid_of(p, rows, attention_rows(high), pieces, kAttentionThreads);
  grid.shared_bytes = static_cast<unsigned>(bytes);
  Gpu::current().launch(function, grid, &p.parameter);
}

constexpr char kTensor[] = "attention_tensor",
               kTensorQueries[] = "attention_tensor_queries_backward",
               kTensorKeys[] = "attention_tensor_keys_backward";
template <int high> void run_tensor_forward(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  const Parameter& a = p.parameter;
  if (!is_on_16_bytes(a)) return run_forward(problem);
  launch_tensor(p, "attention/forward.cuh", kTensor, a.queries,
                divide_up(a.value_size, kMostAttentionPiece), high, forward_bytes(a, high));
}
void run_tensor_backward(const void* problem) {
  Problem p = *static_cast<const Problem*>(problem);
  Parameter& a = p.parameter;
  if (!is_on_16_bytes(a)) return run_backward(problem);
  const Room slopes(std::max<int64_t>(1, p.heads * a.queries) * int64_t{sizeof(float)});
  a.slopes = static_cast<float*>(slopes.at());
  const int bytes = backward_bytes(a);
  launch_tensor(p, "attention/backward.cuh", kTensorQueries, a.queries,
                divide_up(a.size, kMostAttentionPiece), 1, bytes);
  launch_tensor(p, "attention/backward.cuh", kTensorKeys, a.keys,
                divide_up(std::max(a.size, a.value_size), kMostAttentionPiece), 1, bytes);
}

// Beside "blocks", which has no estimate: whatever these accept is theirs.
template <int high> double tensor_forward_ns(const void* problem) {
  constexpr int queries = attention_rows(high);
  const Problem& p = *static_cast<const Problem*>(problem);
  const Parameter& a = p.parameter;
  const double columns =
      static_cast<double>(a.size * divide_up(a.value_size, kMostAttentionPiece) + a.value_size);
  // With 16 rows a warp, operands come from shared memory twice as often for each product.
  const double rate = rates().warps * (high == 2 ? 0.6 : 0.45) * (a.causal ? 2 : 1);
  return waves_ns(static_cast<double>(p.heads * divide_up(a.queries, queries)),
                  queries * static_cast<double>(a.keys) * columns, rate);
}
// The only one of its kind.
double tensor_backward_ns(const void*) { return rates().launch_ns; }

}  // namespace

void register_attention_kernels() {
  add_kernel<Problem>(
      kForward, "a tile of queries a block, scores in registers",
      {.refuses = refuses, .set_up = set_up, .bind = bind_forward, .run = run_forward})
      .copies = copies;
  register_kernel(new Kernel{.op = kForward,
                             .name = "tensor64",
                             .device = "cuda",
                             .precision = Precision::ieee,
                             .help = "16 bits on tensor cores, 64 queries a block",
                             .accepts = accepts_forward<1>,
                             .cost_ns = tensor_forward_ns<1>,
                             .run = run_tensor_forward<1>});
  register_kernel(new Kernel{.op = kForward,
                             .name = "tensor128",
                             .device = "cuda",
                             .precision = Precision::ieee,
                             .help = "16 bits on tensor cores, 128 queries a block",
                             .accepts = accepts_forward<2>,
                             .cost_ns = tensor_forward_ns<2>,
                             .run = run_tensor_forward<2>});
  add_kernel<Problem>(kBackward, "weights again from the log-sums: by queries, then by keys",
                      {.refuses = refuses,
                       .set_up = set_up,
                       .bind = bind_backward,
                       .run = run_backward,
                       .contiguous = 3 << 4})
      .copies = copies;
  register_kernel(new Kernel{.op = kBackward,
                             .name = "tensor",
                             .device = "cuda",
                             .precision = Precision::ieee,
                             .help = "the same of 16 bits on tensor cores",
                             .accepts = accepts_backward,
                             .cost_ns = tensor_backward_ns,
                             .run = run_tensor_backward});
}

}  // namespace tw::cuda
