// The rows of core/problems/reductions.inc.
#include <cstdlib>
#include <string_view>

#include "core/cuda/gpu/axes.h"
#include "core/cuda/gpu/block_counters.h"
#include "core/cuda/gpu/families.h"
#include "core/cuda/gpu/add_kernel.h"
#include "core/cuda/reduce/reduce_parameters.h"
#include "core/problems/reduce.h"
#include "core/problems/reduction_graphs.h"

namespace tw::cuda {

namespace {

constexpr ReduceOp kOps[] = {
#define TW_REDUCTION(name, parameters, kinds, outcome, of_none, combination, ...) \
  ReduceOp::combination,
#include "core/problems/reductions.inc"
#undef TW_REDUCTION
};
// How the kernels' text joins two states, by ReduceJoin. Of an extremum: where b replaces a.
struct JoinText {
  const char *neutral, *joined, *replaces;
};
constexpr JoinText kJoins[] = {
#define TW_JOIN(name, neutral, joined) {#neutral, #joined, nullptr},
#define TW_PICK(name, replaces) {nullptr, nullptr, #replaces},
#include "core/problems/combinations.inc"
};

struct Problem {
  Reduce parameter;
  ReductionRow index;
  DType in, out;
  ReduceOp op() const { return kOps[static_cast<int>(index)]; }
};

template <ReductionRow index> void set_up(const Call& call, void* problem) {
  const Meta& x = call.in[0];
  Problem& p = *new (problem) Problem;
  p.index = index;
  p.in = x.dtype;
  p.out = call.out[0].dtype;
  constexpr ReduceOp op = kOps[static_cast<int>(index)];
  const std::uint32_t reduced = is_arg(op) ? call.attributes.axis(0, x.rank(), call.op->name)
                                           : call.attributes.axes(0, x.rank(), call.op->name);
  Axes<1> kept(1), walked(1);
  for (int i = 0; i < x.rank(); ++i) {
    const std::int64_t step = (*x.strides)[i];
    const bool is_reduced = reduced >> i & 1;
    (is_reduced ? walked : kept).push(x.size(i), &step);
    (is_reduced ? p.parameter.reduced : p.parameter.kept) *= x.size(i);
  }
  kept.finish();
  walked.finish();
  p.parameter.kept_extents = kept.extents;
  p.parameter.kept_strides = kept.strides[0];
  p.parameter.reduced_extents = walked.extents;
  p.parameter.reduced_strides = walked.strides[0];
}
void bind(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  p.parameter.x = at[0];
  p.parameter.y = at[1];
}

// float32 in double: a sum reads so many bytes for each addition that these cost nothing.
const char* state_type(const Problem& p) {
  const ReduceOp op = p.op();
  if (is_logic(op)) return "int32_t";
  if (is_complex(p.in)) return "complex128";
  if (is_floating(p.in)) return is_additive(op) || p.in == DType::float64 ? "double" : "float";
  return p.in == DType::uint64 ? "uint64_t" : "int64_t";
}

// The result from y and count, as statements.
std::string text_of_finish(const formula::Graph& finish) {
  constexpr const char* kNames[] = {"y", "count"};
  const formula::Text text = formula::text_of({finish.begin(), finish.size()}, kNames);
  return text.steps + "return " + text.values.back() + ";";
}

std::string settings_of(const Problem& p, int width) {
  const ReduceOp op = p.op();
  const formula::Graph& finish = formula::graphs_of(p.index).finish;
  const JoinText& join = kJoins[static_cast<int>(join_of(op))];
  const auto flag = [](const char* name, bool on) { return define(name, on ? "1" : "0"); };
  return define("TW_IN", type_name(p.in)) + define("TW_OUT", type_name(p.out)) +
         define("TW_TYPE", state_type(p)) + define("TW_TERM", combination_of(op).term) +
         flag("TW_IS_LOGIC", is_logic(op)) + flag("TW_IS_EXTREMUM", is_extremum(op)) +
         flag("TW_IS_ARG", is_arg(op)) +
         (is_extremum(op) ? define("TW_REPLACES", join.replaces)
                          : define("TW_NEUTRAL", join.neutral) + define("TW_JOINED", join.joined)) +
         (formula::is_input(finish, reduction_y) ? ""
                                                 : define("TW_FINISH", text_of_finish(finish))) +
         define("TW_WIDTH", std::to_string(width));
}

void run(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  if (p.parameter.kept == 0) return;
  static const char of_rows = 0, of_columns = 0, of_segments = 0;
  Gpu& gpu = Gpu::current();
  Reduce q = p.parameter;
  const auto step = [](const Extents& e, const Strides& s) {
    return std::abs(s.stride[e.rank - 1]) + (e.extent[e.rank - 1] == 1 ? 1 << 20 : 0);
  };
  // Lanes read neighbours along the axis whose elements lie closest.
  const bool across = q.kept >= 16 && step(q.kept_extents, q.kept_strides) <
                                          step(q.reduced_extents, q.reduced_strides);
  const int width = !across && q.reduced > 1024 ? kBlockThreads : kWarpThreads;
  const std::int64_t rows_each = across ? kReducedColumns : kBlockThreads / width;
  const std::int64_t blocks = divide_up(q.kept, rows_each);
  // Few rows of many elements are cut, until there are blocks for all multiprocessors. The cut does
  // not depend on the GPU: its result has the same bits on all.
  constexpr std::int64_t kEnoughBlocks = 1024, kChunk = 16;
  const std::int64_t least_segment = across ? 256 : 8192;
  q.segment = std::max<std::int64_t>(q.reduced, 1);
  if (blocks < kEnoughBlocks && q.reduced >= 2 * least_segment) {
    const std::int64_t wanted =
        std::min(divide_up(kEnoughBlocks, blocks), q.reduced / least_segment);
    q.segment = divide_up(divide_up(q.reduced, wanted), kChunk) * kChunk;
    q.segments = divide_up(q.reduced, q.segment);
  }
  if (q.segments > 1) {
    q.partial = gpu.pool.allocate(static_cast<std::size_t>(q.kept * q.segments * kMostStateBytes));
    q.done = counters_of_blocks(gpu, blocks);
  }
  const std::uint64_t key =
      ((static_cast<std::uint64_t>(p.index) * 32 + static_cast<std::uint64_t>(p.in)) * 32 +
       static_cast<std::uint64_t>(p.out)) *
          512 +
      static_cast<std::uint64_t>(width);
  const auto settings = [&] { return settings_of(p, width); };
  Grid grid;
  grid.blocks[0] = static_cast<unsigned>(blocks);
  grid.blocks[1] = static_cast<unsigned>(q.segments);
  grid.blocks[2] = 1;
  gpu.launch(across ? kernel_of(&of_columns, key, "reduce.cuh", "reduce_columns", settings)
                    : kernel_of(&of_rows, key, "reduce.cuh", "reduce_rows", settings),
             grid, &q);
  if (q.segments == 1) return;
  if (!q.done) {
    Grid last;
    last.blocks[0] = static_cast<unsigned>(divide_up(q.kept, kBlockThreads / width));
    last.blocks[1] = last.blocks[2] = 1;
    gpu.launch(kernel_of(&of_segments, key, "reduce.cuh", "reduce_segments", settings), last, &q);
  }
  gpu.pool.release(q.partial, static_cast<std::size_t>(q.kept * q.segments * kMostStateBytes));
}

// Of a row with terms, whose third attribute is the type that they are converted to.
const char* refuses_terms(const Call& call) {
  if (call.attributes.none(2) || call.attributes.dtype(2) == call.in[0].dtype) return nullptr;
  return kOtherType;
}

}  // namespace

void register_reduce_kernels() {
#define TW_REDUCTION(name, parameters, ...)                                           \
  add_kernel<Problem>(                                                                \
      #name, "a warp or a block a row, lanes where elements lie together",            \
      {.refuses = std::string_view(#parameters) == "terms" ? refuses_terms : nullptr, \
       .set_up = set_up<ReductionRow::name>,                                          \
       .bind = bind,                                                                  \
       .run = run});
#include "core/problems/reductions.inc"
#undef TW_REDUCTION
}

}  // namespace tw::cuda
