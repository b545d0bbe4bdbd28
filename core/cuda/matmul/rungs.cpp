// The rungs of one launch a block of C: naive, tiled, registers, and parts of bfloat16.
#include "core/cuda/matmul/rungs.h"

namespace tw::cuda {

MatmulParameter parameter_of(const MatmulProblem& p) {
  return {p.m,
          p.n,
          p.k,
          p.a,
          p.b,
          p.c,
          p.a_batch,
          p.a_row,
          p.a_col,
          p.b_batch,
          p.b_row,
          p.b_col,
          p.c_batch,
          p.c_row,
          p.c_col,
          p.alpha,
          p.beta,
          p.epilogue.bias,
          p.epilogue.row,
          p.epilogue.col,
          p.epilogue.relu,
          nullptr,
          1,
          p.k};
}

std::string matmul_settings(DType dtype) {
  return define("TW_TYPE", type_name(dtype)) + define("TW_SUM", type_name(compute_dtype(dtype)));
}

namespace {

constexpr std::int64_t kMostBlocks = 65535;  // of a grid's second and third axis

std::string lines_of(const MatmulProblem& p) {
  return define("TW_A_LINES", a_lies_along_k(p) ? "1" : "0") +
         define("TW_B_LINES", b_lies_along_k(p) ? "1" : "0");
}
std::uint64_t key_of(const MatmulProblem& p) {
  return static_cast<std::uint64_t>(p.dtype) * 4 + a_lies_along_k(p) * 2u + b_lies_along_k(p);
}

}  // namespace

void launch_blocks(const MatmulProblem& p, Function kernel, int high, int wide, unsigned shared,
                   MatmulParameter parameter) {
  const auto size = static_cast<std::int64_t>(size_of(p.dtype));
  for (std::int64_t first = 0; first < p.batch; first += kMostBlocks) {
    const std::int64_t count = std::min(kMostBlocks, p.batch - first);
    for (std::int64_t i0 = 0; i0 < p.m; i0 += kMostBlocks * high) {
      const std::int64_t rows = std::min(kMostBlocks * high, p.m - i0);
      parameter.a = static_cast<const char*>(p.a) + (first * p.a_batch + i0 * p.a_row) * size;
      parameter.b = static_cast<const char*>(p.b) + first * p.b_batch * size;
      parameter.c = static_cast<char*>(p.c) + (first * p.c_batch + i0 * p.c_row) * size;
      parameter.m = rows;
      if (p.epilogue.bias)
        parameter.bias = static_cast<const char*>(p.epilogue.bias) + i0 * p.epilogue.row * size;
      Grid grid;
      grid.blocks[0] = static_cast<unsigned>(divide_up(p.n, wide));
      grid.blocks[1] = static_cast<unsigned>(divide_up(rows, high));
      grid.blocks[2] = static_cast<unsigned>(count * parameter.pieces);
      grid.shared_bytes = shared;
      Gpu::current().launch(kernel, grid, &parameter);
    }
  }
}

double waves_ns(const MatmulProblem& p, int high, int wide, double products_per_ns,
                std::int64_t pieces) {
  const double blocks = static_cast<double>(divide_up(p.m, high) * divide_up(p.n, wide)) *
                        static_cast<double>(p.batch * pieces);
  const double products = is_complex(p.dtype) ? 4 : 1;
  return waves_ns(blocks,
                  static_cast<double>(high) * wide * static_cast<double>(p.k) /
                      static_cast<double>(pieces) * products,
                  products_per_ns);
}

// ---- naive, tiled, registers ----

void run_naive(const void* problem) {
  const MatmulProblem& p = matmul_of(problem);
  static const char place = 0;
  launch_blocks(p,
                kernel_of(&place, static_cast<std::uint64_t>(p.dtype), "matmul/kernels/naive.cuh",
                          "matmul_naive", [&] { return matmul_settings(p.dtype); }),
                kNaiveHigh, kNaiveWide, 0);
}
double naive_ns(const void* problem) {
  return waves_ns(matmul_of(problem), kNaiveHigh, kNaiveWide, rates().naive);
}

void run_tiled(const void* problem) {
  const MatmulProblem& p = matmul_of(problem);
  static const char place = 0;
  launch_blocks(p,
                kernel_of(&place, static_cast<std::uint64_t>(p.dtype), "matmul/kernels/tiled.cuh",
                          "matmul_tiled", [&] { return matmul_settings(p.dtype); }),
                kTiledSide, kTiledSide, 0);
}
double tiled_ns(const void* problem) {
  return waves_ns(matmul_of(problem), kTiledSide, kTiledSide, rates().tiled);
}

namespace {

// Elements of C that a thread has along each axis: eight where there are blocks for all
// multiprocessors then, else four.
int fours_of(const MatmulProblem& p) {
  const std::int64_t blocks =
      divide_up(p.m, registers_side(8)) * divide_up(p.n, registers_side(8)) * p.batch;
  return size_of(compute_dtype(p.dtype)) == 4 && blocks >= Gpu::current().facts.multiprocessors ? 8
                                                                                                : 4;
}

void launch_registers(const MatmulProblem& p, int each, const MatmulParameter& parameter) {
  static const char place = 0;
  const int side = registers_side(each);
  const bool cut = parameter.pieces > 1;
  const std::uint64_t key = key_of(p) * 32 + static_cast<std::uint64_t>(each) * 2 + cut;
  const Function kernel =
      kernel_of(&place, key, "matmul/kernels/registers.cuh", "matmul_registers", [&] {
        return matmul_settings(p.dtype) + define("TW_ROWS", std::to_string(each)) +
               define("TW_COLUMNS", std::to_string(each)) + lines_of(p) +
               (cut ? define("TW_PIECES", "1") : "");
      });
  const int sum_bytes = static_cast<int>(size_of(compute_dtype(p.dtype)));
  launch_blocks(p, kernel, side, side,
                static_cast<unsigned>(registers_shared_bytes(each, each, sum_bytes)), parameter);
}

// As pieces_of, for tiles of 64 x 64.
Pieces small_pieces_of(const MatmulProblem& p) {
  constexpr std::int64_t kTile = registers_side(4), kFewTiles = 128, kWanted = 256,
                         kLeastTerms = 128;
  const std::int64_t tiles = divide_up(p.m, kTile) * divide_up(p.n, kTile) * p.batch;
  if (tiles > kFewTiles || p.k < 2 * kLeastTerms) return {1, p.k};
  const std::int64_t wanted = std::min(kWanted / tiles, p.k / kLeastTerms);
  const std::int64_t terms = divide_up(divide_up(p.k, wanted), 16) * 16;
  return {divide_up(p.k, terms), terms};
}

}  // namespace

void run_registers(const void* problem) {
  const MatmulProblem& p = matmul_of(problem);
  launch_registers(p, fours_of(p), parameter_of(p));
}
double registers_ns(const void* problem) {
  const MatmulProblem& p = matmul_of(problem);
  const int each = fours_of(p);
  return waves_ns(p, registers_side(each), registers_side(each),
                  each == 8 ? rates().registers : rates().registers_small);
}

bool accepts_pieces(const void* problem, std::string* reason) {
  if (small_pieces_of(matmul_of(problem)).count > 1) return true;
  if (reason) *reason = "for at most 128 tiles of 64 x 64 and at least 256 terms";
  return false;
}
void run_split_k(const void* problem) {
  const MatmulProblem& p = matmul_of(problem);
  MatmulParameter parameter = parameter_of(p);
  launch_pieces(p, small_pieces_of(p), parameter, [&] { launch_registers(p, 4, parameter); });
}
double split_k_ns(const void* problem) {
  const MatmulProblem& p = matmul_of(problem);
  return waves_ns(p, registers_side(4), registers_side(4), rates().registers_small,
                  small_pieces_of(p).count) +
         rates().launch_ns;
}

// ---- parts of bfloat16 ----

template <int parts> void run_parts(const void* problem) {
  const MatmulProblem& p = matmul_of(problem);
  static const char place = 0;
  const Function kernel =
      kernel_of(&place, key_of(p), "matmul/kernels/parts.cuh", "matmul_parts", [&] {
        return matmul_settings(p.dtype) + define("TW_PARTS", std::to_string(parts)) + lines_of(p);
      });
  launch_blocks(p, kernel, kPartsHigh, kPartsWide, parts_shared_bytes(parts));
}
template void run_parts<1>(const void*);
template void run_parts<2>(const void*);
template void run_parts<3>(const void*);

bool accepts_float(const void* problem, std::string* reason) {
  if (matmul_of(problem).dtype == DType::float32) return true;
  if (reason) *reason = "for float32";
  return false;
}

}  // namespace tw::cuda
