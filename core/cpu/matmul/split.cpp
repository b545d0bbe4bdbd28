// Rung split: packs operands as bfloat16 parts, block by block on all threads, and multiplies them.
// What the parts cannot carry is seen while packing; it is scaled by powers of two or left to
// `packed`.
#include "core/cpu/matmul/split.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <optional>

#include "core/base/cpu_info.h"
#include "core/base/thresholds.h"
#include "core/cpu/copy/convert.h"
#include "core/cpu/matmul/layout.h"
#include "core/cpu/matmul/blocking.h"
#include "core/memory/scratch.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

std::int64_t ceil_divide(std::int64_t x, std::int64_t by) { return (x + by - 1) / by; }
std::int64_t round_up(std::int64_t x, std::int64_t to) { return ceil_divide(x, to) * to; }

// ---- what the parts can carry ----

// Exponents of an operand's elements: all but zeros lie in [2^low, 2^(high + 1)).
struct Exponents {
  int high, low;
  bool zero, finite;
};
int exponent_of(std::uint32_t magnitude) {
  return magnitude >> 23 ? int(magnitude >> 23) - 127 : 31 - std::countl_zero(magnitude) - 149;
}
Exponents exponents_of(const SplitRange& range) {
  if (range.largest == 0) return {0, 0, true, true};
  return {exponent_of(range.largest), exponent_of(range.below_smallest + 1), false,
          range.largest < 0x7f800000};
}

// The dot products take denormals as zero. No partial sum of finite operands is one if the smallest
// quantum of all products is normal: an element's last bit is 2^-23 of it, its high part's 2^-7,
// the middle parts' 2^-15 each. And no part is one if an element's last bit is normal.
constexpr int kNormal = -126, kLastBit = 23, kProductQuantum = 30, kHighQuantum = 7;
// The high part may be the next power of two; sums of k terms in whatever order stay finite.
constexpr int kHighest = 126;

struct Limits {
  int lowest, lowest_product, highest_product;
  Limits(int parts, std::int64_t k)
      : lowest(kNormal + (parts > 1 ? kLastBit : 0)),
        lowest_product(kNormal + (parts > 1 ? kProductQuantum : 2 * kHighQuantum)),
        highest_product(123 - int(std::bit_width(std::uint64_t(k)))) {}
};

bool may_overflow(const Exponents& a, const Exponents& b, const Limits& limits) {
  return !a.finite || !b.finite || a.high + b.high > limits.highest_product;
}
bool fits(const Exponents& a, const Exponents& b, const Limits& limits) {
  if (!a.finite || !b.finite) return false;
  if (a.zero || b.zero) return true;
  return a.high <= kHighest && b.high <= kHighest && a.low >= limits.lowest &&
         b.low >= limits.lowest && a.low + b.low >= limits.lowest_product &&
         a.high + b.high <= limits.highest_product;
}

struct Scales {
  int a = 0, b = 0;  // exponents of two that the operands are multiplied by
};
// Where operands lie too low or far apart. Null where nothing helps, and where sums may overflow:
// then the order of additions decides what becomes infinite, and that is the ieee kernels' to say.
std::optional<Scales> scales_for(const Exponents& a, const Exponents& b, const Limits& limits) {
  constexpr int kFactor = 100;  // 2^100 and its inverse are normal numbers
  if (may_overflow(a, b, limits)) return std::nullopt;
  const int least = limits.lowest_product - a.low - b.low;
  Scales scales;
  scales.a =
      std::max({limits.lowest - a.low, least - std::min(kHighest - b.high, kFactor), -kFactor});
  scales.b = std::max({limits.lowest - b.low, least - scales.a, -kFactor});
  const bool held = scales.a <= std::min(kHighest - a.high, kFactor) &&
                    scales.b <= std::min(kHighest - b.high, kFactor) &&
                    scales.a + scales.b + a.high + b.high <= limits.highest_product;
  return held ? std::optional(scales) : std::nullopt;
}

