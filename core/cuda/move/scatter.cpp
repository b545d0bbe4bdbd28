// Elements by an index for each of them along one axis: gathered, or joined to others.
#include <new>

#include "core/base/error.h"
#include "core/cuda/gpu/axes.h"
#include "core/cuda/copy/copy.h"
#include "core/cuda/gpu/families.h"
#include "core/cuda/gpu/add_kernel.h"
#include "core/cuda/move/scatter_parameters.h"
#include "core/problems/index_errors.h"

namespace tw::cuda {

namespace {

struct Problem {
  Along parameter;
  DType dtype;
  ScatterJoin join;
  CopyProblem target;  // of a scatter: x, which is copied first
};

void set_axes(Along& p, const Meta& index, const tw::Strides& indexed, const tw::Strides& other,
              int axis) {
  Axes<3> axes(3);
  for (int i = 0; i < index.rank(); ++i) {
    if (i == axis) continue;
    p.count *= index.size(i);
    const std::int64_t steps[] = {indexed[i], (*index.strides)[i], other[i]};
    if (!axes.push(index.size(i), steps))
      fail(ErrorKind::not_implemented, "device 'cuda': an index of more than ", kMaxAxes,
           " axes that lie apart");
  }
  axes.finish();
  p.length = index.size(axis);
  p.index_step = (*index.strides)[axis];
  p.other_step = other[axis];
  p.extents = axes.extents;
  p.indexed = axes.strides[0];
  p.index = axes.strides[1];
  p.other = axes.strides[2];
}

Along& fresh(const Call& call, void* problem) {
  Problem& p = *new (problem) Problem{};
  p.dtype = call.in[0].dtype;
  p.parameter.axis = call.attributes[0];
  p.parameter.extent = call.in[0].size(static_cast<int>(call.attributes[0]));
  p.parameter.user = static_cast<std::int32_t>(call.attributes[1]);
  return p.parameter;
}
void set_up_gather(const Call& call, void* problem) {
  Along& p = fresh(call, problem);
  const int axis = static_cast<int>(p.axis);
  p.axis_step = (*call.in[0].strides)[axis];
  set_axes(p, call.in[1], *call.in[0].strides, *call.out[0].strides, axis);
}
void bind_gather(void* problem, void* const* at) {
  Along& p = static_cast<Problem*>(problem)->parameter;
  p.x = at[0];
  p.places = static_cast<const std::int64_t*>(at[1]);
  p.y = at[2];
}
// Attributes: axis, user; then the kind of a reduction.
template <ScatterJoin join, bool by_attribute = false>
void set_up_scatter(const Call& call, void* problem) {
  Along& p = fresh(call, problem);
  const int axis = static_cast<int>(p.axis);
  p.axis_step = (*call.out[0].strides)[axis];
  set_axes(p, call.in[1], *call.out[0].strides, *call.in[2].strides, axis);
  Problem& all = *static_cast<Problem*>(problem);
  all.join = by_attribute ? static_cast<ScatterJoin>(call.attributes[2]) : join;
  set_up_copy<0>(call, &all.target);
}
void bind_scatter(void* problem, void* const* at) {
  Problem& all = *static_cast<Problem*>(problem);
  Along& p = all.parameter;
  p.places = static_cast<const std::int64_t*>(at[1]);
  p.src = at[2];
  p.y = at[3];
  bind_copy<0, 3>(&all.target, at);
}

void raise_bad_place(const Fault& fault) {
  fail_along(static_cast<AlongUser>(fault.user), fault.value, fault.axis, fault.limit);
}

Function kernel_for(const Problem& p, const char* kernel) {
  const bool adds = p.join != ScatterJoin::later;
  const auto size = static_cast<std::uint64_t>(size_of(p.dtype));
  const std::uint64_t key =
      (adds ? static_cast<std::uint64_t>(p.dtype) : size) * 8 + static_cast<std::uint64_t>(p.join);
  return kernel_of(kernel, key, "scatter.cuh", kernel, [&] {
    return define("TW_JOIN", std::to_string(static_cast<int>(p.join))) +
           define("TW_ITEM", adds ? type_name(p.dtype) : bytes_name(size_of(p.dtype))) +
           define("TW_SUM", type_name(compute_dtype(p.dtype)));
  });
}
Along ready(const Problem& p) {
  static const std::int32_t code = register_fault(raise_bad_place);
  Along parameter = p.parameter;
  parameter.fault = Gpu::current().fault();
  parameter.code = code;
  return parameter;
}

constexpr char kGather[] = "gather_along", kLines[] = "scatter_lines", kPlaces[] = "scatter_places";
void run_gather(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  const Along parameter = ready(p);
  const std::int64_t all = parameter.count * parameter.length;
  if (all > 0) Gpu::current().launch(kernel_for(p, kGather), grid_for(all), &parameter);
}
void run_scatter(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  run_copy(&p.target);
  const Along parameter = ready(p);
  if (parameter.count * parameter.length == 0) return;
  // A thread a line takes its steps one after the other; a thread a place compares with each.
  const GpuFacts& facts = Gpu::current().facts;
  const double each_ns = 500, compared_a_ns = 64.0 * facts.multiprocessors;
  const double lines_ns = static_cast<double>(parameter.length) * each_ns *
                          std::max(1.0, static_cast<double>(parameter.count) / 65536);
  const double places_ns = static_cast<double>(parameter.count) *
                           static_cast<double>(parameter.extent) *
                           static_cast<double>(parameter.length) / compared_a_ns;
  Grid grid;
  // An axis without places has no thread a place that could tell an index outside.
  const bool by_lines = parameter.extent == 0 || lines_ns < places_ns || parameter.count > 65535;
  grid.blocks[0] = static_cast<unsigned>(
      divide_up(by_lines ? parameter.count : parameter.extent, kBlockThreads));
  grid.blocks[1] = by_lines ? 1 : static_cast<unsigned>(parameter.count);
  Gpu::current().launch(kernel_for(p, by_lines ? kLines : kPlaces), grid, &parameter);
}

const char* refuses_sums(const Call& call) {
  const DType dtype = call.in[0].dtype;
  return is_floating(dtype) && size_of(dtype) == 2 ? kTooNarrow : nullptr;
}

constexpr char kHelp[] = "in the order of the index: a thread a line, or a place";

}  // namespace

void register_along_kernels() {
  add_kernel<Problem>(kGather, "an element a thread",
                      {.set_up = set_up_gather, .bind = bind_gather, .run = run_gather});
  add_kernel<Problem>(
      "scatter_along", kHelp,
      {.set_up = set_up_scatter<ScatterJoin::later>, .bind = bind_scatter, .run = run_scatter});
  add_kernel<Problem>("scatter_add_along", kHelp,
                      {.refuses = refuses_sums,
                       .set_up = set_up_scatter<ScatterJoin::sum>,
                       .bind = bind_scatter,
                       .run = run_scatter});
  add_kernel<Problem>("scatter_reduce_along", kHelp,
                      {.refuses = refuses_sums,
                       .set_up = set_up_scatter<ScatterJoin::product, true>,
                       .bind = bind_scatter,
                       .run = run_scatter});
}

}  // namespace tw::cuda
