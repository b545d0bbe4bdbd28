// The matmul ladder in the registry: which rung accepts which problem, what it costs, and how the
// work is cut over threads.
#include "core/cpu/matmul.h"

#include <algorithm>

#include "core/cpu/isa.h"
#include "core/memory/scratch.h"
#include "core/runtime/registry.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

const MatmulProblem& problem_of(const void* problem) {
  return *static_cast<const MatmulProblem*>(problem);
}
bool is_vectorised(DType t) { return t == DType::float32 || t == DType::float64; }
const MatmulTable::Ladder& ladder_of(DType t) {
  return active_kernels().matmul->floating[t == DType::float64];
}

// A stride along an extent of one element is never used: it may as well be the convenient one.
bool is_unit(std::int64_t stride, std::int64_t extent) { return stride == 1 || extent <= 1; }
// The micro-kernel reads rows of B as vectors where they lie.
bool reads_b_rows(const MatmulProblem& p) { return is_unit(p.b_col, p.n); }

// C^T = B^T A^T.
MatmulProblem transposed(const MatmulProblem& p) {
  return {p.dtype,   p.batch, p.n,     p.m, p.k,       p.b,     p.b_batch, p.b_col, p.b_row, p.a,
          p.a_batch, p.a_col, p.a_row, p.c, p.c_batch, p.c_col, p.c_row,   p.alpha, p.beta};
}

double flops_of(const MatmulProblem& p) { return 2.0 * double(p.m) * double(p.n) * double(p.k); }
int lanes_of(DType t) { return active_kernels().matmul->lanes[t == DType::float64]; }

// Cycles per element, measured on AVX-512: to copy rows of B into panels, to do so from columns, to
// gather strided rows of A, and to transpose a tile on its way to a C in L1 and beyond (it fills
// lines of C piece by piece).
constexpr double kPackRows = 0.4, kPackColumns = 0.5, kPackStrided = 0.8;
constexpr double kTransposedStore = 0.5, kTransposedStoreFar = 2.5, kNearElements = 16384;
// A tile one vector wide loads nine vectors for eight multiply-adds, with two ports for either.
constexpr double kNarrowTile = 1.125;

// One way round of a product: whether A's rows, B's rows, B's columns, C's rows are contiguous.
struct Way {
  double m, n;
  bool a_rows, b_rows, b_columns, c_rows;
};
Way way_of(const MatmulProblem& p) {
  return {double(p.m),           double(p.n),           is_unit(p.a_col, p.k),
          is_unit(p.b_col, p.n), is_unit(p.b_row, p.k), is_unit(p.c_col, p.n)};
}
Way other_way_of(const MatmulProblem& p) {
  return {double(p.n),           double(p.m),           is_unit(p.b_row, p.k),
          is_unit(p.a_row, p.m), is_unit(p.a_col, p.k), is_unit(p.c_row, p.m)};
}
// Estimated cycles: two vector multiply-adds each, half-filled vectors counted whole, and what
// moves.
double cycles_of(const Way& way, double k, int lanes) {
  const double vectors =
      double((std::int64_t(way.n) + lanes - 1) >> __builtin_ctz(unsigned(lanes)));
  const double moved_b = way.b_rows ? 0 : way.b_columns ? kPackColumns : kPackStrided;
  const double store = way.m * way.n <= kNearElements ? kTransposedStore : kTransposedStoreFar;
  const double moved_c = way.c_rows ? 0 : store * (1 + k / 1024);
  return way.m * k * vectors / 2 * (vectors > 1 ? 1 : kNarrowTile) +
         (way.a_rows ? 0 : kPackStrided * way.m * k) + moved_b * k * way.n +
         moved_c * way.m * way.n;
}

// Whether C^T = B^T A^T is the better way round: it may spare packing, pack the smaller matrix, or
// fill vectors that narrow rows of C would leave empty. The bits of the result are the same.
bool flips(const MatmulProblem& p) {
  if (p.a_col == 1 && p.b_col == 1 && p.c_col == 1)
    return false;  // nothing to gain: the usual case
  const int lanes = lanes_of(p.dtype);
  const double k = double(p.k);
  return cycles_of(other_way_of(p), k, lanes) < cycles_of(way_of(p), k, lanes);
}
MatmulProblem oriented(const MatmulProblem& p) { return flips(p) ? transposed(p) : p; }
// f(oriented problem), without a copy in the usual case: the choice asks this for every product.
template <class F> auto with_orientation(const void* problem, F f) {
  const MatmulProblem& p = problem_of(problem);
  return flips(p) ? f(transposed(p)) : f(p);
}

