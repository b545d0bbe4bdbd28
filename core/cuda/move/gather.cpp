// Moving rows by index, and the check that indices lie within their axis.
#include <algorithm>
#include <new>

#include "core/base/error.h"
#include "core/cuda/gpu/axes.h"
#include "core/cuda/copy/copy.h"
#include "core/cuda/gpu/families.h"
#include "core/cuda/gpu/add_kernel.h"
#include "core/cuda/move/gather_parameters.h"
#include "core/problems/index_errors.h"

namespace tw::cuda {

namespace {

constexpr int kMaxArrays = 8;

// With as many arrays as there may be; a kernel gets those that there are.
struct Problem {
  IndexedRows<kMaxArrays> parameter;
  int arrays;
  DType dtype;
};

template <int first> const char* refuses(const Call& call) {
  return call.inputs - first > kMaxArrays ? "kernels of 'cuda' take up to eight arrays of indices"
                                          : nullptr;
}
// `indexed`: the tensor whose leading axes the arrays index.
void set_up_rows(const Call& call, int first, const Shape& indexed, const tw::Strides& strides,
                 Problem& problem) {
  IndexedRows<kMaxArrays>& p = problem.parameter;
  const int arrays = problem.arrays = call.inputs - first;
  problem.dtype = call.in[0].dtype;
  Shape index;
  for (int i = first; i < call.inputs; ++i)
    index = broadcast_shapes(index, *call.in[i].shape, "index");
  p.rows = element_count(index);
  p.row_count = 1;
  for (int i = arrays; i < indexed.rank(); ++i) p.row_count *= indexed[i];
  p.count = call.out[0].count;
  Axes<kMaxArrays> axes(arrays);
  for (int axis = 0; axis < index.rank(); ++axis) {
    std::int64_t steps[kMaxArrays];
    for (int k = 0; k < arrays; ++k) steps[k] = step_along(call.in[first + k], index, axis);
    if (!axes.push(index[axis], steps))
      fail(ErrorKind::not_implemented, "device 'cuda': an index of more than ", kMaxAxes,
           " axes that lie apart");
  }
  axes.finish();
  p.index = axes.extents;
  for (int k = 0; k < arrays; ++k) {
    p.row_step[k] = strides[k];
    p.steps[k] = axes.strides[k];
  }
}
void set_up_gather(const Call& call, void* problem) {
  set_up_rows(call, 1, *call.in[0].shape, *call.in[0].strides, *new (problem) Problem);
}
void set_up_scatter_add(const Call& call, void* problem) {
  const Shape& shape = *call.out[0].shape;
  set_up_rows(call, 1, shape, contiguous_strides(shape), *new (problem) Problem);
}
void set_up_scatter(const Call& call, void* problem) {
  set_up_rows(call, 2, *call.in[0].shape, *call.in[0].strides, *new (problem) Problem);
}
template <int first> void bind_rows(void* problem, void* const* at) {
  Problem& all = *static_cast<Problem*>(problem);
  IndexedRows<kMaxArrays>& p = all.parameter;
  p.x = at[first - 1];
  for (int k = 0; k < all.arrays; ++k) p.at[k] = static_cast<const std::int64_t*>(at[first + k]);
  p.y = at[first + all.arrays];
}

template <int arrays> void launch_arrays(const Problem& p, Function kernel, const Grid& grid) {
  if constexpr (arrays <= kMaxArrays) {
    if (p.arrays != arrays) return launch_arrays<arrays + 1>(p, kernel, grid);
    const IndexedRows<kMaxArrays>& q = p.parameter;
    IndexedRows<arrays> parameter = {q.rows, q.row_count, q.count, {}, {}, q.index, {}, q.x, q.y};
    std::copy_n(q.at, arrays, parameter.at);
    std::copy_n(q.row_step, arrays, parameter.row_step);
    std::copy_n(q.steps, arrays, parameter.steps);
    Gpu::current().launch(kernel, grid, &parameter);
  }
}
void launch(const Problem& p, const char* kernel, bool adds, const Grid& grid) {
  const auto size = static_cast<std::uint64_t>(size_of(p.dtype));
  const std::uint64_t key =
      (adds ? static_cast<std::uint64_t>(p.dtype) : size) * 16 + static_cast<unsigned>(p.arrays);
  const Function function = kernel_of(kernel, key, "gather.cuh", kernel, [&] {
    const std::string arrays = define("TW_ARRAYS", std::to_string(p.arrays));
    if (adds)
      return arrays + define("TW_ITEM", type_name(p.dtype)) +
             define("TW_SUM", type_name(compute_dtype(p.dtype)));
    return arrays + define("TW_ITEM", bytes_name(size));
  });
  launch_arrays<1>(p, function, grid);
}

constexpr char kGather[] = "gather_rows", kScatter[] = "scatter_rows",
               kScatterAdd[] = "scatter_add_rows";
void run_gather(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  if (p.parameter.rows * p.parameter.row_count > 0)
    launch(p, kGather, false, grid_for(p.parameter.rows * p.parameter.row_count));
}
void run_scatter(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  if (p.parameter.rows * p.parameter.row_count > 0)
    launch(p, kScatter, false, grid_for(p.parameter.rows * p.parameter.row_count));
}
void run_scatter_add(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  if (p.parameter.count == 0) return;
  Grid grid;
  grid.blocks[0] = static_cast<unsigned>(divide_up(p.parameter.count, kBlockThreads));
  launch(p, kScatterAdd, true, grid);
}

void set_up_indices(const Call& call, void* problem) {
  const Attributes& w = call.attributes;
  const bool counts_from_end = !w.flag(2) && !w.none(1);
  *static_cast<Indices*>(problem) = {call.in[0].count,
                                     counts_from_end ? -w[0] : 0,
                                     w[0],
                                     w[1],
                                     static_cast<std::int32_t>(w[3]),
                                     0,
                                     nullptr,
                                     nullptr,
                                     nullptr};
}
void bind_indices(void* problem, void* const* at) {
  Indices& p = *static_cast<Indices*>(problem);
  p.x = static_cast<const std::int64_t*>(at[0]);
  p.y = static_cast<std::int64_t*>(at[1]);
}
void raise_bad_index(const Fault& fault) {
  fail_index(static_cast<Indexing>(fault.user), std::to_string(fault.value), fault.axis,
             fault.limit);
}
void run_indices(const void* problem) {
  Indices p = *static_cast<const Indices*>(problem);
  if (p.count == 0) return;
  static const char place = 0;
  static const std::int32_t code = register_fault(raise_bad_index);
  p.code = code;
  p.fault = Gpu::current().fault();
  const Function kernel = kernel_of(&place, 0, "gather.cuh", "check_indices", [] {
    return define("TW_ITEM", "int64_t") + define("TW_ARRAYS", "1");
  });
  Gpu::current().launch(kernel, grid_for(p.count), &p);
}

// Rows must be contiguous behind the indexed axes.
std::uint32_t copies_of_gather(const Call& call) {
  const Meta& x = call.in[0];
  if (x.contiguous) return 0;
  std::int64_t step = 1;
  for (int i = x.rank() - 1; i >= call.inputs - 1; --i) {
    if (x.size(i) != 1 && (*x.strides)[i] != step) return 1;
    step *= x.size(i);
  }
  return 0;
}

}  // namespace

void register_gather_kernels() {
  add_kernel<Indices>(
      "checked_indices", "an index a thread; what is wrong is told when waiting",
      {.set_up = set_up_indices, .bind = bind_indices, .run = run_indices, .contiguous = 1});
  add_kernel<Problem>(
      kGather, "an element a thread",
      {.refuses = refuses<1>, .set_up = set_up_gather, .bind = bind_rows<1>, .run = run_gather})
      .copies = copies_of_gather;
  add_kernel<Problem>(kScatterAdd, "an element of the result a thread, rows in their order",
                      {.refuses = refuses<1>,
                       .set_up = set_up_scatter_add,
                       .bind = bind_rows<1>,
                       .run = run_scatter_add,
                       .contiguous = 1});
  add_kernel<Problem>(kScatter, "an element a thread",
                      {.refuses = refuses<2>,
                       .set_up = set_up_scatter,
                       .bind = bind_rows<2>,
                       .run = run_scatter,
                       .contiguous = 2});
}

}  // namespace tw::cuda