// The range of an operand as its pieces are packed on several threads.
class SharedRange {
 public:
  void add(const SplitRange& range) {
    raise(largest_, range.largest);
    raise(above_, ~range.below_smallest);
  }
  Exponents exponents() const { return exponents_of({largest_, ~above_}); }

 private:
  static void raise(std::atomic<std::uint32_t>& to, std::uint32_t x) {
    std::uint32_t before = to.load(std::memory_order_relaxed);
    while (before < x && !to.compare_exchange_weak(before, x, std::memory_order_relaxed)) {
    }
  }
  std::atomic<std::uint32_t> largest_ = 0, above_ = 0;
};

// ---- blocks ----

// Lines packed by one thread at a time.
constexpr std::int64_t kPackLines = 128;
// Rows of one task are whole micro-tiles of every backend.
constexpr std::int64_t kTaskRows = 32;

// Of packed lines, which come back from the last-level cache.
std::int64_t packed_bytes() {
  const std::int64_t l3 = cpu_info().l3_bytes;
  return l3 > 0 ? std::min(l3, thresholds::kPackedBytes) : thresholds::kPackedBytes;
}

struct CacheBlocks {
  std::int64_t kc, nc, lines;  // along k, columns of B in L2, lines packed at a time
};
// Of L2 a block of B takes three eighths; panels of A and C pass through the rest.
CacheBlocks blocks_for(const SplitTable& backend, int parts, std::int64_t k) {
  const std::int64_t l2 = cpu_info().l2_bytes > 0 ? cpu_info().l2_bytes : 1 << 20;
  const std::int64_t runs = std::max<std::int64_t>(ceil_divide(k, backend.run_terms[parts - 1]), 1);
  const std::int64_t kc = round_up(std::max<std::int64_t>(ceil_divide(k, runs), 1), kSplitTerms);
  const std::int64_t line_bytes = kc * parts * 2, unit = backend.tile_columns;
  const std::int64_t nc = std::max<std::int64_t>(l2 * 3 / 8 / line_bytes / unit, 1) * unit;
  return {kc, nc, round_up(packed_bytes() / line_bytes, nc * 2)};
}

template <class F> void each(std::int64_t count, bool threads, F f) {
  if (threads) return parallel_chunks(count, f);
  for (std::int64_t i = 0; i < count; ++i) f(i);
}

const void* moved(const void* base, std::int64_t elements, DType dtype) {
  return static_cast<const char*>(base) + elements * std::int64_t(size_of(dtype));
}

// One product without a batch.
class Solver {
 public:
  Solver(const SplitTable& backend, int parts, const MatmulProblem& p)
      : backend_(backend),
        parts_(parts),
        p_(p),
        blocks_(blocks_for(backend, parts, p.k)),
        limits_(parts, p.k),
        threads_(double(p.m) * double(p.n) * double(p.k) >= kWorkForThreads) {}

  void solve() {
    if (p_.beta == 0 && attempt({}, true)) return;
    measure();
    if (fits(a_range_.exponents(), b_range_.exponents(), limits_)) {
      attempt({}, false);
    } else if (const auto s = scales_for(a_range_.exponents(), b_range_.exponents(), limits_)) {
      attempt(*s, false);
    } else {
      solve_ieee();
    }
  }

 private:
  // About 20 us, a few times what it costs to wake a thread.
  static constexpr double kWorkForThreads = 2e6;
  using Packer = void (*)(const SplitSource&, std::uint16_t*, SplitRange*);

