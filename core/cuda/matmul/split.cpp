// The rung of float32 in two halves: rows scaled and split, products on warpgroups (9.0) or on a
// warp's own instructions, and tiles that do not fit into halves by what rung registers does.
#include "core/cuda/matmul/hopper.h"
#include "core/cuda/matmul/split_parameters.h"

namespace tw::cuda {

namespace {

// Of tiles of C.
constexpr int kSide = kFlaggedSide;
using ScalingParameter = ScalingOf<void, void>;
using SplitOperand = SplitOperandOf<void>;
using SplitParameter = SplitOf<void, void, void>;
using GroupsParameter = SplitGroupsOf<void, void, void>;

// A or B, by the axis that is not k.
struct Side {
  const void* x;
  std::int64_t outers, terms, outer_step, k_step, batch, batch_step;
  bool lines;  // elements lie together along k
};
Side left_of(const MatmulProblem& p) {
  return {p.a, p.m, p.k, p.a_row, p.a_col, p.batch, p.a_batch, a_lies_along_k(p)};
}
Side right_of(const MatmulProblem& p) {
  return {p.b, p.n, p.k, p.b_col, p.b_row, p.batch, p.b_batch, b_lies_along_k(p)};
}

// An operand's halves, exponents and flags in the GPU's memory.
class Split {
 public:
  explicit Split(const Side& side)
      : shared_(side.batch == 1 || side.batch_step == 0),
        members_(shared_ ? 1 : side.batch),
        lines_(side.lines ? side.outers : side.terms),
        together_(side.lines ? side.terms : side.outers),
        pitch_(divide_up(together_, 8) * 8),
        groups_(divide_up(side.outers, kFlagRows)),
        halves_bytes_(aligned(members_ * lines_ * pitch_ * 2)),
        exponents_bytes_(aligned(members_ * side.outers * 4)),
        memory_(2 * halves_bytes_ + exponents_bytes_ + aligned(members_ * groups_ * 4)),
        outers_(side.outers) {
    fill(side);
  }

  SplitOperand operand() const {
    return {high(),  low(),   pitch_,  lines_ * pitch_, exponents(),
            flags(), outers_, groups_, shared_};
  }
  // Of the high halves or of the low ones.
  TensorMap map(bool is_high, bool along_k) const {
    const BoxedMatrix matrix = {is_high ? high() : low(), together_, 1, lines_, pitch_, members_,
                                lines_ * pitch_};
    return tensor_map_of(matrix, DType::float16, along_k ? kSide : kBoxSide);
  }

 private:
  static std::int64_t aligned(std::int64_t bytes) { return divide_up(bytes, 256) * 256; }
  char* high() const { return static_cast<char*>(memory_.at()); }
  char* low() const { return high() + halves_bytes_; }
  std::int32_t* exponents() const {
    return reinterpret_cast<std::int32_t*>(high() + 2 * halves_bytes_);
  }
  std::int32_t* flags() const {
    return reinterpret_cast<std::int32_t*>(high() + 2 * halves_bytes_ + exponents_bytes_);
  }
  void fill(const Side& side) const;

