// The matmul ladder in the registry: which rung accepts which problem, and what it costs.
#include "core/cpu/matmul.h"

#include <algorithm>

#include "core/cpu/matmul/layout.h"
#include "core/cpu/matmul/parts.h"
#include "core/cpu/matmul/split.h"
#include "core/runtime/registry.h"

namespace tw {
namespace {

double flops_of(const MatmulProblem& p) { return 2.0 * double(p.m) * double(p.n) * double(p.k); }

void run_naive(const void* problem) {
  const MatmulProblem& p = problem_of(problem);
  if (is_empty(p)) return;
  run_parts(p, {p.k, p.n, p.m, false}, active_kernels().matmul->naive[index_of(p.dtype)], 0);
}

void run_tiled(const void* problem) {
  const MatmulProblem& p = problem_of(problem);
  if (!is_empty(p)) run_parts(p, {p.k, p.n, p.m, false}, ladder_of(p.dtype).tiled, 0);
}

void run_simd(const void* problem) {
  const MatmulProblem p = oriented(problem_of(problem));
  if (is_empty(p)) return;
  const std::size_t panel = p.k * tile_columns(p.dtype) * size_of(p.dtype);
  run_parts(p, {p.k, p.n, p.m, false}, ladder_of(p.dtype).simd, std::max<std::size_t>(panel, 1));
}

// Rows of A and columns of B that are contiguous along k make dot products. They read each vector
// for few sums, which pays only where packing B would cost more: for a handful of rows or columns,
// or with all of B in L1 and sums long enough to make up for adding the lanes.
constexpr std::int64_t kFewDots = 4, kLongDot = 128, kDotBytes = 24 * 1024;
bool prefers_dots(const MatmulProblem& p) {
  if (!is_unit(p.a_col, p.k) || !is_unit(p.b_row, p.k)) return false;
  if (p.n == 1) return true;
  if (reads_b_rows(p)) return false;
  return p.m <= kFewDots || p.n <= kFewDots ||
         (p.k >= kLongDot &&
          p.k * std::min(p.m, p.n) * std::int64_t(size_of(p.dtype)) <= kDotBytes);
}

void run_direct(const void* problem) {
  MatmulProblem p = oriented(problem_of(problem));
  if (is_empty(p)) return;
  const bool dots = prefers_dots(p);  // before folding: a batch must not change it
  fold_batch(p);
  const MatmulBlocks blocks{run_of(p.k, size_of(p.dtype)), p.n, p.m, dots};
  run_parts(p, blocks, ladder_of(p.dtype).direct, 0);
}

bool refuse(std::string* reason, const char* text) {
  if (reason) *reason = text;
  return false;
}

bool accepts_any(const void*, std::string*) { return true; }
bool accepts_floating(const void* problem, std::string* reason) {
  return is_vectorised(problem_of(problem).dtype) ||
         refuse(reason, "only float32 and float64 have vector kernels");
}
bool accepts_direct(const void* problem, std::string* reason) {
  if (!accepts_floating(problem, reason)) return false;
  return with_orientation(problem, [reason](const MatmulProblem& p) {
    if (prefers_dots(p)) return true;
    if (!reads_b_rows(p))
      return refuse(reason, "the columns of b are not contiguous: they must be packed");
    return active_kernels().matmul->masked_access || p.n % lanes_of(p.dtype) == 0 ||
           refuse(reason, "n is no multiple of a vector, and this instruction set has no masks");
  });
}

// Estimates of one thread's time, for the order of the rungs more than for the value; measured on
// AVX-512 at 3.8 GHz by the matmul rungs of `tilewright bench`. All grow with the batch alike, so
// that the choice does not depend on it.
struct Rates {
  double overhead_ns, ns_per_flop;
};
constexpr Rates kNaive{10, 1.5}, kTiled{40, 0.2}, kSimd{90, 0.006}, kPacked{60, 0.0047},
    kDirect{20, 0.0047};
constexpr double kNsPerCycle = 0.27;
// B beyond this falls out of L2 between two rows of tiles; an element read again then costs this
// much, and more where long columns at a stride of whole pages share a few cache sets.
constexpr double kColdBytes = 1.2e6, kColdNs = 0.015, kConflictNs = 0.064;
constexpr std::int64_t kPageBytes = 4096, kLongColumn = 512;
// Strided rows of A beyond 1 MiB, or at a stride of pages, miss L1 and the TLB in each panel anew.
constexpr std::int64_t kColdSpanBytes = 1 << 20;
constexpr double kColdStepNs = 1.6;

double cost_of(const MatmulProblem& p, Rates rates, double extra_ns) {
  return double(p.batch) * (rates.overhead_ns + rates.ns_per_flop * flops_of(p) + extra_ns);
}
double packing_ns(const MatmulProblem& p) {
  const double per_b = p.b_col == 1 ? kPackRows : p.b_row == 1 ? kPackColumns : kPackStrided;
  const double per_a = p.a_col == 1 ? 0 : kPackStrided;
  return kNsPerCycle * double(p.k) * (per_b * double(p.n) + per_a * double(p.m));
}
double cost_naive(const void* problem) { return cost_of(problem_of(problem), kNaive, 0); }
double cost_tiled(const void* problem) { return cost_of(problem_of(problem), kTiled, 0); }
double cost_simd(const void* problem) {
  return with_orientation(problem,
                          [](const MatmulProblem& p) { return cost_of(p, kSimd, packing_ns(p)); });
}
double cost_packed(const void* problem) {
  return with_orientation(
      problem, [](const MatmulProblem& p) { return cost_of(p, kPacked, packing_ns(p)); });
}
double cost_direct(const void* problem) {
  return with_orientation(problem, [](const MatmulProblem& p) {
    const std::int64_t element = size_of(p.dtype);
    double extra_ns = 0;
    if (double(p.k) * double(p.n) * double(element) > kColdBytes) {
      const bool conflicts = p.k > kLongColumn && p.b_row * element % kPageBytes == 0;
      extra_ns +=
          (conflicts ? kConflictNs : kColdNs) * double(p.k) * double(p.n) * double((p.m + 5) / 6);
    }
    const std::int64_t step = p.a_col * element;
    if (p.a_col != 1 && (step * p.k >= kColdSpanBytes || step % kPageBytes == 0))
      extra_ns += kColdStepNs * double(p.k) * double(p.m) / 6 * (double(p.n) / 64 - 0.5);
    return cost_of(p, kDirect, extra_ns);
  });
}

constexpr Kernel kLadder[] = {
    {"matmul", "naive", "cpu", Precision::ieee, "the definition: three loops, any type",
     accepts_any, cost_naive, run_naive},
    {"matmul", "tiled", "cpu", Precision::ieee, "blocks that stay in cache", accepts_floating,
     cost_tiled, run_tiled},
    {"matmul", "simd", "cpu", Precision::ieee, "tiles in registers, panels of b packed",
     accepts_floating, cost_simd, run_simd},
    {"matmul", "packed", "cpu", Precision::ieee, "cache blocks around register tiles",
     accepts_floating, cost_packed, run_packed},
    {"matmul", "direct", "cpu", Precision::ieee, "small operands, nothing packed", accepts_direct,
     cost_direct, run_direct},
};

}  // namespace

void register_matmul_kernels() {
  for (const Kernel& kernel : kLadder) register_kernel(&kernel);
  for (const Kernel& kernel : split_kernels) register_kernel(&kernel);
}

}  // namespace tw
