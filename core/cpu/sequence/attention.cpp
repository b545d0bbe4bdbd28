// From calls of attention and its gradient to heads, which threads share: blocks of queries
// forward, whole heads backward, where keys and values gather from all queries. With a cache, the
// heads of its memory.
#include "core/cpu/sequence/attention.h"

#include <cmath>
#include <cstring>
#include <new>

#include "core/base/thresholds.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/problems/axes.h"
#include "core/memory/scratch.h"
#include "core/problems/key_value_cache.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

enum Operands { kQ, kK, kV, kMask, kG, kWalked };
static_assert(kWalked == AttentionProblem::kOperands);
using Problem = AttentionProblem;
using Walk = AttentionWalk;

const AttentionLoops& loops_of(DType dtype) {
  const AttentionTable& table = *active_kernels().attention;
  return dtype == DType::float64 ? table.float64 : table.float32;
}

// ---- calls ----

// Where the operands stand in a call: g is the last of a backward call.
const Meta* operand_of(const Call& call, int which) {
  if (which == kG) return call.inputs > 4 ? &call.in[6] : nullptr;
  return call.in[which].absent ? nullptr : &call.in[which];
}

// The axes in front of the matrices, with the operands' steps in elements.
struct HeadAxes {
  int rank;
  int64_t extent[kMaxRank], stride[kWalked][kMaxRank];

  explicit HeadAxes(const Call& call) {
    OperandAxes axes{0, kWalked, extent,
                     [this](int k, int axis) -> int64_t& { return stride[k][axis]; }};
    for (int axis = 0; axis < call.in[0].rank() - 2; ++axis) {
      int64_t steps[kWalked];
      for (int which = 0; which < kWalked; ++which) {
        const Meta* x = operand_of(call, which);
        steps[which] = x ? (*x->strides)[axis] : 0;
      }
      axes.push(call.in[0].size(axis), steps);
    }
    rank = axes.rank;
  }
};

const char* refuses(const Call& call) {
  const DType dtype = call.in[0].dtype;
  if (dtype != DType::float32 && dtype != DType::float64) return kTooNarrow;
  return HeadAxes(call).rank > kAttentionAxes ? "too many axes that do not merge" : nullptr;
}

// Rows of these must be without gaps between elements.
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
  const int rank = q.rank(), batch = rank - 2;
  p.shape = {.dtype = q.dtype,
             .queries = q.size(batch),
             .keys = k.size(batch),
             .size = q.size(batch + 1),
             .value_size = call.in[2].size(batch + 1),
             .mask_row = mask.absent ? 0 : (*mask.strides)[batch],
             .mask_column = mask.absent ? 0 : (*mask.strides)[batch + 1],
             .bool_mask = !mask.absent && is_bool(mask.dtype),
             .has_mask = !mask.absent,
             .causal = call.attributes.flag(0),
             .scale = call.attributes.real(1)};
  const HeadAxes axes(call);
  p.axes = axes.rank;
  p.heads = 1;
  for (int axis = 0; axis < axes.rank; ++axis) {
    p.extent[axis] = axes.extent[axis];
    p.heads *= axes.extent[axis];
    for (int which = 0; which < kWalked; ++which)
      if (const Meta* x = operand_of(call, which))
        p.in[which].stride[axis] = axes.stride[which][axis] * int64_t(size_of(x->dtype));
  }
  for (int which = 0; which < kWalked; ++which)
    if (const Meta* x = operand_of(call, which)) p.in[which].row = (*x->strides)[batch];
}
void bind_operands(Problem& p, void* const* at) {
  for (int i = kQ; i <= kMask; ++i) p.in[i].at = static_cast<const char*>(at[i]);
}
void bind_forward(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  bind_operands(p, at);
  p.y = static_cast<char*>(at[4]);
  p.y_log_sums = static_cast<char*>(at[5]);
}
void bind_backward(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  bind_operands(p, at);
  p.out = static_cast<const char*>(at[4]);
  p.log_sums = static_cast<const char*>(at[5]);
  p.in[kG].at = static_cast<const char*>(at[6]);
  p.dq = static_cast<char*>(at[7]);
  p.dk = static_cast<char*>(at[8]);
  p.dv = static_cast<char*>(at[9]);
}

// ---- runs ----

}  // namespace

