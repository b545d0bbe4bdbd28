// The matmul ladder in the registry: which rung accepts which problem, and what it costs.
#include "core/base/thresholds.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/matmul/matmul.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/cpu/matmul/complex.h"
#include "core/cpu/matmul/layout.h"
#include "core/cpu/matmul/blocking.h"
#include "core/cpu/matmul/strassen.h"
#include "core/cpu/matmul/split.h"
#include "core/cpu/matmul/tuning.h"
#include "core/cpu/matmul/integer.h"
#include "core/runtime/choice.h"
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

void run_packed(const void* problem) {
  const MatmulProblem& p = problem_of(problem);
  if (is_vectorised(p.dtype)) return tw::run_packed(p);
  const MatmulProblem way = oriented(p);
  if (is_empty(way)) return;
  run_parts(way, {way.k, way.n, way.m, false},
            active_kernels().matmul_integer->packed[index_of(way.dtype)], kIntegerScratchBytes);
}

// Rows of A and columns of B that are contiguous along k make dot products. They read each vector
// for few sums, which pays only where packing B would cost more: for a handful of rows or columns,
// or with all of B in L1 and sums long enough to make up for adding the lanes. A few long columns
// are worth a copy that makes them contiguous.
bool prefers_dots(const MatmulProblem& p) {
  if (!is_unit(p.a_col, p.k)) return false;
  if (!is_unit(p.b_row, p.k)) return copies_for_dots(p.m, p.n, p.k, lanes_of(p.dtype));
  if (p.n == 1) return true;
  if (reads_b_rows(p)) return false;
  return p.m <= thresholds::kFewDots || p.n <= thresholds::kFewDots ||
         (p.k >= thresholds::kLongDot &&
          p.k * std::min(p.m, p.n) * std::int64_t(size_of(p.dtype)) <= matmul_tuning().dot_bytes);
}

// Rows of C that are long or fit a vector, and terms that fit the registers. A B that must be
// copied and one that is loaded ahead ask for some rows that use it.
bool is_of_few_terms(const MatmulProblem& p) {
  const MatmulTable& table = *active_kernels().matmul;
  const int lanes = lanes_of(p.dtype);
  if (p.k == 0 || p.n == 1 || p.c_col != 1) return false;
  if (is_off(Optimization::outer_product_form)) return false;
  if (!table.masked_access && p.n % lanes != 0) return false;
  if (p.n <= lanes) return p.k <= table.short_row_terms && p.m >= thresholds::kNarrow;
  return p.k <= table.long_row_terms && p.n > 2 * tile_columns(p.dtype) &&
         p.m >= (reads_b_rows(p) ? 2 : thresholds::kNarrow);
}

// The ways differ in the order of additions where B's columns are contiguous.
DirectWay direct_way(const MatmulProblem& p) {
  if (is_of_few_terms(p)) return DirectWay::few_terms;
  const bool dots =
      !is_batch_invariant() && prefers_dots(p) && uses(Optimization::dot_product_form);
  return dots ? DirectWay::dots : DirectWay::tiles;
}

void run_direct(const void* problem) {
  MatmulProblem p = oriented(problem_of(problem));
  if (is_empty(p)) return;
  DirectWay way = direct_way(p);  // before folding: a batch must not change a bit
  const std::int64_t batch = p.batch;
  fold_batch(p);
  if (p.batch != batch && way == DirectWay::tiles && is_of_few_terms(p)) way = DirectWay::few_terms;
  const bool streams = way != DirectWay::dots && streams_result(p);
  const bool copies = way == DirectWay::dots && !is_unit(p.b_row, p.k);
  if (way == DirectWay::few_terms) uses(Optimization::outer_product_form);
  run_parts(p, {run_of(p.k, size_of(p.dtype)), p.n, p.m, streams, way}, ladder_of(p.dtype).direct,
            copies ? p.k * p.n * size_of(p.dtype) : 0);
}

bool refuse(std::string* reason, const char* text) {
  if (reason) *reason = text;
  return false;
}

// Whose rungs may differ in bits: sums of integers are exact, and 16-bit floats have no other rung.
bool has_other_rungs(const void* problem) {
  const DType dtype = problem_of(problem).dtype;
  return is_vectorised(dtype) || is_complex(dtype);
}