// Whole rows of a batch that shares B are rows of one product.
void fold_batch(MatmulProblem& p) {
  if (p.batch == 1 || p.m == 1 || p.b_batch != 0) return;
  if (p.a_batch != p.m * p.a_row || p.c_batch != p.m * p.c_row) return;
  p.m *= p.batch;
  p.batch = 1;
}

std::int64_t round_up(std::int64_t x, std::int64_t to) { return (x + to - 1) / to * to; }

// The packed block of B takes 5/8 of a 2 MiB L2; A, C and the next panel pass through the rest. Of
// (kc, nc) float32, (1024, 320) and (512, 640) were the fastest; the long run saves passes over C
// but sums more terms in one go (error 5.8e-7 against 4.0e-7), hence only where it leaves few runs.
constexpr std::int64_t kBlockBytes = 1024 * 320 * 4;
constexpr std::int64_t kSmallBytesOfA = 512 * 1024;
constexpr std::int64_t kLongRunBytes = 4096, kShortRunBytes = 2048;

// Depends on k alone, so that neither threads nor a batch change the order of additions.
std::int64_t run_of(std::int64_t k, std::int64_t element_bytes) {
  if (k * element_bytes <= kLongRunBytes) return k > 0 ? k : 1;
  const std::int64_t limit = (k <= 2048 ? kLongRunBytes : kShortRunBytes) / element_bytes;
  const std::int64_t runs = (k + limit - 1) / limit;
  return (k + runs - 1) / runs;
}

// Columns of a full tile.
std::int64_t tile_columns(DType t) {
  const MatmulTable& table = *active_kernels().matmul;
  return is_vectorised(t) ? table.tile_vectors * table.lanes[t == DType::float64] : 1;
}

// Rows of A that are not contiguous are packed, for a whole run along k, up to this many: 16 MiB.
constexpr std::int64_t kPackedRows = 3072;
bool packs_rows(const MatmulProblem& p) { return p.a_col != 1 && p.k > 1; }

MatmulBlocks blocks_of(const MatmulProblem& p) {
  const std::int64_t element = size_of(p.dtype), tile = tile_columns(p.dtype);
  const std::int64_t kc = run_of(p.k, element);
  // A few rows of A stay in L2 themselves: then one panel of B at a time, used up while still warm.
  if (p.a_col == 1 && p.m * kc * element <= kSmallBytesOfA) return {kc, tile, p.m, false};
  const std::int64_t columns =
      std::max(kBlockBytes / (element * kc) / tile, std::int64_t{1}) * tile;
  const std::int64_t nc = std::min(columns, round_up(p.n, tile));
  return {kc, nc, packs_rows(p) ? std::min(p.m, kPackedRows) : p.m, false};
}

// A block of B, then tiles of A with a vector (64 bytes at most) of room behind each.
std::size_t scratch_bytes(const MatmulProblem& p, const MatmulBlocks& blocks) {
  const MatmulTable& table = *active_kernels().matmul;
  const std::int64_t element = size_of(p.dtype);
  const std::int64_t tiles = packs_rows(p) ? blocks.mc / table.tile_rows + 1 : 0;
  return blocks.kc * blocks.nc * element + tiles * (blocks.kc * table.max_tile_rows * element + 64);
}

// Work in multiply-adds' time: an element that is moved once costs about as much as 16 flops.
double work_of(const MatmulProblem& p) {
  const double m = double(p.m), n = double(p.n), k = double(p.k);
  return double(p.batch) * (2 * m * n * k + 16 * (m * k + k * n + m * n));
}
// Less than this for a thread (about 10 us) is not worth waking it.
constexpr double kWorkPerPart = 2e6;

struct Grid {
  std::int64_t batch, m, n;  // parts along each
};
bool has_work_for_threads(const MatmulProblem& p) {
  return num_threads() > 1 && work_of(p) >= 2 * kWorkPerPart;
}

