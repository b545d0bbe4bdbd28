// Rows in order, the first of rows, and searches in them.
#include <utility>

#include "core/cuda/gpu/families.h"
#include "core/cuda/gpu/add_kernel.h"
#include "core/cuda/order/order_parameters.h"

namespace tw::cuda {

namespace {

using Rows = SortedRowsOf<void>;
using Picks = PicksOf<void>;
using Search = SearchOf<void>;

template <class Parameter>
void launch(DType dtype, const char* kernel, std::int64_t items, const Parameter& parameter) {
  const Function function = kernel_of(kernel, static_cast<std::uint64_t>(dtype), "order.cuh",
                                      kernel, [&] { return define("TW_TYPE", type_name(dtype)); });
  Gpu::current().launch(function, grid_for(items), &parameter);
}
constexpr char kStart[] = "start_rows", kMerge[] = "merge_rows", kPick[] = "pick_rows",
               kSearch[] = "search_rows";

struct Problem {
  DType dtype;
  bool flag;  // descending, or the largest first
  std::int64_t rows, n, k, which;
  const void* x;
  void* y;
  std::int64_t* places;
};
Problem& set_up(const Call& call, void* problem) {
  const Meta& x = call.in[0];
  Problem& p = *static_cast<Problem*>(problem);
  p = {x.dtype, false, 0, x.size(x.rank() - 1), 0, 0, nullptr, nullptr, nullptr};
  p.rows = p.n ? x.count / p.n : 0;
  return p;
}
void bind(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  p.x = at[0];
  p.y = at[1];
}
void bind_with_places(void* problem, void* const* at) {
  bind(problem, at);
  static_cast<Problem*>(problem)->places = static_cast<std::int64_t*>(at[2]);
}

// Merges of runs of 1, 2, 4, ... to and fro between two pairs of arrays, so that the last ends in
// `y` and `places`.
void sort(const Problem& p, bool descending, void* y, std::int64_t* places) {
  const std::int64_t count = p.rows * p.n;
  const Room values(count * static_cast<std::int64_t>(size_of(p.dtype)));
  const Room indices(count * static_cast<std::int64_t>(sizeof(std::int64_t)));
  int merges = 0;
  for (std::int64_t run = 1; run < p.n; run *= 2) ++merges;
  std::pair<void*, std::int64_t*> now = {y, places},
                                  next = {values.at(), static_cast<std::int64_t*>(indices.at())};
  if (merges % 2) std::swap(now, next);
  Rows rows = {p.rows, p.n, 1, descending, p.x, nullptr, nullptr, now.first, now.second};
  launch(p.dtype, kStart, count, rows);
  for (std::int64_t run = 1; run < p.n; run *= 2) {
    rows = {p.rows, p.n, run, descending, p.x, now.first, now.second, next.first, next.second};
    launch(p.dtype, kMerge, count, rows);
    std::swap(now, next);
  }
}

void run_sort(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  if (p.rows * p.n == 0) return;
  if (p.places) return sort(p, p.flag, p.y, p.places);
  const Room places(p.rows * p.n * static_cast<std::int64_t>(sizeof(std::int64_t)));
  sort(p, p.flag, p.y, static_cast<std::int64_t*>(places.at()));
}
void run_picks(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  const std::int64_t picked = p.which == kFirstOfRow ? p.rows * p.k : p.rows;
  if (picked == 0) return;
  const std::int64_t count = p.rows * p.n;
  const Room values(count * static_cast<std::int64_t>(size_of(p.dtype)));
  const Room indices(count * static_cast<std::int64_t>(sizeof(std::int64_t)));
  auto* const places = static_cast<std::int64_t*>(indices.at());
  sort(p, p.flag, values.at(), places);
  const Picks picks = {p.rows, p.n, p.k, p.which, values.at(), places, p.y, p.places};
  launch(p.dtype, kPick, picked, picks);
}

struct SearchProblem {
  Search parameter;
  DType dtype;
};
void set_up_search(const Call& call, void* problem) {
  const Meta &x = call.in[0], &values = call.in[1];
  auto& p = *static_cast<SearchProblem*>(problem);
  p = {{1, x.size(x.rank() - 1), 0, call.attributes.flag(0), nullptr, nullptr, nullptr}, x.dtype};
  Search& s = p.parameter;
  if (x.rank() > 1 && s.n > 0) s.rows = x.count / s.n;
  s.queries = s.rows ? values.count / s.rows : 0;
}
void bind_search(void* problem, void* const* at) {
  Search& s = static_cast<SearchProblem*>(problem)->parameter;
  s.x = at[0];
  s.values = at[1];
  s.y = static_cast<std::int64_t*>(at[2]);
}
void run_search(const void* problem) {
  const auto& p = *static_cast<const SearchProblem*>(problem);
  const std::int64_t all = p.parameter.rows * p.parameter.queries;
  if (all > 0) launch(p.dtype, kSearch, all, p.parameter);
}
const char* refuses_search(const Call& call) {
  const DType dtype = call.in[0].dtype;
  const bool is_narrow = is_floating(dtype) && size_of(dtype) == 2;
  return is_bool(dtype) || is_complex(dtype) || is_narrow ? "no kernel for this type" : nullptr;
}

constexpr char kHelp[] = "merges of sorted runs, an element a thread";

}  // namespace

void register_order_kernels() {
  const auto set_up_sort = [](const Call& call, void* problem) {
    set_up(call, problem).flag = call.attributes.flag(0);
  };
  add_kernel<Problem>("sort_rows", kHelp,
                      {.set_up = set_up_sort, .bind = bind, .run = run_sort, .contiguous = 1});
  add_kernel<Problem>(
      "sort_rows_with_places", kHelp,
      {.set_up = set_up_sort, .bind = bind_with_places, .run = run_sort, .contiguous = 1});
  add_kernel<Problem>("topk_rows", "the first of sorted rows",
                      {.set_up =
                           [](const Call& call, void* problem) {
                             Problem& p = set_up(call, problem);
                             p.k = call.attributes[0];
                             p.flag = call.attributes.flag(1);
                           },
                       .bind = bind_with_places,
                       .run = run_picks,
                       .contiguous = 1});
  add_kernel<Problem>("kth_rows", "one place of sorted rows",
                      {.set_up =
                           [](const Call& call, void* problem) {
                             Problem& p = set_up(call, problem);
                             p.which = kOneOfRow + call.attributes[0];
                             p.k = call.attributes[1];
                           },
                       .bind = bind_with_places,
                       .run = run_picks,
                       .contiguous = 1});
  add_kernel<SearchProblem>(kSearch, "a bisection a thread",
                            {.refuses = refuses_search,
                             .set_up = set_up_search,
                             .bind = bind_search,
                             .run = run_search,
                             .contiguous = 3});
}

}  // namespace tw::cuda
