// Rung split in the registry: which machine can, which problems it takes, and what they cost.
#include "core/base/cpu_info.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/matmul/layout.h"
#include "core/cpu/matmul/split.h"
#include "core/cpu/matmul/tuning.h"

namespace tw {

#if TW_BUILT_amx
namespace amx {
extern const SplitTable split_table;
}
#endif
#if TW_BUILT_avx512_bf16
namespace avx512_bf16 {
extern const SplitTable split_table;
}
#endif

namespace {

// Estimates of one thread's time. A flop is one of 2 m n k, however many partial products it takes.
// The rate of six products is a row of tuning.inc, since `tilewright tune` weighs it against
// float32's; the others come into question only where the precision setting allows them.
struct Rates {
  double pack_ns[3], ns_per_flop[2];  // by parts; an element packed, both operands alike
};
// Tile registers: medians of a shared machine, relative to the packed rung's
// (docs/notes/matmul.md).
constexpr Rates kTileRates{{0.1, 0.17, 0.25}, {1 / 580.0, 1 / 270.0}};
// Vectors: twice the multiply-adds of float32, so three products cost 1.5 times float32's time.
// Measured where two such instructions start in a cycle (docs/notes/matmul.md).
constexpr Rates kVectorRates{{0.1, 0.17, 0.25}, {1 / 420.0, 1 / 145.0}};
constexpr double kOverheadNs = 400;
template <int parts> double overhead_ns() {
  return parts == 3 ? double(matmul_tuning().bf16x6_overhead_ns) : kOverheadNs;
}
// To pack an operand that lies the other way round, and one without contiguous elements.
constexpr double kTransposedNs = 0.2, kGatheredNs = 1;

struct Backend {
  const SplitTable* table = nullptr;
  Rates rates{};
};
const Backend& best_backend() {
  static const Backend best = []() -> Backend {
#if TW_BUILT_amx
    if (splits_on_tiles()) return {&amx::split_table, kTileRates};
#endif
#if TW_BUILT_avx512_bf16
    if (has_features({"avx512_bf16"})) return {&avx512_bf16::split_table, kVectorRates};
#endif
    return {};
  }();
  return best;
}

bool refuse(std::string* reason, const char* text) {
  if (reason) *reason = text;
  return false;
}

template <int parts> bool accepts(const void* problem, std::string* reason) {
  const DType dtype = problem_of(problem).dtype;
  if (parts == 1 && dtype != DType::float32 && dtype != DType::bfloat16)
    return refuse(reason, "only float32 and bfloat16 are multiplied as bfloat16");
  if (parts > 1 && dtype != DType::float32)
    return refuse(reason, "only float32 is split into bfloat16 parts");
  if (split_backend()) return true;
  return refuse(reason,
                best_backend().table
                    ? "the instruction set in use has no dot products of bfloat16: use avx512"
                    : "this machine has no dot products of bfloat16 (AVX512_BF16 or AMX)");
}

template <int parts> double flop_ns(const Rates& rates) {
  if constexpr (parts == 3)
    return matmul_tuning().bf16x6_ns_per_flop;
  else
    return rates.ns_per_flop[parts - 1];
}

// An element of an operand with these strides: what packing wants contiguous, and the other one.
double pack_ns(double plain, std::int64_t wanted, std::int64_t other) {
  return wanted == 1 ? plain : plain + (other == 1 ? kTransposedNs : kGatheredNs);
}

// Rounded up to a power of two's multiple.
double whole(std::int64_t x, std::int64_t unit) { return double((x + unit - 1) & -unit); }

struct Cost {  // of one product of the batch, in ns
  double packing, products;
};
template <int parts> Cost cost_of(const MatmulProblem& p) {
  const Rates& rates = best_backend().rates;
  const double m = whole(p.m, kSplitLines), n = whole(p.n, kSplitLines),
               k = whole(p.k, kSplitTerms);
  return {m * k * pack_ns(rates.pack_ns[parts - 1], p.a_col, p.a_row) +
              n * k * pack_ns(rates.pack_ns[parts - 1], p.b_col, p.b_row),
          flop_ns<parts>(rates) * 2 * m * n * k};
}
template <int parts> double cost(const void* problem) {
  const MatmulProblem& p = problem_of(problem);
  const Cost one = cost_of<parts>(p);
  return double(p.batch) * (overhead_ns<parts>() + one.packing + one.products);
}
template <int parts> std::vector<CostTerm> terms(const void* problem) {
  const MatmulProblem& p = problem_of(problem);
  const Cost one = cost_of<parts>(p);
  const double batch = double(p.batch);
  return {{"overhead", batch * overhead_ns<parts>()},
          {"packing", batch * one.packing},
          {"arithmetic", batch * one.products}};
}

template <int parts> void run(const void* problem) {
  run_split(*split_backend(), parts, problem_of(problem));
}

bool has_other_rungs(const void*) { return true; }

bool is_bfloat16(const void* problem) { return problem_of(problem).dtype == DType::bfloat16; }

}  // namespace

bool splits_on_tiles() {
#if TW_BUILT_amx
  return has_features({"amx_bf16"}) && may_use_tiles();
#else
  return false;
#endif
}

const SplitTable* split_backend() {
  return active_isa() == Isa::avx512 ? best_backend().table : nullptr;
}

const Kernel split_kernels[kSplitKernels] = {
    {.op = "matmul",
     .name = "bf16x6",
     .device = "cpu",
     .precision = Precision::fp32,
     .help = "three bfloat16 parts, six products: float32's error",
     .accepts = accepts<3>,
     .cost_ns = cost<3>,
     .run = run<3>,
     .cost_terms = terms<3>,
     .depends_on_batch = has_other_rungs},
    {.op = "matmul",
     .name = "bf16x3",
     .device = "cpu",
     .precision = Precision::high,
     .help = "two bfloat16 parts, three products: 16 bits",
     .accepts = accepts<2>,
     .cost_ns = cost<2>,
     .run = run<2>,
     .cost_terms = terms<2>,
     .depends_on_batch = has_other_rungs},
    {.op = "matmul",
     .name = "bf16",
     .device = "cpu",
     .precision = Precision::medium,
     .help = "operands rounded to bfloat16, summed in float32",
     .accepts = accepts<1>,
     .cost_ns = cost<1>,
     .run = run<1>,
     .cost_terms = terms<1>,
     .keeps_all_bits = is_bfloat16,
     .depends_on_batch = has_other_rungs},
};

}  // namespace tw
