// The norm over all elements of many tensors in one pass: all laid end to end and cut into pieces
// of equal size, whose terms are added up in order, in double: the squares of float32 neither
// overflow nor vanish there, and those of float64 that do are found again of scaled numbers.
#pragma once
#include <cstdint>

#include "core/cpu/optim/total_norm.h"

namespace tw {

struct TotalNormTable {
  using Terms = double (*)(std::int64_t n, const void* x);
  Terms float32[kNormTerms], float64[kNormTerms];
};

}  // namespace tw

#ifdef TW_ISA_NAME  // ---- the loops, once for each instruction set ----
#include "core/cpu/simd/widen.h"
#include "core/cpu/math/functions.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;
using Wide = Vec<double>;

// 0 adds nothing to any of them.
struct Magnitudes {
  static TW_INLINE Wide join(Wide sum, Wide x) { return sum + abs(x); }
  static TW_INLINE double one(double a, double b) { return a + b; }
};
struct Squares {
  static TW_INLINE Wide join(Wide sum, Wide x) { return fma(x, x, sum); }
  static TW_INLINE double one(double a, double b) { return a + b; }
};
struct Largest {
  static TW_INLINE Wide join(Wide best, Wide x) { return maximum(best, abs(x)); }
  static TW_INLINE double one(double a, double b) { return a != a || a > b ? a : b; }
};

// Four chains hide the latency of an addition. Each lane takes 256 terms at most, so that long sums
// lose few digits; adding up the lanes costs about 5 % then.
inline constexpr int kChains = 4;
inline constexpr int64_t kBlock = 256 * kChains * kLanes<double>;

template <class Kind, class T> TW_INLINE double block_terms(int64_t n, const T* x) {
  constexpr int D = kLanes<double>;
  Wide chain[kChains] = {0.0, 0.0, 0.0, 0.0};
  int64_t at = 0;
  for (; at + kChains * D <= n; at += kChains * D)
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c)
      chain[c] = Kind::join(chain[c], load_wider<double>(x + at + c * D, D));
  for (; at < n; at += D) {
    T some[D] = {};
    for (int i = 0; i < D && at + i < n; ++i) some[i] = x[at + i];
    chain[0] = Kind::join(chain[0], load_wider<double>(some, D));
  }
  double total = 0;
  for (int c = 0; c < kChains; ++c)
    for (int i = 0; i < D; ++i) total = Kind::one(total, chain[c][i]);
  return total;
}

template <class Kind, class T> double norm_terms(int64_t n, const void* data) {
  const auto* x = (const T*)data;
  double total = 0;
  for (int64_t at = 0; at < n; at += kBlock)
    total = Kind::one(total, block_terms<Kind>(n - at < kBlock ? n - at : kBlock, x + at));
  return total;
}

}  // namespace

extern const TotalNormTable total_norm_table;
const TotalNormTable total_norm_table = {
    {norm_terms<Magnitudes, float>, norm_terms<Squares, float>, norm_terms<Largest, float>},
    {norm_terms<Magnitudes, double>, norm_terms<Squares, double>, norm_terms<Largest, double>}};

}  // namespace tw::TW_ISA_NAME

#else  // ---- how calls become problems, once ----
#include <cmath>
#include <limits>
#include <new>
#include <string>

#include "core/base/thresholds.h"
#include "core/cpu/copy/convert.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/memory/scratch.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// Elements of 16-bit tensors that are widened at once: they stay in the L1 cache.
constexpr int64_t kStage = thresholds::kLoneStageBytes / int64_t(sizeof(float));

using Slice = NormSlice;
using Problem = TotalNormProblem;

double join(NormTerms terms, double a, double b) {
  if (terms != NormTerms::largest) return a + b;
  return a != a || a > b ? a : b;
}

double terms_of(NormTerms terms, const Slice& slice, int64_t from, int64_t n) {
  const TotalNormTable& table = *active_kernels().total_norm;
  const int kind = static_cast<int>(terms);
  const auto bytes = static_cast<int64_t>(size_of(slice.dtype));
  const char* at = static_cast<const char*>(slice.data) + from * bytes;
  if (slice.dtype == DType::float64) return table.float64[kind](n, at);
  if (slice.dtype == DType::float32) return table.float32[kind](n, at);
  alignas(64) float wide[kStage];
  double total = 0;
  for (int64_t done = 0; done < n; done += kStage) {
    const int64_t some = n - done < kStage ? n - done : kStage;
    convert_elements(slice.dtype, DType::float32, some, at + done * bytes, bytes, wide,
                     sizeof(float));
    total = join(terms, total, table.float32[kind](some, wide));
  }
  return total;
}