AttentionHead head_of(const Problem& p, int64_t head) {
  int64_t offset[kWalked] = {};
  int64_t rest = head;
  for (int axis = p.axes - 1; axis >= 0; --axis) {
    const int64_t i = rest % p.extent[axis];
    rest /= p.extent[axis];
    for (int which = 0; which < kWalked; ++which) offset[which] += i * p.in[which].stride[axis];
  }
  const auto rows = [&](int which) {
    const Walk& walk = p.in[which];
    return AttentionRows{walk.at ? walk.at + offset[which] : nullptr, walk.row};
  };
  const AttentionShape& s = p.shape;
  const auto bytes = static_cast<int64_t>(size_of(s.dtype));
  const auto at = [&](auto* first, int64_t elements) {
    return first ? first + head * elements * bytes : nullptr;
  };
  return {.q = rows(kQ),
          .k = rows(kK),
          .v = rows(kV),
          .g = rows(kG),
          .mask = rows(kMask).at,
          .out = at(p.out, s.queries * s.value_size),
          .log_sums = at(p.log_sums, 2 * s.queries),
          .y = at(p.y, s.queries * s.value_size),
          .y_log_sums = at(p.y_log_sums, 2 * s.queries),
          .dq = at(p.dq, s.queries * s.size),
          .dk = at(p.dk, s.keys * s.size),
          .dv = at(p.dv, s.keys * s.value_size)};
}