  const bool shared_;
  const std::int64_t members_, lines_, together_, pitch_, groups_, halves_bytes_, exponents_bytes_;
  const Room memory_;
  const std::int64_t outers_;
};

void Split::fill(const Side& side) const {
  static const char places[2] = {};
  const auto kernel = [&](int which, const char* name) {
    return kernel_of(&places[which], side.lines, "matmul/kernels/scaling.cuh", name, [&] {
      return matmul_settings(DType::float32) + define("TW_LINES", side.lines ? "1" : "0");
    });
  };
  const ScalingParameter parameter = {
      side.x, outers_, side.terms, members_,    side.outer_step, side.k_step, side.batch_step,
      high(), low(),   pitch_,     exponents(), flags(),         groups_};
  Grid grid;
  grid.blocks[0] = static_cast<unsigned>(groups_);
  grid.blocks[2] = static_cast<unsigned>(members_);
  Gpu::current().launch(kernel(0, "matmul_scale"), grid, &parameter);
  Gpu::current().launch(kernel(1, "matmul_split"), grid_for(members_ * lines_ * pitch_ / 8),
                        &parameter);
}

Function split_kernel(const MatmulProblem& p, const char* place, const char* file,
                      const char* kernel, const std::string& more = {}) {
  const bool a_lines = a_lies_along_k(p), b_lines = b_lies_along_k(p);
  return kernel_of(place, a_lines * 2u + b_lines, file, kernel, [&] {
    return matmul_settings(DType::float32) + define("TW_A_LINES", a_lines ? "1" : "0") +
           define("TW_B_LINES", b_lines ? "1" : "0") + more;
  });
}

void launch_groups(const MatmulProblem& p, const Split& a, const Split& b) {
  static const char place = 0;
  const bool a_lines = a_lies_along_k(p), b_lines = b_lies_along_k(p);
  const GroupsParameter parameter = {a.map(true, a_lines), a.map(false, a_lines),
                                     b.map(true, b_lines), b.map(false, b_lines),
                                     parameter_of(p),      p.batch,
                                     a.operand(),          b.operand()};
  const std::int64_t units = divide_up(p.m, kSide) * divide_up(p.n, kSide) * p.batch;
  Grid grid;
  grid.blocks[0] =
      static_cast<unsigned>(std::min<std::int64_t>(units, Gpu::current().facts.multiprocessors));
  grid.threads = kGroupsThreads;
  grid.shared_bytes = split_groups_shared_bytes();
  Gpu::current().launch(
      split_kernel(p, &place, "matmul/kernels/split_groups.cuh", "matmul_split_groups"), grid,
      &parameter);
}

void launch_warps(const MatmulProblem& p, const SplitParameter& parameter) {
  static const char place = 0;
  Grid grid;
  grid.blocks[0] = static_cast<unsigned>(divide_up(p.m, kSide) * divide_up(p.n, kSplitWarpsWide));
  grid.blocks[2] = static_cast<unsigned>(p.batch);
  grid.shared_bytes = split_warps_shared_bytes();
  Gpu::current().launch(
      split_kernel(p, &place, "matmul/kernels/split_warps.cuh", "matmul_split_warps"), grid,
      &parameter);
}

// Every tile's block looks whether it is one of those that were left out.
void launch_flagged(const MatmulProblem& p, const SplitParameter& parameter) {
  static const char place = 0;
  Grid grid;
  grid.blocks[0] = static_cast<unsigned>(divide_up(p.n, kSide));
  grid.blocks[1] = static_cast<unsigned>(divide_up(p.m, kSide));
  grid.blocks[2] = static_cast<unsigned>(p.batch);
  grid.shared_bytes = registers_shared_bytes(kFlaggedEach, kFlaggedEach, sizeof(float));
  const std::string each = std::to_string(kFlaggedEach);
  Gpu::current().launch(split_kernel(p, &place, "matmul/kernels/flagged.cuh", "matmul_flagged",
                                     define("TW_ROWS", each) + define("TW_COLUMNS", each)),
                        grid, &parameter);
}

}  // namespace

bool accepts_split(const void* problem, std::string* reason) {
  const MatmulProblem& p = matmul_of(problem);
  if (!accepts_float(problem, reason)) return false;
  // A grid's axes, and the copy engine's coordinates.
  constexpr std::int64_t kFewTerms = 512, kMostBlocks = 65535, kMostExtent = std::int64_t{1} << 30;
  const char* why = nullptr;
  if (p.k < kFewTerms)
    why = "fewer than 512 terms: sums on tensor cores are cut off, and float's own are better";
  else if (p.batch > kMostBlocks || divide_up(p.m, kSide) > kMostBlocks || p.n > kMostExtent ||
           p.k > kMostExtent)
    why = "an extent is beyond a grid's";
  if (why && reason) *reason = why;
  return !why;
}

void run_split(const void* problem) {
  const MatmulProblem& p = matmul_of(problem);
  const Split a(left_of(p)), b(right_of(p));
  const SplitParameter parameter = {parameter_of(p), a.operand(), b.operand()};
  if (is_hopper(nullptr))
    launch_groups(p, a, b);
  else
    launch_warps(p, parameter);
  launch_flagged(p, parameter);
}

double split_ns(const void* problem) {
  const MatmulProblem& p = matmul_of(problem);
  // Each element is read twice and written as two halves; 1.5 TB/s, and five more launches.
  const double elements =
      static_cast<double>(p.batch) * static_cast<double>(p.m + p.n) * static_cast<double>(p.k);
  const double splitting = 5 * 2500 + 12 * elements / 1500;
  return splitting + (is_hopper(nullptr)
                          ? waves_ns(p, kSide, kSide, rates().groups_narrow / 3)
                          : waves_ns(p, kSide, kSplitWarpsWide, rates().warps / 3.5));
}

}  // namespace tw::cuda