  std::int64_t panel_elements() const { return blocks_.kc * parts_ * kSplitLines; }
  std::int64_t lines_of(std::int64_t extent) const {
    return round_up(std::min(extent, blocks_.lines), kSplitLines);
  }
  std::size_t packed_bytes(std::int64_t extent) const {
    return lines_of(extent) * blocks_.kc * parts_ * 2;
  }
  SplitSource rows(std::int64_t i, std::int64_t l, int scale) const {
    return lines(p_.a, i, p_.m, p_.a_row, p_.a_col, l, scale);
  }
  SplitSource columns(std::int64_t j, std::int64_t l, int scale) const {
    return lines(p_.b, j, p_.n, p_.b_col, p_.b_row, l, scale);
  }
  // From line `first` of `extent` and term l on.
  SplitSource lines(const void* matrix, std::int64_t first, std::int64_t extent, std::int64_t line,
                    std::int64_t term, std::int64_t l, int scale) const {
    return {moved(matrix, first * line + l * term, p_.dtype),
            std::min(blocks_.lines, extent - first),
            std::min(blocks_.kc, p_.k - l),
            line,
            term,
            p_.dtype == DType::bfloat16,
            parts_,
            std::ldexp(1.0f, scale)};
  }

  void pack(Packer packer, const SplitSource& source, std::uint16_t* out, SharedRange& seen) const {
    const std::int64_t line = round_up(source.terms, kSplitTerms) * parts_;
    each(ceil_divide(source.lines, kPackLines), threads_, [&](std::int64_t i) {
      SplitSource piece = source;
      piece.data = moved(source.data, i * kPackLines * source.line, p_.dtype);
      piece.lines = std::min(kPackLines, source.lines - i * kPackLines);
      SplitRange range;
      packer(piece, out + i * kPackLines * line, &range);
      seen.add(range);
    });
  }

  // All of both operands, without a product.
  void measure() {
    const Scratch memory(packed_bytes(std::max(p_.m, p_.n)));
    for (std::int64_t l = 0; l < p_.k; l += blocks_.kc) {
      for (std::int64_t i = 0; i < p_.m; i += blocks_.lines)
        pack(backend_.pack_rows, rows(i, l, 0), memory.as<std::uint16_t>(), a_range_);
      for (std::int64_t j = 0; j < p_.n; j += blocks_.lines)
        pack(backend_.pack_columns, columns(j, l, 0), memory.as<std::uint16_t>(), b_range_);
    }
  }

  // Where bfloat16 sums need several runs they are kept as float32 until all are there.
  bool keeps_sums() const { return p_.dtype == DType::bfloat16 && p_.k > blocks_.kc; }

  // False as soon as `watched` operands turn out not to fit the parts.
  bool attempt(Scales scales, bool watched) {
    const Scratch a_memory(packed_bytes(p_.m)), b_memory(packed_bytes(p_.n));
    const Scratch sums(keeps_sums() ? p_.m * p_.n * sizeof(float) : 0);
    const SplitResult result{p_.c,
                             p_.c_row,
                             p_.c_col,
                             p_.dtype == DType::bfloat16,
                             std::ldexp(p_.alpha, -scales.a - scales.b),
                             p_.beta};
    const SplitResult partial =
        keeps_sums() ? SplitResult{sums.as<void>(), p_.n, 1, false, 1, 0} : result;
    for (std::int64_t j = 0; j < p_.n; j += blocks_.lines)
      for (std::int64_t l = 0; l == 0 || l < p_.k; l += blocks_.kc) {
        const SplitSource b = columns(j, l, scales.b);
        pack(backend_.pack_columns, b, b_memory.as<std::uint16_t>(), b_range_);
        for (std::int64_t i = 0; i < p_.m; i += blocks_.lines) {
          const SplitSource a = rows(i, l, scales.a);
          pack(backend_.pack_rows, a, a_memory.as<std::uint16_t>(), a_range_);
          if (watched && !fits(a_range_.exponents(), b_range_.exponents(), limits_)) return false;
          SplitProduct product{a_memory.as<std::uint16_t>(),
                               b_memory.as<std::uint16_t>(),
                               a.lines,
                               b.lines,
                               ceil_divide(a.terms, kSplitTerms),
                               parts_,
                               from(partial, i, j)};
          if (l > 0) product.result.beta = 1;
          multiply(product);
        }
      }
    if (keeps_sums()) store(sums.as<float>(), result);
    return true;
  }