std::uint32_t problem_bytes(const Call& call) {
  return static_cast<std::uint32_t>(sizeof(Problem) + sizeof(Slice) * call.inputs);
}
const char* refuses(const Call& call) {
  const double order = call.attributes.real(0);
  const bool known = order == 1 || order == 2 || order == std::numeric_limits<double>::infinity();
  return known ? nullptr : "kernels are for the orders 1, 2 and inf";
}
void set_up(const Call& call, void* memory) {
  const double order = call.attributes.real(0);
  const NormTerms terms = order == 1   ? NormTerms::magnitudes
                          : order == 2 ? NormTerms::squares
                                       : NormTerms::largest;
  Problem& p =
      *new (memory) Problem{.terms = terms, .count = call.inputs, .result_type = call.out[0].dtype};
  for (int i = 0; i < p.count; ++i)
    new (p.slices() + i) Slice{.dtype = call.in[i].dtype, .n = call.in[i].count};
}
void bind(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  for (int i = 0; i < p.count; ++i) p.slices()[i].data = *at++;
  p.result = *at;
}
double cost_ns(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  double bytes = 0;
  constexpr double bytes_per_ns = 16;  // one core, from memory
  for (int i = 0; i < p.count; ++i)
    bytes += static_cast<double>(p.slices()[i].n) * size_of(p.slices()[i].dtype);
  return 100 + bytes / bytes_per_ns;
}

double terms_of_piece(const Problem& p, NormTerms terms, int64_t begin, int64_t end) {
  double total = 0;
  int64_t first = 0;  // position of slice i
  for (int i = 0; i < p.count && first < end; first += p.slices()[i++].n) {
    const Slice& slice = p.slices()[i];
    const int64_t from = begin > first ? begin - first : 0;
    const int64_t past = end - first < slice.n ? end - first : slice.n;
    if (from < past) total = join(terms, total, terms_of(terms, slice, from, past - from));
  }
  return total;
}

double terms_of_all(const Problem& p, NormTerms terms) {
  int64_t count = 0;
  for (int i = 0; i < p.count; ++i) count += p.slices()[i].n;
  const int64_t pieces = (count + thresholds::kSumPiece - 1) / thresholds::kSumPiece;
  const Scratch memory(static_cast<std::size_t>(pieces) * sizeof(double));
  auto* const partial = memory.as<double>();
  parallel_ranges(count, thresholds::kSumPiece, [&](int64_t begin, int64_t end) {
    partial[begin / thresholds::kSumPiece] = terms_of_piece(p, terms, begin, end);
  });
  double total = 0;
  for (int64_t i = 0; i < pieces; ++i) total = join(terms, total, partial[i]);
  return total;
}

// Sums of squares that have lost nothing to overflow and underflow.
bool is_safe(double squares) { return squares >= 1e-290 && squares < HUGE_VAL; }

double scaled_root(const Problem& p, double root) {
  const double top = terms_of_all(p, NormTerms::largest);
  if (!(top > 0 && top < HUGE_VAL)) return root;
  const int exponent = std::ilogb(top);
  double squares = 0;
  for (int i = 0; i < p.count; ++i) {
    const Slice& slice = p.slices()[i];
    if (slice.dtype != DType::float64) {
      squares += std::scalbn(terms_of(NormTerms::squares, slice, 0, slice.n), -2 * exponent);
      continue;
    }
    const auto* x = static_cast<const double*>(slice.data);
    for (int64_t k = 0; k < slice.n; ++k) {
      const double scaled = std::scalbn(x[k], -exponent);
      squares += scaled * scaled;
    }
  }
  return std::scalbn(std::sqrt(squares), exponent);
}

void run(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  double total = terms_of_all(p, p.terms);
  if (p.terms == NormTerms::squares) {
    const bool safe = is_safe(total) || p.result_type != DType::float64;
    total = std::sqrt(total);
    if (!safe) [[unlikely]]
      total = scaled_root(p, total);
  }
  convert_elements(DType::float64, p.result_type, 1, &total, sizeof total, p.result,
                   static_cast<int64_t>(size_of(p.result_type)));
}
std::string describe(const void* problem) {
  return std::to_string(static_cast<const Problem*>(problem)->count) + " tensors";
}

}  // namespace

void register_total_norm_kernels() {
  Lowering& lowering =
      add_kernel<Problem>("total_norm", "every array read once, all tensors, terms in double",
                          {.refuses = refuses,
                           .set_up = set_up,
                           .bind = bind,
                           .cost_ns = cost_ns,
                           .run = run,
                           .name = "one_pass"});
  lowering.bytes = problem_bytes;
  lowering.describe = describe;
}

}  // namespace tw

#endif