// Tall products are halved: a thread that loses its processor for a while then leaves the others
// less to wait for (p95 at 1024^2 down by a quarter), for packing B twice (2 %).
constexpr std::int64_t kTallRows = 512;

// Columns first: parts along n share no packing. Two parts a thread even out an unlucky one.
Grid grid_of(const MatmulProblem& p, const MatmulBlocks& blocks, std::int64_t tile) {
  const std::int64_t passes = (p.m + blocks.mc - 1) / blocks.mc;
  if (!has_work_for_threads(p)) return {1, passes, 1};
  const std::int64_t rows = std::max<std::int64_t>(passes, p.m >= kTallRows ? 2 : 1);
  const std::int64_t threads = num_threads();
  const std::int64_t parts =
      std::min<std::int64_t>(2 * threads, std::int64_t(work_of(p) / kWorkPerPart));
  if (p.batch >= 2 * threads) return {std::min(p.batch, parts), rows, 1};
  const std::int64_t each = std::max<std::int64_t>(parts / p.batch, 1);
  if (p.n >= threads * tile) {
    // As many parts as blocks of B within reason, shared evenly.
    const std::int64_t blocks_n = std::min((p.n + blocks.nc - 1) / blocks.nc, 4 * threads);
    return {p.batch, rows,
            std::min(each < threads ? each : round_up(blocks_n, threads), p.n / tile)};
  }
  return {p.batch, std::clamp(each, rows, std::max(p.m / 8, rows)), 1};
}

const void* moved(const void* base, std::int64_t elements, std::int64_t element_bytes) {
  return static_cast<const char*>(base) + elements * element_bytes;
}

// The sub-problem of batch entries, rows and columns [from, to).
struct Range {
  std::int64_t from, to;
};
// Part `i` of `parts` equal ones of [0, count), cut at multiples of `unit`.
Range part_of(std::int64_t count, std::int64_t parts, std::int64_t i, std::int64_t unit) {
  const std::int64_t units = (count + unit - 1) / unit;
  return {std::min(units * i / parts * unit, count),
          std::min(units * (i + 1) / parts * unit, count)};
}
MatmulProblem cut(const MatmulProblem& p, Range batch, Range rows, Range columns) {
  const std::int64_t size = size_of(p.dtype);
  MatmulProblem part = p;
  part.batch = batch.to - batch.from;
  part.m = rows.to - rows.from;
  part.n = columns.to - columns.from;
  part.a = moved(p.a, batch.from * p.a_batch + rows.from * p.a_row, size);
  part.b = moved(p.b, batch.from * p.b_batch + columns.from * p.b_col, size);
  part.c = const_cast<void*>(
      moved(p.c, batch.from * p.c_batch + rows.from * p.c_row + columns.from * p.c_col, size));
  return part;
}

bool is_empty(const MatmulProblem& p) { return p.batch == 0 || p.m == 0 || p.n == 0; }

// Runs `run` on every part of the grid, each with scratch of its own.
void run_parts(const MatmulProblem& p, const MatmulBlocks& blocks, MatmulTable::Run run,
               std::size_t scratch) {
  const auto run_part = [&](const MatmulProblem& part) {
    if (scratch == 0) return run(part, blocks, nullptr);
    const Scratch memory(scratch);
    run(part, blocks, memory.as<void>());
  };
  if (p.m <= blocks.mc && !has_work_for_threads(p)) return run_part(p);
  const std::int64_t tile = tile_columns(p.dtype);
  const Grid grid = grid_of(p, blocks, tile);
  parallel_chunks(grid.batch * grid.m * grid.n, [&](std::int64_t i) {
    const MatmulProblem part =
        cut(p, part_of(p.batch, grid.batch, i / (grid.m * grid.n), 1),
            part_of(p.m, grid.m, i / grid.n % grid.m, 1), part_of(p.n, grid.n, i % grid.n, tile));
    if (!is_empty(part)) run_part(part);
  });
}

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
  MatmulProblem p = oriented(problem_of(problem));
  if (is_empty(p)) return;
  fold_batch(p);
  const MatmulBlocks blocks = blocks_of(p);
  run_parts(p, blocks, ladder_of(p.dtype).packed, scratch_bytes(p, blocks));
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
}

}  // namespace tw
