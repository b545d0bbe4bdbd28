// Counts of whole numbers and of numbers in even bins, true elements and their places, and runs of
// repeats.
#include "core/base/error.h"
#include "core/cuda/gpu/families.h"
#include "core/cuda/gpu/add_kernel.h"
#include "core/cuda/order/bins_parameters.h"

namespace tw::cuda {

namespace {

using Bins = BinsOf<void>;
static_assert(kMostMaskAxes == kMaxRank);

template <class Parameter>
void launch(DType dtype, const char* kernel, const Grid& grid, const Parameter& parameter) {
  const Function function = kernel_of(kernel, static_cast<std::uint64_t>(dtype), "bins.cuh", kernel,
                                      [&] { return define("TW_TYPE", type_name(dtype)); });
  Gpu::current().launch(function, grid, &parameter);
}
Grid one_block() {
  Grid grid;
  return grid;
}
constexpr char kLast[] = "last_bin", kClear[] = "clear_bins", kCount[] = "count_bins",
               kCountEven[] = "count_even_bins", kPieces[] = "count_pieces", kAdd[] = "add_counts",
               kFind[] = "find_positions", kStart[] = "start_runs", kWrite[] = "write_runs";

// ---- bins ----

struct BinsProblem {
  Bins parameter;
  DType dtype;
};
template <bool counts> void set_up_bins(const Call& call, void* problem) {
  *static_cast<BinsProblem*>(problem) = {
      {call.in[0].count, counts ? call.attributes[0] : 0, nullptr, nullptr, nullptr, nullptr, 0},
      call.in[0].dtype};
}
void bind_bins(void* problem, void* const* at) {
  Bins& p = static_cast<BinsProblem*>(problem)->parameter;
  p.x = at[0];
  p.y = static_cast<std::int64_t*>(at[1]);
}
void bind_even_bins(void* problem, void* const* at) {
  Bins& p = static_cast<BinsProblem*>(problem)->parameter;
  p.x = at[0];
  p.limits = at[1];
  p.y = static_cast<std::int64_t*>(at[2]);
}
void raise_bad_bins(const Fault& fault) {
  if (fault.user == kNoBins)
    fail(ErrorKind::value, "histc: no bins between the smallest and the largest");
  if (fault.user == kNegativeElement)
    fail(ErrorKind::value, "bincount: negative element ", fault.value);
  fail(ErrorKind::value, "bincount: too large an element, ",
       static_cast<std::uint64_t>(fault.value));
}
Bins ready(const BinsProblem& p) {
  static const std::int32_t code = register_fault(raise_bad_bins);
  Bins bins = p.parameter;
  bins.fault = Gpu::current().fault();
  bins.code = code;
  return bins;
}
void run_last_bin(const void* problem) {
  const auto& p = *static_cast<const BinsProblem*>(problem);
  launch(p.dtype, kLast, one_block(), ready(p));
}
template <const char* kernel> void run_bins(const void* problem) {
  const auto& p = *static_cast<const BinsProblem*>(problem);
  const Bins bins = ready(p);
  if (bins.bins > 0) launch(p.dtype, kClear, grid_for(bins.bins), bins);
  if (bins.bins > 0) launch(p.dtype, kernel, grid_for(std::max<std::int64_t>(bins.n, 1)), bins);
}

// ---- true elements ----

void set_up_counts(const Call& call, void* problem) {
  *static_cast<Nonzero*>(problem) = {
      call.in[0].count, call.attributes[0], call.out[0].count - 1, 0, 0, {}, nullptr, nullptr,
      nullptr};
}
void bind_counts(void* problem, void* const* at) {
  auto& p = *static_cast<Nonzero*>(problem);
  p.x = static_cast<const std::uint8_t*>(at[0]);
  p.y = static_cast<std::int64_t*>(at[1]);
}
void run_counts(const void* problem) {
  const auto& p = *static_cast<const Nonzero*>(problem);
  if (p.pieces > 0) launch(DType::uint8, kPieces, grid_for(p.pieces), p);
  launch(DType::uint8, kAdd, one_block(), p);
}
void set_up_positions(const Call& call, void* problem) {
  auto& p = *static_cast<Nonzero*>(problem);
  const Meta& mask = call.in[0];
  p = {mask.count,
       call.attributes[0],
       call.in[1].count - 1,
       call.attributes[1],
       mask.rank(),
       {},
       nullptr,
       nullptr,
       nullptr};
  for (int i = 0; i < mask.rank(); ++i) p.extents[i] = mask.size(i);
}
void bind_positions(void* problem, void* const* at) {
  auto& p = *static_cast<Nonzero*>(problem);
  p.x = static_cast<const std::uint8_t*>(at[0]);
  p.counts = static_cast<const std::int64_t*>(at[1]);
  p.y = static_cast<std::int64_t*>(at[2]);
}
void run_positions(const void* problem) {
  const auto& p = *static_cast<const Nonzero*>(problem);
  if (p.pieces > 0 && p.found > 0) launch(DType::uint8, kFind, grid_for(p.pieces), p);
}

// ---- runs ----

void set_up_runs(const Call& call, void* problem) {
  *static_cast<Runs*>(problem) = {call.in[0].count,
                                  call.attributes[0],
                                  call.attributes.flag(1),
                                  nullptr,
                                  nullptr,
                                  nullptr,
                                  nullptr,
                                  0};
}
void bind_runs(void* problem, void* const* at) {
  Runs& p = *static_cast<Runs*>(problem);
  p.counts = static_cast<const std::int64_t*>(at[0]);
  p.y = static_cast<std::int64_t*>(at[1]);
}
void raise_bad_runs(const Fault& fault) {
  if (fault.user == kNegativeRun)
    fail(ErrorKind::value, "repeat: repeats is negative: ", fault.value);
  if (fault.user == kLongerRuns)
    fail(ErrorKind::value, "repeat: the repeats add up to more than ", fault.limit, " elements");
  fail(ErrorKind::value, "repeat: the repeats add up to ", fault.value, ", not ", fault.limit,
       " elements");
}
void run_runs(const void* problem) {
  static const std::int32_t code = register_fault(raise_bad_runs);
  Runs p = *static_cast<const Runs*>(problem);
  Gpu& gpu = Gpu::current();
  const auto bytes = static_cast<std::size_t>(p.count + 1) * sizeof(std::int64_t);
  p.starts = static_cast<std::int64_t*>(gpu.pool.allocate(bytes));
  p.fault = gpu.fault();
  p.code = code;
  launch(DType::uint8, kStart, one_block(), p);
  if (p.total > 0) launch(DType::uint8, kWrite, grid_for(p.total), p);
  gpu.pool.release(p.starts, bytes);
}

}  // namespace

void register_bin_kernels() {
  add_kernel<BinsProblem>(
      kLast, "one block",
      {.set_up = set_up_bins<false>, .bind = bind_bins, .run = run_last_bin, .contiguous = 1});
  add_kernel<BinsProblem>(
      kCount, "counted in memory, in any order",
      {.set_up = set_up_bins<true>, .bind = bind_bins, .run = run_bins<kCount>, .contiguous = 1});
  add_kernel<BinsProblem>(kCountEven, "counted in memory, in any order",
                          {.set_up = set_up_bins<true>,
                           .bind = bind_even_bins,
                           .run = run_bins<kCountEven>,
                           .contiguous = 3});
  add_kernel<Nonzero>(
      "nonzero_counts", "a piece a thread",
      {.set_up = set_up_counts, .bind = bind_counts, .run = run_counts, .contiguous = 1});
  add_kernel<Nonzero>(
      "nonzero_positions", "a piece a thread",
      {.set_up = set_up_positions, .bind = bind_positions, .run = run_positions, .contiguous = 3});
  add_kernel<Runs>("runs", "a bisection a thread",
                   {.set_up = set_up_runs, .bind = bind_runs, .run = run_runs, .contiguous = 1});
}

}  // namespace tw::cuda