bool accepts_any(const void*, std::string*) { return true; }
bool accepts_floating(const void* problem, std::string* reason) {
  return is_vectorised(problem_of(problem).dtype) ||
         refuse(reason, "only float32 and float64 have vector kernels");
}
bool accepts_parts(const void* problem, std::string* reason) {
  return is_vectorised(part_dtype(problem_of(problem).dtype)) ||
         refuse(reason, "only float32, float64 and complex numbers of them have vector kernels");
}
bool accepts_packed(const void* problem, std::string* reason) {
  const DType dtype = problem_of(problem).dtype;
  return is_vectorised(part_dtype(dtype)) || !is_floating(dtype) ||
         refuse(reason, "16-bit floats are computed in float32");
}
bool accepts_direct(const void* problem, std::string* reason) {
  if (!accepts_parts(problem, reason)) return false;
  if (is_complex(problem_of(problem).dtype)) {
    const RealProduct plan = as_real(problem_of(problem));
    return accepts_direct(&plan.real, reason);
  }
  return with_orientation(problem, [reason](const MatmulProblem& p) {
    if (direct_way(p) != DirectWay::tiles) return true;
    if (!reads_b_rows(p))
      return refuse(reason, "the columns of b are not contiguous: they must be packed");
    return active_kernels().matmul->masked_access || p.n % lanes_of(p.dtype) == 0 ||
           refuse(reason, "n is no multiple of a vector, and this instruction set has no masks");
  });
}

// Estimates of one thread's time, for the order of the rungs more than for the value; measured on
// AVX-512 at 3.8 GHz by the matmul rungs of `tilewright bench`, and on this machine by `tilewright
// tune`. All terms grow with the batch alike, so that the choice does not depend on it.
struct Cost {  // of one product of the batch, in ns
  double overhead, arithmetic, packing, misses;
  double total(const MatmulProblem& p) const {
    return double(p.batch) * (overhead + arithmetic + packing + misses);
  }
};
Cost cost_of(const MatmulProblem& p, double overhead_ns, double ns_per_flop) {
  return {overhead_ns, ns_per_flop * flops_of(p), 0, 0};
}
constexpr double kNsPerCycle = 0.27;
// Rows of B whole pages apart share one set of L1 for each of their lines: few of them fit it.
constexpr std::int64_t kPageBytes = 4096, kL1Ways = 12, kLongColumn = 512;
// Elements of a row of A at a stride of whole lines share the sets of L1 that the stride leaves.
constexpr std::int64_t kLineBytes = 64, kL1Sets = 64;
bool crowds_l1(std::int64_t stride_bytes, std::int64_t count) {
  if (stride_bytes % kLineBytes != 0) return false;
  return count > kL1Ways * (kL1Sets / std::gcd(kL1Sets, stride_bytes / kLineBytes));
}
// Beyond that, and beyond 1 MiB, they miss L1 and the TLB in each panel anew.
constexpr std::int64_t kColdSpanBytes = 1 << 20;
constexpr double kColdStepNs = 1.6;

double packing_ns(const MatmulProblem& p) {
  const double per_b = p.b_col == 1 ? kPackRows : p.b_row == 1 ? kPackColumns : kPackStrided;
  const double per_a = p.a_col == 1 ? 0 : kPackStrided;
  return kNsPerCycle * double(p.k) * (per_b * double(p.n) + per_a * double(p.m));
}
double misses_ns(const MatmulProblem& p) {
  if (p.m == 1) return 0;  // B is read once, as packing would
  // B lies as packing would lay it.
  if (p.b_col == 1 && p.b_row == p.n && p.n <= lanes_of(p.dtype) && p.a_col == 1) return 0;
  const std::int64_t element = size_of(p.dtype);
  const MatmulTuning& tuning = matmul_tuning();
  const std::int64_t b_bytes = p.k * p.n * element;
  const bool aliased = p.k > kL1Ways && p.b_row * element % kPageBytes == 0;
  double each = 0;
  if (b_bytes > 2 * tuning.dot_bytes) each += tuning.miss_ns;  // more than L1 holds
  // In runs of one chain all rows of tiles use a stripe of B before the next.
  const bool by_stripes =
      p.alpha == 1 && p.beta == 0 && p.c_col == 1 && run_of(p.k, element) >= p.k;
  if (!by_stripes && aliased) each += tuning.alias_ns;
  if (!by_stripes && b_bytes > tuning.cold_bytes)
    each += double(aliased && p.k > kLongColumn ? tuning.conflict_ns : tuning.cold_ns);
  double ns = each * double(p.k) * double(p.n) * double((p.m + 5) / 6) * double(element) / 4;
  const std::int64_t step = p.a_col * element;
  if (p.a_col != 1 && (step * p.k >= kColdSpanBytes || crowds_l1(step, p.k)))
    ns += kColdStepNs * double(p.k) * double(p.m) / 6 * (double(p.n) / 64 - 0.5);
  return ns;
}

