#include "core/cpu/matmul/blocking.h"

#include <algorithm>
#include <limits>

#include "core/base/cpu_info.h"
#include "core/base/thresholds.h"
#include "core/cpu/matmul/layout.h"
#include "core/cpu/matmul/tuning.h"
#include "core/memory/scratch.h"
#include "core/runtime/choice.h"
#include "core/runtime/thread_pool.h"

namespace tw {

namespace {

std::int64_t round_up(std::int64_t x, std::int64_t to) { return (x + to - 1) / to * to; }

// Work in multiply-adds' time: an element that is moved once costs about as much as 16 flops.
double work_of(const MatmulProblem& p) {
  const double m = double(p.m), n = double(p.n), k = double(p.k);
  return double(p.batch) * (2 * m * n * k + 16 * (m * k + k * n + m * n));
}
std::int64_t threads_of_a_product() {
  const std::int64_t most = matmul_tuning().most_threads;
  return most > 0 ? std::min<std::int64_t>(most, num_threads()) : num_threads();
}
constexpr std::int64_t kFewTerms = 64, kLineBytes = 64;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
// From this size on a C of few terms is faster written around the caches; of at most four terms
// only where L3 hardly holds it (32 MiB of L3: 16 MiB 179 us, around it 412; 20 MiB the same).
// Tiles whose rows are one line each leave memory too little at a place: with AVX2 4096 x 16 x 4096
// takes 13.4 ms, around the caches 19.0.
std::int64_t stream_bytes(std::int64_t k) {
  constexpr std::int64_t kVeryFewTerms = 4;
  const std::int64_t row_bytes = tile_columns(DType::float32) * std::int64_t(sizeof(float));
  if (k > kVeryFewTerms)
    return row_bytes > kLineBytes ? thresholds::kLeastProductStreamBytes : kNever;
  return std::clamp(cpu_info().l3_bytes * 5 / 8, thresholds::kLeastProductStreamBytes,
                    thresholds::kMostProductStreamBytes);
}

struct Grid {
  std::int64_t batch, m, n;  // parts along each
};
bool has_work_for_threads(const MatmulProblem& p) {
  return threads_of_a_product() > 1 && work_of(p) >= 2 * matmul_tuning().work_per_part;
}

// Columns first: parts along n share no packing. Several parts a thread even out an unlucky one.
Grid grid_of(const MatmulProblem& p, const MatmulBlocks& blocks, std::int64_t tile) {
  const std::int64_t passes = (p.m + blocks.mc - 1) / blocks.mc;
  if (!has_work_for_threads(p)) return {1, passes, 1};
  const std::int64_t rows = std::max<std::int64_t>(passes, p.m >= thresholds::kTallRows ? 2 : 1);
  const std::int64_t threads = threads_of_a_product();
  const std::int64_t most = matmul_tuning().parts_per_thread * threads;
  const std::int64_t parts =
      std::min(most, std::int64_t(work_of(p) / matmul_tuning().work_per_part));
  if (p.batch >= most) return {std::min(p.batch, parts), rows, 1};
  const std::int64_t each = std::max<std::int64_t>(parts / p.batch, 1);
  if (p.n >= threads * tile) {
    // As many parts as blocks of B within reason, shared evenly.
    const std::int64_t blocks_n = std::min((p.n + blocks.nc - 1) / blocks.nc, 2 * most);
    const std::int64_t columns =
        std::min(each < threads ? each : round_up(blocks_n, threads), p.n / tile);
    return {p.batch, columns >= most ? passes : rows, columns};
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
  if (p.epilogue.bias)
    part.epilogue.bias =
        moved(p.epilogue.bias, rows.from * p.epilogue.row + columns.from * p.epilogue.col, size);
  return part;
}

// A C beyond L3 would come from memory again for each run along k. Of its parts, A's rows of one
// run take a quarter of L3 and C an eighth: 4096 x 4096 x 4096 takes 1.5-2.5 % less so, 2048 the
// same.
void set_parts(const MatmulProblem& p, MatmulBlocks& blocks) {
  const std::int64_t element = size_of(p.dtype), l3 = cpu_info().l3_bytes;
  if (l3 <= 0 || blocks.kc >= p.k || packs_rows(p) || p.m * p.n * element <= l3 / 2) return;
  const std::int64_t rows = std::min(l3 / 4 / (blocks.kc * element), p.m);
  if (rows < thresholds::kTallRows || !uses(Optimization::l3_blocking)) return;
  blocks.part_m = rows;
  blocks.part_n = std::max(l3 / 8 / (rows * element) / blocks.nc, std::int64_t{1}) * blocks.nc;
}

}  // namespace

std::int64_t run_of(std::int64_t k, std::int64_t element_bytes) {
  const std::int64_t limit = std::max<std::int64_t>(matmul_tuning().run_bytes / element_bytes, 1);
  // A half more still fits L1 beside B's rows, and spares a second pass over C: 1400 and 1500 terms
  // in one run took 2 % less than in two, 4096 in three runs 2 % more than in four.
  if (k <= limit + limit / 2) return k > 0 ? k : 1;
  const std::int64_t runs = (k + limit - 1) / limit;
  return (k + runs - 1) / runs;
}

std::int64_t tile_columns(DType t) {
  const MatmulTable& table = *active_kernels().matmul;
  return is_vectorised(t) ? table.tile_vectors * table.lanes[t == DType::float64] : 1;
}

bool streams_result(const MatmulProblem& p) {
  const std::int64_t size = size_of(p.dtype);
  return p.k <= kFewTerms && p.beta == 0 && p.c_col == 1 && p.c_row * size % kLineBytes == 0 &&
         p.c_batch * size % kLineBytes == 0 &&
         reinterpret_cast<std::uintptr_t>(p.c) % kLineBytes == 0 &&
         p.batch * p.m * p.n * size >= stream_bytes(p.k) && uses(Optimization::streaming_stores);
}

MatmulBlocks blocks_of(const MatmulProblem& p) {
  const std::int64_t element = size_of(p.dtype), tile = tile_columns(p.dtype);
  std::int64_t kc = run_of(p.k, element);
  // Where few rows of A and of C stay in L2 themselves, visits to C are cheap, and a run of one
  // chain makes B's block wide: long pieces of rows are what the hardware reads ahead. The chains
  // are added up in the same order, so that it changes no bit.
  const bool adds_in_order = p.alpha == 1 && p.beta == 0 && kc >= p.k;
  if (adds_in_order && p.c_col == 1 &&
      p.m * kMatmulChain * element <= matmul_tuning().small_bytes_of_a &&
      uses(Optimization::wide_blocks))
    kc = std::min(kc, kMatmulChain);
  const std::int64_t columns =
      std::max(matmul_tuning().block_bytes / (element * kc) / tile, std::int64_t{1}) * tile;
  const std::int64_t nc = std::min(columns, round_up(p.n, tile));
  MatmulBlocks blocks{kc, nc, packs_rows(p) ? std::min(p.m, thresholds::kPackedRows) : p.m,
                      streams_result(p)};
  set_parts(p, blocks);
  return blocks;
}

// A block of B, then tiles of A with a vector (64 bytes at most) of room behind each.
std::size_t scratch_bytes(const MatmulProblem& p, const MatmulBlocks& blocks) {
  const MatmulTable& table = *active_kernels().matmul;
  const std::int64_t element = size_of(p.dtype);
  const std::int64_t tiles = packs_rows(p) ? blocks.mc / table.tile_rows + 1 : 0;
  return blocks.kc * blocks.nc * element + tiles * (blocks.kc * table.max_tile_rows * element + 64);
}

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
  auto run_chunk = [&](std::int64_t i) {
    const MatmulProblem part =
        cut(p, part_of(p.batch, grid.batch, i / (grid.m * grid.n), 1),
            part_of(p.m, grid.m, i / grid.n % grid.m, 1), part_of(p.n, grid.n, i % grid.n, tile));
    if (!is_empty(part)) run_part(part);
  };
  parallel_chunks(grid.batch * grid.m * grid.n, run_chunk, int(threads_of_a_product()));
}

void apply_epilogue(const MatmulProblem& p) {
  if (!p.epilogue.bias && !p.epilogue.relu) return;
  constexpr std::int64_t kBand = 1 << 16;  // elements
  const std::int64_t bands = (p.m * p.n + kBand - 1) / kBand;
  parallel_chunks(
      p.batch * bands,
      [&](std::int64_t i) {
        ladder_of(p.dtype).epilogue(cut(p, part_of(p.batch, p.batch, i / bands, 1),
                                        part_of(p.m, bands, i % bands, 1), {0, p.n}));
      },
      int(threads_of_a_product()));
}

void run_packed(const MatmulProblem& problem) {
  MatmulProblem p = oriented(problem);
  if (is_empty(p)) return;
  fold_batch(p);
  const MatmulBlocks blocks = blocks_of(p);
  run_parts(p, blocks, ladder_of(p.dtype).packed, scratch_bytes(p, blocks));
}

}  // namespace tw
