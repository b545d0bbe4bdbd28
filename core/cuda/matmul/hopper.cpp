// The rung of warpgroups: tensor maps of the operands, and one launch of blocks that stay.
#include "core/cuda/matmul/hopper.h"

#include <optional>

#include "core/cuda/copy/copy.h"

namespace tw::cuda {

namespace {

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
  const Tiling wide = {256, 4, waves_ns(p, kGroupsHigh, 256, rates().groups, pieces.count)};
  const Tiling narrow = {128, 6,
                         waves_ns(p, kGroupsHigh, 128, rates().groups_narrow, pieces.count)};
  return narrow.ns < wide.ns ? narrow : wide;
}

Function hopper_kernel(const MatmulProblem& p, const Tiling& tiling) {
  static const char place = 0;
  const bool a_lines = a_lies_along_k(p), b_lines = b_lies_along_k(p);
  std::uint64_t key = static_cast<std::uint64_t>(p.dtype);
  for (const bool bit : {a_lines, b_lines, tiling.wide == 256}) key = key * 2 + bit;
  return kernel_of(&place, key, "matmul/kernels/hopper.cuh", "matmul_hopper", [&] {
    return matmul_settings(p.dtype) + define("TW_KIND", tensor_core_kind(p.dtype)) +
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

namespace {

constexpr std::int64_t kMostExtent = std::int64_t{1} << 31, kMostStep = std::int64_t{1} << 38;

// What the engine cannot take is copied first, for it to have whole rows on 16 bytes.
bool is_fit(const BoxedMatrix& x) {
  return x.step == 1 && x.row_step > 0 && x.member_step > 0 && x.row_step % 8 == 0 &&
         x.member_step % 8 == 0 && x.row_step < kMostStep && x.member_step < kMostStep;
}
std::int64_t padded(std::int64_t elements) { return divide_up(elements, 8) * 8; }
double copy_ns(const BoxedMatrix& x) {
  if (is_fit(x)) return 0;
  const double elements = static_cast<double>(x.together * x.rows * x.members);
  return 1.5 * rates().launch_ns + 4 * elements / (0.25 * rates().memory);
}

// An operand as the engine takes it.
class FitMatrix {
 public:
  FitMatrix(const BoxedMatrix& x, DType dtype) : matrix_(x) {
    if (is_fit(x) && is_on_16_bytes(x.at)) return;
    const std::int64_t pitch = padded(x.together), member = x.rows * pitch;
    room_.emplace(x.members * member * static_cast<std::int64_t>(size_of(dtype)));
    matrix_ = {room_->at(), x.together, 1, x.rows, pitch, x.members, member};
    const std::int64_t from[] = {x.member_step, x.row_step, x.step}, to[] = {member, pitch, 1};
    CopyProblem copy{};
    set_up_between(copy, dtype, dtype, Shape{x.members, x.rows, x.together}, from, to);
    copy.parameter.x = x.at;
    copy.parameter.y = room_->at();
    run_copy(&copy);
  }
  const BoxedMatrix& matrix() const { return matrix_; }

 private:
  BoxedMatrix matrix_;
  std::optional<Room> room_;
};

}  // namespace

TensorMap tensor_map_of(const BoxedMatrix& x, DType dtype, int box_rows) {
  TensorMap map{};
  const std::uint64_t extents[] = {static_cast<std::uint64_t>(x.together),
                                   static_cast<std::uint64_t>(x.rows),
                                   static_cast<std::uint64_t>(x.members)};
  const std::uint64_t strides[] = {static_cast<std::uint64_t>(x.row_step) * 2,
                                   static_cast<std::uint64_t>(x.member_step) * 2};
  const unsigned box[] = {kBoxSide, static_cast<unsigned>(box_rows), 1}, steps[] = {1, 1, 1};
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
  const char* why = nullptr;
  if (p.k == 0)
    why = "there is nothing to add up";
  else if (std::max({p.m, p.n, p.k}) >= kMostExtent)
    why = "an extent is beyond the copy engine's";
  if (why && reason) *reason = why;
  return !why;
}

void run_hopper(const void* problem) {
  const MatmulProblem& p = matmul_of(problem);
  const Pieces pieces = pieces_of(p);
  const Tiling tiling = tiling_of(p, pieces);
  const Function kernel = hopper_kernel(p, tiling);
  const FitMatrix left(boxed_a(p), p.dtype), right(boxed_b(p), p.dtype);
  const BoxedMatrix &a = left.matrix(), &b = right.matrix();
  HopperOf<void, void> parameter = {
      tensor_map_of(a, p.dtype, a_lies_along_k(p) ? kGroupsHigh : kBoxSide),
      tensor_map_of(b, p.dtype, b_lies_along_k(p) ? tiling.wide : kBoxSide),
      parameter_of(p),
      p.batch,
      a.members > 1,
      b.members > 1};
  const std::int64_t units =
      divide_up(p.m, kGroupsHigh) * divide_up(p.n, tiling.wide) * p.batch * pieces.count;
  Grid grid;
  grid.blocks[0] =
      static_cast<unsigned>(std::min<std::int64_t>(units, Gpu::current().facts.multiprocessors));
  grid.threads = kGroupsThreads;
  grid.shared_bytes =
      static_cast<unsigned>(groups_shared_bytes(tiling.stages, kGroupsHigh + tiling.wide));
  launch_pieces(p, pieces, parameter.p, [&] { Gpu::current().launch(kernel, grid, &parameter); });
}

double hopper_ns(const void* problem) {
  const MatmulProblem& p = matmul_of(problem);
  const Pieces pieces = pieces_of(p);
  return tiling_of(p, pieces).ns + (pieces.count > 1 ? 3000 : 0) + copy_ns(boxed_a(p)) +
         copy_ns(boxed_b(p));
}

}  // namespace tw::cuda
