// Rung split in the registry: which machine can, which problems it takes, and what they cost.
#include "core/base/cpu_info.h"
#include "core/cpu/isa.h"
#include "core/cpu/matmul/layout.h"
#include "core/cpu/matmul/split.h"

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
struct Rates {
  double pack_ns[3], ns_per_flop[3];  // by parts; an element packed, both operands alike
};
// Tile registers: 310, 460 and 1200 GFLOP/s at 2048 and above, packing included. Only compiled
// where this was written: figures of a study with the same blocks.
constexpr Rates kTileRates{{0.1, 0.17, 0.25}, {1 / 1250.0, 1 / 480.0, 1 / 325.0}};
// Vectors: twice the multiply-adds of float32, so six products cost three times float32's time.
// Measured where two such instructions start in a cycle (docs/notes/matmul.md).
constexpr Rates kVectorRates{{0.1, 0.17, 0.25}, {1 / 420.0, 1 / 145.0, 1 / 73.0}};
constexpr double kOverheadNs = 400;
// To pack an operand that lies the other way round, and one without contiguous elements.
constexpr double kTransposedNs = 0.2, kGatheredNs = 1;

struct Backend {
  const SplitTable* table = nullptr;
  Rates rates{};
};
const Backend& best_backend() {
  static const Backend best = []() -> Backend {
#if TW_BUILT_amx
    if (has_features({"amx_bf16"}) && may_use_tiles()) return {&amx::split_table, kTileRates};
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
          rates.ns_per_flop[parts - 1] * 2 * m * n * k};
}
template <int parts> double cost(const void* problem) {
  const MatmulProblem& p = problem_of(problem);
  const Cost one = cost_of<parts>(p);
  return double(p.batch) * (kOverheadNs + one.packing + one.products);
}
template <int parts> std::vector<CostTerm> terms(const void* problem) {
  const MatmulProblem& p = problem_of(problem);
  const Cost one = cost_of<parts>(p);
  const double batch = double(p.batch);
  return {{"overhead", batch * kOverheadNs},
          {"packing", batch * one.packing},
          {"products", batch * one.products}};
}

template <int parts> void run(const void* problem) {
  run_split(*split_backend(), parts, problem_of(problem));
}

bool is_bfloat16(const void* problem) { return problem_of(problem).dtype == DType::bfloat16; }

}  // namespace

const SplitTable* split_backend() {
  return active_isa() == Isa::avx512 ? best_backend().table : nullptr;
}

const Kernel split_kernels[kSplitKernels] = {
    {"matmul", "bf16x6", "cpu", Precision::fp32,
     "three bfloat16 parts, six products: float32's error", accepts<3>, cost<3>, run<3>, terms<3>},
    {"matmul", "bf16x3", "cpu", Precision::high, "two bfloat16 parts, three products: 16 bits",
     accepts<2>, cost<2>, run<2>, terms<2>},
    {"matmul", "bf16", "cpu", Precision::medium, "operands rounded to bfloat16, summed in float32",
     accepts<1>, cost<1>, run<1>, terms<1>, is_bfloat16},
};

}  // namespace tw