// What each rung costs, the problem being oriented as the rung takes it.
Cost cost_naive(const MatmulProblem& p) {
  return cost_of(p, matmul_tuning().naive_overhead_ns, matmul_tuning().naive_ns_per_flop);
}
Cost cost_tiled(const MatmulProblem& p) {
  return cost_of(p, matmul_tuning().tiled_overhead_ns, matmul_tuning().tiled_ns_per_flop);
}
Cost cost_simd(const MatmulProblem& p) {
  Cost cost = cost_of(p, matmul_tuning().simd_overhead_ns, matmul_tuning().simd_ns_per_flop);
  cost.packing = packing_ns(p);
  return cost;
}
// A multiply-add of two vectors of words takes a cycle or so; each run along k goes through C.
constexpr double kWordCycles = 1, kWordsOverheadNs = 300, kWordStore = 0.3;
Cost cost_packed_words(const MatmulProblem& p) {
  const double m = double(p.m), n = double(p.n), k = double(p.k);
  const double bytes = double(std::max<std::size_t>(size_of(p.dtype), is_bool(p.dtype) ? 1 : 2));
  const double vector = lanes_of(DType::float32) * 4;
  Cost cost = cost_of(p, kWordsOverheadNs, 0);
  cost.arithmetic = kWordCycles * kNsPerCycle * m * k * std::max(n * bytes / vector, 1.0);
  const double runs = std::ceil(k / double(kIntegerRun));
  cost.packing = kNsPerCycle * ((k * n + m * k) + kWordStore * runs * m * n);
  return cost;
}
Cost cost_packed(const MatmulProblem& p) {
  if (!is_vectorised(p.dtype)) return cost_packed_words(p);
  Cost cost = cost_of(p, matmul_tuning().packed_overhead_ns, matmul_tuning().packed_ns_per_flop);
  cost.packing = packing_ns(p);
  return cost;
}
// To add up the lanes of a dot product, a sixteenth of what a fold of 16 takes. Tiles of narrower
// rows waste as much.
constexpr double kFoldCycles = 4;

Cost cost_direct(const MatmulProblem& p) {
  Cost cost = cost_of(p, matmul_tuning().direct_overhead_ns, matmul_tuning().direct_ns_per_flop);
  const DirectWay way = direct_way(p);
  if (way == DirectWay::tiles) cost.misses = misses_ns(p);
  if (way == DirectWay::dots && p.n >= lanes_of(p.dtype))
    cost.arithmetic += kFoldCycles * kNsPerCycle * double(p.m) * double(p.n);
  return cost;
}

using CostOf = Cost (*)(const MatmulProblem&);
// Of a complex product, what the real one costs and what is rearranged for it.
template <CostOf cost> Cost cost_with(const void* problem) {
  if (!is_complex(problem_of(problem).dtype)) return with_orientation(problem, cost);
  const RealProduct plan = as_real(problem_of(problem));
  Cost out = with_orientation(&plan.real, cost);
  out.packing += plan.moved_ns;
  return out;
}
template <CostOf cost> double estimate(const void* problem) {
  return cost_with<cost>(problem).total(problem_of(problem));
}
// For rungs to which the orientation makes no difference.
template <CostOf cost> double plain_estimate(const void* problem) {
  const MatmulProblem& p = problem_of(problem);
  return cost(p).total(p);
}
template <CostOf cost> std::vector<CostTerm> terms(const void* problem) {
  const Cost c = cost_with<cost>(problem);
  const double batch = double(problem_of(problem).batch);
  return {{"overhead", batch * c.overhead},
          {"arithmetic", batch * c.arithmetic},
          {"packing", batch * c.packing},
          {"cache misses", batch * c.misses}};
}

