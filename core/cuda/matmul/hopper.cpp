// The rung of warpgroups: tensor maps of the operands, and one launch of blocks that stay.
#include "core/cuda/matmul/hopper.h"

namespace tw::cuda {

namespace {

constexpr int kHigh = 128, kThreads = 384;

// With an axis of one element its step does not matter, and members that share a matrix are one.
BoxedMatrix boxed(const void* at, std::int64_t together, std::int64_t step, std::int64_t rows,
                  std::int64_t row_step, std::int64_t batch, std::int64_t batch_step) {
  constexpr std::int64_t kAnyStep = 8;
  const bool shared = batch == 1 || batch_step == 0;
  return {at,
          together,
          together == 1 ? 1 : step,
          rows,
          rows == 1 ? kAnyStep : row_step,
          shared ? 1 : batch,
          shared ? kAnyStep : batch_step};
}
// C's width of a tile: the wide one reads less for each product, the narrow one leaves fewer
// multiprocessors idle at the end.
struct Tiling {
  int wide, stages;
  double ns;
};
Tiling tiling_of(const MatmulProblem& p, const Pieces& pieces) {
  const Tiling wide = {256, 4, waves_ns(p, kHigh, 256, rates().groups, pieces.count)};
  const Tiling narrow = {128, 6, waves_ns(p, kHigh, 128, rates().groups_narrow, pieces.count)};
  return narrow.ns < wide.ns ? narrow : wide;
}

// 128 bytes of each row of both operands a stage; sums on their way; two barriers a stage.
unsigned shared_bytes(const Tiling& tiling) {
  constexpr int kStaging = 8 * 16 * 32 * 4;
  return static_cast<unsigned>(tiling.stages * ((kHigh + tiling.wide) * 128 + 16) + kStaging);
}

Function hopper_kernel(const MatmulProblem& p, const Tiling& tiling) {
  static const char place = 0;
  const bool a_lines = a_lies_along_k(p), b_lines = b_lies_along_k(p);
  std::uint64_t key = static_cast<std::uint64_t>(p.dtype);
  for (const bool bit : {a_lines, b_lines, tiling.wide == 256}) key = key * 2 + bit;
  return kernel_of(&place, key, "matmul/hopper.cuh", "matmul_hopper", [&] {
    return matmul_settings(p.dtype) + define("TW_KIND", p.dtype == DType::float16 ? "1" : "0") +
           define("TW_WIDE", std::to_string(tiling.wide)) +
           define("TW_STAGES", std::to_string(tiling.stages)) +
           define("TW_A_LINES", a_lines ? "1" : "0") + define("TW_B_LINES", b_lines ? "1" : "0");
  });
}

}  // namespace

BoxedMatrix boxed_a(const MatmulProblem& p) {
  return a_lies_along_k(p) ? boxed(p.a, p.k, p.a_col, p.m, p.a_row, p.batch, p.a_batch)
                           : boxed(p.a, p.m, p.a_row, p.k, p.a_col, p.batch, p.a_batch);
}
BoxedMatrix boxed_b(const MatmulProblem& p) {
  return b_lies_along_k(p) ? boxed(p.b, p.k, p.b_row, p.n, p.b_col, p.batch, p.b_batch)
                           : boxed(p.b, p.n, p.b_col, p.k, p.b_row, p.batch, p.b_batch);
}

const char* why_unboxed(const BoxedMatrix& x) {
  constexpr std::int64_t kMostExtent = std::int64_t{1} << 31, kMostStep = std::int64_t{1} << 38;
  if (x.step != 1) return "an operand has no axis whose elements lie together";
  if (x.row_step <= 0 || x.member_step <= 0) return "an operand's rows repeat or go backwards";
  if (x.row_step % 8 || x.member_step % 8)
    return "an operand's rows are not a multiple of 16 bytes apart";
  if (x.together >= kMostExtent || x.rows >= kMostExtent || x.row_step >= kMostStep ||
      x.member_step >= kMostStep)
    return "an operand is too large for the copy engine";
  return nullptr;
}

TensorMap tensor_map_of(const BoxedMatrix& x, DType dtype, int box_rows) {
  TensorMap map{};
  const std::uint64_t extents[] = {static_cast<std::uint64_t>(x.together),
                                   static_cast<std::uint64_t>(x.rows),
                                   static_cast<std::uint64_t>(x.members)};
  const std::uint64_t strides[] = {static_cast<std::uint64_t>(x.row_step) * 2,
                                   static_cast<std::uint64_t>(x.member_step) * 2};
  const unsigned box[] = {64, static_cast<unsigned>(box_rows), 1}, steps[] = {1, 1, 1};
  check(driver().encode_tensor_map(
            &map, dtype == DType::float16 ? tensor_map::float16 : tensor_map::bfloat16, 3,
            const_cast<void*>(x.at), extents, strides, box, steps, 0,
            tensor_map::rows_of_128_turned, tensor_map::fetch_256, 0),
        "an operand cannot be described to the copy engine");
  return map;
}

bool is_hopper(std::string* reason) {
  const int capability = Gpu::current().facts.capability;
  if (capability == 90) return true;
  if (reason)
    *reason = "for compute capability 9.0; this GPU has " + std::to_string(capability / 10) + "." +
              std::to_string(capability % 10);
  return false;
}

bool accepts_hopper(const void* problem, std::string* reason) {
  const MatmulProblem& p = matmul_of(problem);
  if (!accepts_halves(problem, reason) || !is_hopper(reason)) return false;
  const char* why = p.k == 0 ? "there is nothing to add up" : why_unboxed(boxed_a(p));
  if (!why) why = why_unboxed(boxed_b(p));
  if (why && reason) *reason = why;
  return !why;
}

void run_hopper(const void* problem) {
  const MatmulProblem& p = matmul_of(problem);
  // The copy engine cannot begin elsewhere; views that do are few.
  if (!is_on_16_bytes(p.a) || !is_on_16_bytes(p.b)) return run_tensor(problem);
  const Pieces pieces = pieces_of(p);
  const Tiling tiling = tiling_of(p, pieces);
  const Function kernel = hopper_kernel(p, tiling);
  const BoxedMatrix a = boxed_a(p), b = boxed_b(p);
  HopperParameter parameter = {tensor_map_of(a, p.dtype, a_lies_along_k(p) ? kHigh : 64),
                               tensor_map_of(b, p.dtype, b_lies_along_k(p) ? tiling.wide : 64),
                               parameter_of(p),
                               p.batch,
                               a.members > 1,
                               b.members > 1};
  const std::int64_t units =
      divide_up(p.m, kHigh) * divide_up(p.n, tiling.wide) * p.batch * pieces.count;
  Grid grid;
  grid.blocks[0] =
      static_cast<unsigned>(std::min<std::int64_t>(units, Gpu::current().facts.multiprocessors));
  grid.threads = kThreads;
  grid.shared_bytes = shared_bytes(tiling);
  launch_pieces(p, pieces, parameter.p, [&] { Gpu::current().launch(kernel, grid, &parameter); });
}

double hopper_ns(const void* problem) {
  const MatmulProblem& p = matmul_of(problem);
  const Pieces pieces = pieces_of(p);
  return tiling_of(p, pieces).ns + (pieces.count > 1 ? 3000 : 0);
}

}  // namespace tw::cuda