  static SplitResult from(SplitResult result, std::int64_t i, std::int64_t j) {
    const DType dtype = result.bfloat16 ? DType::bfloat16 : DType::float32;
    result.c = const_cast<void*>(moved(result.c, i * result.row + j * result.col, dtype));
    return result;
  }

  // Columns of B that fit L2, and rows so that threads have enough tasks to share.
  void multiply(const SplitProduct& whole) const {
    const std::int64_t across = ceil_divide(whole.n, blocks_.nc);
    const std::int64_t width = round_up(ceil_divide(whole.n, across), backend_.tile_columns);
    const std::int64_t wanted = threads_ ? ceil_divide(4 * num_threads(), across) : 1;
    const std::int64_t height = round_up(ceil_divide(whole.m, wanted), kTaskRows);
    const std::int64_t down = ceil_divide(whole.m, height),
                       line = whole.blocks * kSplitTerms * parts_;
    each(across * down, threads_, [&](std::int64_t task) {
      const std::int64_t i = task % down * height, j = task / down * width;
      SplitProduct part = whole;
      part.a += i * line;
      part.b += j * line;
      part.m = std::min(height, whole.m - i);
      part.n = std::min(width, whole.n - j);
      part.result = from(whole.result, i, j);
      backend_.multiply(part);
    });
  }

  void store(const float* sums, const SplitResult& result) const {
    each(ceil_divide(p_.m, kPackLines), threads_, [&](std::int64_t task) {
      const std::int64_t i = task * kPackLines;
      backend_.store(std::min(kPackLines, p_.m - i), p_.n, sums + i * p_.n, p_.n,
                     from(result, i, 0));
    });
  }

  void solve_ieee() const {
    if (p_.dtype == DType::float32) return run_packed(p_);
    // bfloat16 as float32 copies.
    const Scratch a(p_.m * p_.k * sizeof(float)), b(p_.k * p_.n * sizeof(float));
    const Scratch c(p_.m * p_.n * sizeof(float));
    copy_strided(p_.dtype, DType::float32, Shape{p_.m, p_.k}, p_.a, Strides{p_.a_row, p_.a_col},
                 a.as<void>(), Strides{p_.k, 1});
    copy_strided(p_.dtype, DType::float32, Shape{p_.k, p_.n}, p_.b, Strides{p_.b_row, p_.b_col},
                 b.as<void>(), Strides{p_.n, 1});
    const MatmulProblem wide{
        DType::float32, 1, p_.m, p_.n, p_.k, a.as<void>(), 0, p_.k, 1, b.as<void>(), 0, p_.n, 1,
        c.as<void>(),   0, p_.n, 1};
    run_packed(wide);
    store(c.as<float>(), {p_.c, p_.c_row, p_.c_col, true, p_.alpha, p_.beta});
  }

  const SplitTable& backend_;
  const int parts_;
  const MatmulProblem p_;
  const CacheBlocks blocks_;
  const Limits limits_;
  const bool threads_;
  SharedRange a_range_, b_range_;
};

MatmulProblem entry_of(const MatmulProblem& p, std::int64_t i) {
  MatmulProblem entry = p;
  entry.batch = 1;
  entry.a = moved(p.a, i * p.a_batch, p.dtype);
  entry.b = moved(p.b, i * p.b_batch, p.dtype);
  entry.c = const_cast<void*>(moved(p.c, i * p.c_batch, p.dtype));
  return entry;
}

}  // namespace

// Rows of C are written as vectors, so a C with contiguous columns is computed transposed.
void run_split(const SplitTable& backend, int parts, const MatmulProblem& problem) {
  MatmulProblem p = problem.c_col != 1 && problem.c_row == 1 ? transposed(problem) : problem;
  if (is_empty(p)) return;
  const MatmulProblem whole = p;
  p.epilogue = {};
  fold_batch(p);
  const auto solve_entry = [&](std::int64_t i) { Solver(backend, parts, entry_of(p, i)).solve(); };
  each(p.batch, p.batch >= 2 * num_threads(), solve_entry);  // nested, threads run one entry each
  apply_epilogue(whole);
}

}  // namespace tw