double cost_strassen(const void* problem) {
  const StrassenCost cost = strassen_cost(problem_of(problem));
  return cost.products_ns + cost.sums_ns;
}
std::vector<CostTerm> strassen_terms(const void* problem) {
  const StrassenCost cost = strassen_cost(problem_of(problem));
  return {{"products", cost.products_ns}, {"sums", cost.sums_ns}};
}
void run_strassen(const void* problem) { tw::run_strassen(problem_of(problem)); }

// Sums of a complex product that is cut may have another shape than the one that was accepted.
void run_direct_or_packed(const void* problem) {
  accepts_direct(problem, nullptr) ? run_direct(problem) : run_packed(problem);
}
template <void (*run)(const void* problem), void (*run_real)(const void* problem) = run>
void run_any_part(const void* problem) {
  const MatmulProblem& p = problem_of(problem);
  is_complex(p.dtype) ? run_complex(p, run_real) : run(problem);
}

constexpr Kernel kLadder[] = {
    {.op = "matmul",
     .name = "naive",
     .device = "cpu",
     .precision = Precision::ieee,
     .help = "the definition: three loops, any type",
     .accepts = accepts_any,
     .cost_ns = plain_estimate<cost_naive>,
     .run = run_naive,
     .cost_terms = terms<cost_naive>,
     .takes_memory = false,
     .depends_on_batch = has_other_rungs},
    {.op = "matmul",
     .name = "tiled",
     .device = "cpu",
     .precision = Precision::ieee,
     .help = "blocks that stay in cache",
     .accepts = accepts_floating,
     .cost_ns = plain_estimate<cost_tiled>,
     .run = run_tiled,
     .cost_terms = terms<cost_tiled>,
     .takes_memory = false,
     .depends_on_batch = has_other_rungs},
    {.op = "matmul",
     .name = "simd",
     .device = "cpu",
     .precision = Precision::ieee,
     .help = "tiles in registers, panels of b packed",
     .accepts = accepts_parts,
     .cost_ns = estimate<cost_simd>,
     .run = run_any_part<run_simd>,
     .cost_terms = terms<cost_simd>},
    {.op = "matmul",
     .name = "packed",
     .device = "cpu",
     .precision = Precision::ieee,
     .help = "cache blocks around register tiles",
     .accepts = accepts_packed,
     .cost_ns = estimate<cost_packed>,
     .run = run_any_part<run_packed>,
     .cost_terms = terms<cost_packed>},
    {.op = "matmul",
     .name = "direct",
     .device = "cpu",
     .precision = Precision::ieee,
     .help = "small operands, nothing packed",
     .accepts = accepts_direct,
     .cost_ns = estimate<cost_direct>,
     .run = run_any_part<run_direct, run_direct_or_packed>,
     .cost_terms = terms<cost_direct>},
    {.op = "matmul",
     .name = "strassen",
     .device = "cpu",
     .precision = Precision::high,
     .help = "seven half products for eight, large sizes",
     .accepts = accepts_floating,
     .cost_ns = cost_strassen,
     .run = run_strassen,
     .cost_terms = strassen_terms,
     .depends_on_batch = has_other_rungs},
};

}  // namespace

double packed_ns(const MatmulProblem& problem) { return estimate<cost_packed>(&problem); }
bool multiply_unpacked(const MatmulProblem& p) {
  if (!accepts_direct(&p, nullptr)) return false;
  run_direct(&p);
  return true;
}

void register_matmul_kernels() {
  for (const Kernel& kernel : kLadder) register_kernel(&kernel);
  for (const Kernel& kernel : split_kernels) register_kernel(&kernel);
}

}  // namespace tw
