// Running sums, products, log-sums and extremes along an axis, and recurrences.
#include <algorithm>

#include "core/cuda/gpu/families.h"
#include "core/cuda/gpu/add_kernel.h"
#include "core/cuda/reduce/scan_parameters.h"

namespace tw::cuda {

namespace {

using Kind = ScanKind;
using Scan = ScanOf<void>;
struct Problem {
  Scan parameter;
  Kind kind;
  DType dtype;
};

template <Kind kind> void set_up(const Call& call, void* problem) {
  const Meta& x = call.in[0];
  constexpr bool is_extreme = kind == Kind::cummax || kind == Kind::cummin;
  const int axis = x.rank() ? normalize_axis(call.attributes[0], x.rank(), call.op->name) : 0;
  Problem& p = *static_cast<Problem*>(problem);
  p = {};
  p.kind = kind;
  p.dtype = x.dtype;
  p.parameter.n = x.rank() ? x.size(axis) : 1;
  p.parameter.inner = 1;
  p.parameter.reverse = !is_extreme && call.attributes.flag(1);
  for (int i = axis + 1; i < x.rank(); ++i) p.parameter.inner *= x.size(i);
  p.parameter.lines = p.parameter.n ? x.count / p.parameter.n : 0;
}
template <Kind kind> void bind(void* problem, void* const* at) {
  Scan& p = static_cast<Problem*>(problem)->parameter;
  constexpr bool is_recurrence = kind == Kind::recurrence;
  p.x = at[0];
  p.b = is_recurrence ? at[1] : nullptr;
  p.y = at[is_recurrence ? 2 : 1];
  const bool is_extreme = kind == Kind::cummax || kind == Kind::cummin;
  p.places = is_extreme ? static_cast<std::int64_t*>(at[2]) : nullptr;
}

const char* state_type(const Problem& p) {
  const bool adds = p.kind != Kind::cummax && p.kind != Kind::cummin;
  if (is_complex(p.dtype)) return "complex128";
  if (is_floating(p.dtype)) return adds || p.dtype == DType::float64 ? "double" : "float";
  return p.dtype == DType::uint64 ? "uint64_t" : "int64_t";
}

// Few long lines are cut over the threads of a block each.
constexpr std::int64_t kLong = 512;

void run(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  const Scan& q = p.parameter;
  if (q.lines == 0) return;
  static const char of_lines = 0, of_blocks = 0;
  const bool blocks = q.n >= kLong && q.lines < 16384;
  const std::uint64_t key =
      static_cast<std::uint64_t>(p.dtype) * 8 + static_cast<std::uint64_t>(p.kind);
  const Function kernel = kernel_of(
      blocks ? &of_blocks : &of_lines, key, "scan.cuh", blocks ? "scan_blocks" : "scan_lines", [&] {
        return define("TW_TYPE", type_name(p.dtype)) + define("TW_STATE", state_type(p)) +
               define("TW_KIND", std::to_string(static_cast<int>(p.kind)));
      });
  Grid grid;
  grid.blocks[0] = static_cast<unsigned>(blocks ? q.lines : divide_up(q.lines, kBlockThreads));
  Gpu::current().launch(kernel, grid, &q);
}

const char* refuses(const Call& call) {
  const DType dtype = call.in[0].dtype;
  if (is_floating(dtype) && size_of(dtype) == 2) return kTooNarrow;
  if (is_floating(dtype) || is_complex(dtype) || size_of(dtype) == sizeof(std::int64_t))
    return nullptr;
  return "integers are scanned in 64 bits";
}
const char* refuses_half(const Call& call) {
  const DType dtype = call.in[0].dtype;
  return is_floating(dtype) && size_of(dtype) == 2 ? kTooNarrow : nullptr;
}

constexpr char kHelp[] = "a thread a line, or a block where there are few long ones";
template <Kind kind>
void add(const char* op, const char* (*refuses)(const Call&), std::uint32_t contiguous = 1) {
  add_kernel<Problem>(op, kHelp,
                      {.refuses = refuses,
                       .set_up = set_up<kind>,
                       .bind = bind<kind>,
                       .run = run,
                       .contiguous = contiguous});
}

}  // namespace

void register_scan_kernels() {
  add<Kind::sum>("running_sum", refuses);
  add<Kind::product>("running_product", refuses);
  add<Kind::log_sum>("running_log_sum", refuses);
  add<Kind::recurrence>("linear_recurrence", refuses_half, 3);
  add<Kind::cummax>("cummax", refuses_half);
  add<Kind::cummin>("cummin", refuses_half);
}

}  // namespace tw::cuda