namespace {

// Transposed queries (and gradients), `blocks` of scores, and a mask as it is read and transposed.
std::size_t scratch_bytes(const AttentionShape& s, int64_t sizes, int64_t blocks, int64_t keys) {
  const int64_t columns = sizes + (blocks + (s.has_mask ? 2 : 0)) * keys;
  return static_cast<std::size_t>(columns * kAttentionQueries) * size_of(s.dtype);
}

void run_forward(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  const AttentionShape& s = p.shape;
  const AttentionLoops& loops = loops_of(s.dtype);
  if (s.queries < thresholds::kFewQueries) {
    const int64_t terms = s.queries * s.keys * (s.size + s.value_size) + 1;
    const int64_t together = thresholds::kWeightGrain / terms + 1;
    return parallel_ranges(p.heads, together, [&](int64_t begin, int64_t end) {
      const Scratch scratch(static_cast<std::size_t>(s.keys) * size_of(s.dtype));
      for (int64_t i = begin; i < end; ++i) loops.forward_few(s, head_of(p, i), scratch.as<void>());
    });
  }
  const int64_t blocks = (s.queries + kAttentionQueries - 1) / kAttentionQueries;
  parallel_ranges(p.heads * blocks, 1, [&](int64_t begin, int64_t end) {
    const Scratch scratch(scratch_bytes(s, s.size, 1, kAttentionKeys));
    for (int64_t i = begin; i < end; ++i)
      loops.forward(s, head_of(p, i / blocks), i % blocks * kAttentionQueries, scratch.as<void>());
  });
}
void run_backward(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  const AttentionShape& s = p.shape;
  const AttentionLoops& loops = loops_of(s.dtype);
  parallel_ranges(p.heads, 1, [&](int64_t begin, int64_t end) {
    const Scratch scratch(scratch_bytes(s, s.size + s.value_size, 2, kAttentionBackwardKeys));
    for (int64_t i = begin; i < end; ++i) loops.backward(s, head_of(p, i), scratch.as<void>());
  });
}

// Half of the multiply-adds where causal.
template <int products> double cost_ns(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  constexpr double terms_per_ns = 40;
  const double pairs = double(p.heads) * double(p.shape.queries) * double(p.shape.keys);
  return 200 + products * pairs * double(p.shape.size) / terms_per_ns / (p.shape.causal ? 2 : 1);
}

// ---- attend_with_cache: few rows behind those that are filled ----

using CacheProblem = AttentionCacheProblem;
using Steps = CacheProblem::Steps;

const char* refuses_cache(const Call& call) {
  const DType dtype = call.in[0].dtype;
  if (dtype != DType::float32 && dtype != DType::float64) return "for float32 and float64";
  for (int i = 1; i < 5; ++i)
    if (call.in[i].dtype != dtype) return "for operands of one type";
  for (int i = 3; i < 5; ++i)
    if (!call.in[i].contiguous) return "for row-major memory";
  return call.in[0].size(2) >= thresholds::kFewQueries ? "for few rows" : nullptr;
}
std::uint32_t copies_of_cache(const Call& call) { return copies(call) & 7; }

void set_up_cache(const Call& call, void* problem) {
  CacheProblem& p = *new (problem) CacheProblem{};
  const Meta &q = call.in[0], &keys = call.in[3], &values = call.in[4];
  const double standard = 1 / std::sqrt(double(q.size(3)));
  p.shape.dtype = q.dtype;
  p.shape.queries = 1;
  p.shape.keys = keys.size(2);
  p.shape.size = q.size(3);
  p.shape.value_size = values.size(3);
  p.shape.scale = call.attributes.none(0) ? standard : call.attributes.real(0);
  p.rows = q.size(2), p.batch = keys.size(0), p.heads = keys.size(1);
  p.groups = q.size(1) / p.heads;
  Steps* const steps[] = {&p.q, &p.k, &p.v};
  for (int i = 0; i < 3; ++i) {
    const Strides& strides = *call.in[i].strides;
    *steps[i] = {strides[0], strides[1], strides[2]};
  }
}
void bind_cache(void* problem, void* const* at) {
  CacheProblem& p = *static_cast<CacheProblem*>(problem);
  p.query = static_cast<const char*>(at[0]);
  p.key = static_cast<const char*>(at[1]);
  p.value = static_cast<const char*>(at[2]);
  p.keys = static_cast<char*>(at[3]);
  p.values = static_cast<char*>(at[4]);
  p.filled = static_cast<const int64_t*>(at[5]);
  p.y = static_cast<char*>(at[6]);
}

// One head of the memory: its new rows, then the queries that attend to it.
void run_cache_head(const CacheProblem& p, int64_t i, int64_t filled, char* scratch) {
  const AttentionLoops& loops = loops_of(p.shape.dtype);
  const auto bytes = static_cast<int64_t>(size_of(p.shape.dtype));
  const int64_t n = i / p.heads, head = i % p.heads, room = p.shape.keys;
  const int64_t key_bytes = p.shape.size * bytes, value_bytes = p.shape.value_size * bytes;
  const auto row = [&](const char* x, const Steps& step, int64_t h, int64_t r) {
    return x + (n * step.batch + h * step.head + r * step.row) * bytes;
  };
  char* const keys = p.keys + i * room * key_bytes;
  char* const values = p.values + i * room * value_bytes;
  for (int64_t r = 0; r < p.rows; ++r) {
    std::memcpy(keys + (filled + r) * key_bytes, row(p.key, p.k, head, r), std::size_t(key_bytes));
    std::memcpy(values + (filled + r) * value_bytes, row(p.value, p.v, head, r),
                std::size_t(value_bytes));
  }
  AttentionShape shape = p.shape;
  for (int64_t h = head * p.groups; h < (head + 1) * p.groups; ++h)
    for (int64_t r = 0; r < p.rows; ++r) {
      shape.keys = filled + r + 1;
      AttentionHead one = {};
      one.q = {row(p.query, p.q, h, r), p.q.row};
      one.k = {keys, p.shape.size};
      one.v = {values, p.shape.value_size};
      one.y = p.y + ((n * p.heads * p.groups + h) * p.rows + r) * value_bytes;
      one.y_log_sums = scratch;
      loops.forward_few(shape, one, scratch + 2 * bytes);
    }
}
void run_cache(const void* problem) {
  const CacheProblem& p = *static_cast<const CacheProblem*>(problem);
  const int64_t filled = *p.filled;
  check_cache_room(filled, p.rows, p.shape.keys);
  const int64_t terms =
      p.groups * p.rows * (filled + p.rows) * (p.shape.size + p.shape.value_size) + 1;
  parallel_ranges(
      p.batch * p.heads, thresholds::kWeightGrain / terms + 1, [&](int64_t begin, int64_t end) {
        // The log-sums of a query, which nobody reads, and a number for each key.
        const Scratch scratch(std::size_t(filled + p.rows + 2) * size_of(p.shape.dtype));
        for (int64_t i = begin; i < end; ++i) run_cache_head(p, i, filled, scratch.as<char>());
      });
}
double cache_cost_ns(const void* problem) {
  const CacheProblem& p = *static_cast<const CacheProblem*>(problem);
  constexpr double terms_per_ns = 40;
  return 200 + double(p.batch * p.heads * p.groups * p.rows) * double(p.shape.keys) *
                   double(p.shape.size) / terms_per_ns;
}

}  // namespace

void register_attention_kernels() {
  add_kernel<Problem>("attention", "scores of a block of queries and keys stay in cache",
                      {.refuses = refuses,
                       .set_up = set_up,
                       .bind = bind_forward,
                       .cost_ns = cost_ns<2>,
                       .run = run_forward})
      .copies = copies;
  add_kernel<Problem>("attention_backward", "weights again from the log-sums, a block at a time",
                      {.refuses = refuses,
                       .set_up = set_up,
                       .bind = bind_backward,
                       .cost_ns = cost_ns<5>,
                       .run = run_backward,
                       .contiguous = 3 << 4})
      .copies = copies;
  add_kernel<CacheProblem>("attend_with_cache",
                           "few rows appended in place; keys and values read where they lie",
                           {.refuses = refuses_cache,
                            .set_up = set_up_cache,
                            .bind = bind_cache,
                            .cost_ns = cache_cost_ns,
                            .run = run_cache})
      .copies = copies_of_cache;
}

}  // namespace tw
