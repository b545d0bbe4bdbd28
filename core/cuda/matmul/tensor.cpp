// The rung of tensor cores by a warp's own instructions, and products cut along k.
#include "core/cuda/matmul/rungs.h"

namespace tw::cuda {

// ---- pieces of k ----

Pieces pieces_of(const MatmulProblem& p) {
  constexpr std::int64_t kTile = 128, kFewTiles = 64, kWanted = 128, kLeastTerms = 512;
  const std::int64_t tiles = divide_up(p.m, kTile) * divide_up(p.n, kTile) * p.batch;
  if (tiles > kFewTiles || p.k < 2 * kLeastTerms) return {1, p.k};
  const std::int64_t wanted = std::min(kWanted / tiles, p.k / kLeastTerms);
  const std::int64_t terms = divide_up(divide_up(p.k, wanted), 64) * 64;
  return {divide_up(p.k, terms), terms};
}

void join_pieces(const MatmulProblem& p, const MatmulParameter& parameter) {
  static const char place = 0;
  const Function kernel =
      kernel_of(&place, static_cast<std::uint64_t>(p.dtype), "matmul/kernels/join.cuh",
                "matmul_join", [&] { return matmul_settings(p.dtype); });
  Grid grid = grid_for(p.m * p.n);
  grid.blocks[2] = static_cast<unsigned>(p.batch);
  Gpu::current().launch(kernel, grid, &parameter);
}

// ---- tensor ----

namespace {

// Whether an operand can be copied 16 bytes at a time: elements together along the line, lines and
// members of the batch on multiples of 16 bytes.
bool is_whole(std::int64_t size, std::int64_t line_step, std::int64_t row_step, std::int64_t rows,
              std::int64_t batch_step, std::int64_t batch) {
  const auto fits = [size](std::int64_t step) { return step * size % 16 == 0; };
  return line_step == 1 && (rows == 1 || fits(row_step)) && (batch == 1 || fits(batch_step));
}
bool a_is_whole(const MatmulProblem& p) {
  const auto size = static_cast<std::int64_t>(size_of(p.dtype));
  return a_lies_along_k(p) ? is_whole(size, p.a_col, p.a_row, p.m, p.a_batch, p.batch)
                           : is_whole(size, p.a_row, p.a_col, p.k, p.a_batch, p.batch);
}
bool b_is_whole(const MatmulProblem& p) {
  const auto size = static_cast<std::int64_t>(size_of(p.dtype));
  return b_lies_along_k(p) ? is_whole(size, p.b_row, p.b_col, p.n, p.b_batch, p.batch)
                           : is_whole(size, p.b_col, p.b_row, p.k, p.b_batch, p.batch);
}

// The large tile where it keeps all multiprocessors busy: it reads half as much for each product.
int side_of(const MatmulProblem& p, const Pieces& pieces) {
  const std::int64_t tiles = divide_up(p.m, 128) * divide_up(p.n, 128) * p.batch * pieces.count;
  return tiles >= Gpu::current().facts.multiprocessors ? 128 : 64;
}

Function tensor_kernel(const MatmulProblem& p, int side) {
  static const char place = 0;
  const bool a_lines = a_lies_along_k(p), b_lines = b_lies_along_k(p);
  const bool a_whole = a_is_whole(p) && is_on_16_bytes(p.a);
  const bool b_whole = b_is_whole(p) && is_on_16_bytes(p.b);
  std::uint64_t key = static_cast<std::uint64_t>(p.dtype);
  for (const bool bit : {a_lines, b_lines, a_whole, b_whole, side == 128}) key = key * 2 + bit;
  return kernel_of(&place, key, "matmul/kernels/tensor.cuh", "matmul_tensor", [&] {
    const auto flag = [](const char* name, bool on) { return define(name, on ? "1" : "0"); };
    return matmul_settings(p.dtype) + define("TW_KIND", tensor_core_kind(p.dtype)) +
           define("TW_SIDE", std::to_string(side)) + flag("TW_A_LINES", a_lines) +
           flag("TW_B_LINES", b_lines) + flag("TW_A_WHOLE", a_whole) + flag("TW_B_WHOLE", b_whole);
  });
}

// A batch longer than a grid takes is cut.
void launch_members(const MatmulProblem& p, Function kernel, int side, MatmulParameter parameter) {
  const auto size = static_cast<std::int64_t>(size_of(p.dtype));
  constexpr std::int64_t kMostMembers = 65535;  // of a grid's third axis; pieces have far fewer
  for (std::int64_t first = 0; first < p.batch; first += kMostMembers) {
    const std::int64_t count = std::min(kMostMembers, p.batch - first);
    parameter.a = static_cast<const char*>(p.a) + first * p.a_batch * size;
    parameter.b = static_cast<const char*>(p.b) + first * p.b_batch * size;
    parameter.c = static_cast<char*>(p.c) + first * p.c_batch * size;
    Grid grid;
    grid.blocks[0] = static_cast<unsigned>(divide_up(p.m, side) * divide_up(p.n, side));
    grid.blocks[2] = static_cast<unsigned>(count * parameter.pieces);
    grid.threads = kTensorThreads;
    grid.shared_bytes = static_cast<unsigned>(tensor_shared_bytes(side));
    Gpu::current().launch(kernel, grid, &parameter);
  }
}

}  // namespace

bool accepts_halves(const void* problem, std::string* reason) {
  const DType dtype = matmul_of(problem).dtype;
  if (dtype == DType::bfloat16 || dtype == DType::float16) return true;
  if (reason) *reason = "for bfloat16 and float16";
  return false;
}

void run_tensor(const void* problem) {
  const MatmulProblem& p = matmul_of(problem);
  const Pieces pieces = pieces_of(p);
  const int side = side_of(p, pieces);
  const Function kernel = tensor_kernel(p, side);
  MatmulParameter parameter = parameter_of(p);
  launch_pieces(p, pieces, parameter, [&] { launch_members(p, kernel, side, parameter); });
}

double tensor_ns(const void* problem) {
  const MatmulProblem& p = matmul_of(problem);
  const Pieces pieces = pieces_of(p);
  const int side = side_of(p, pieces);
  double rate = rates().warps * (side == 128 ? 1 : 0.6);
  if (p.dtype == DType::float32) rate /= 2;
  if (!a_is_whole(p) || !b_is_whole(p)) rate /= 3;
  const double join = pieces.count > 1 ? 3000 : 0;
  return waves_ns(p, side, side, rate, pieces.count) + join;
}

}  // namespace tw::cuda
