// The GPU's ladders for the three parts of a convolution.
#include <algorithm>
#include <bit>
#include <numeric>

#include "core/cuda/convolution/convolution_parameters.h"
#include "core/cuda/gpu/families.h"
#include "core/cuda/gpu/add_kernel.h"
#include "core/cuda/gpu/rates.h"
#include "core/problems/convolution.h"

namespace tw::cuda {

namespace {

using std::int64_t;

// ---- the parameter ----

using Parameter = ConvolutionOf<void>;

// Of an axis without places nothing is divided.
Divisor divisor_of(int64_t by) {
  if (by <= 1) return {0, 0};
  const auto shift = static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint64_t>(by - 1)));
  const std::uint64_t over = (std::uint64_t{1} << shift) - static_cast<std::uint64_t>(by);
  return {static_cast<std::uint32_t>((over << 32) / static_cast<std::uint64_t>(by) + 1), shift};
}

struct Steps {
  int64_t of[3];
};
Steps steps_of(const int64_t (&sizes)[3]) { return {{sizes[1] * sizes[2], sizes[2], 1}}; }

Walk walk_of(int64_t outers, const int64_t (&sizes)[3], int64_t outer, int64_t other_outer,
             const Steps& other) {
  Walk walk = {};
  walk.count = outers * volume(sizes);
  walk.outer = outer, walk.other_outer = other_outer;
  for (int d = 0; d < 3; ++d) {
    walk.size[d] = sizes[d], walk.by[d] = divisor_of(sizes[d]);
    walk.scale[d] = 1, walk.other_scale[d] = other.of[d];
  }
  return walk;
}

// All but addresses, and the walks of an input's gradient.
Parameter parameter_of(const ConvolutionProblem& p) {
  const int64_t in = p.in / p.groups, out = p.out / p.groups, taps = volume(p.kernel);
  const int64_t x = volume(p.x), y = volume(p.y);
  const bool forward = p.part == ConvolutionPart::forward;
  Parameter q = {};
  q.left = p.b, q.right = p.a, q.bias = p.bias, q.result = p.result;
  q.pieces = 1, q.channels = p.out;
  const bool of_y = p.part == ConvolutionPart::input_gradient;  // whether `right` is like y
  for (int d = 0; d < 3; ++d) q.bounds[d] = of_y ? p.y[d] : p.x[d];
  const Steps steps = steps_of(q.bounds);
  std::copy_n(steps.of, 3, q.steps);
  if (of_y) {
    q.rows = in, q.results = p.batch * p.in * x;
    q.left_row = taps, q.result_row = x;
    q.left_group = out * in * taps, q.right_group = out * y, q.result_group = in * x;
    return q;
  }
  // Taps of input channels, and windows of images.
  Walk kernel = walk_of(in, p.kernel, x, taps, steps_of(p.kernel));
  Walk windows = walk_of(p.batch, p.y, p.in * x, p.out * y, steps_of(p.y));
  for (int d = 0; d < 3; ++d) {
    kernel.scale[d] = p.dilation[d];
    windows.scale[d] = p.stride[d], windows.first[d] = -p.before[d];
  }
  q.columns[0] = forward ? windows : kernel;
  q.along[0] = forward ? kernel : windows;
  q.terms = q.along[0].count;
  q.rows = out;
  q.right_group = in * x;
  q.left_row = forward ? in * taps : y, q.result_row = forward ? y : in * taps;
  q.left_group = out * q.left_row, q.result_group = out * q.result_row;
  q.results = forward ? p.batch * p.out * y : p.out * in * taps;
  return q;
}

// Places of x that lie a stride apart, from `place` on along an axis, see the same taps: of the
// places there and of the taps, how many, where the first is and how far apart they are; and the
// coordinates in y that they add up to.
struct AxisPhase {
  int64_t places, tap, taps, taps_apart, first, scale;
};
AxisPhase axis_phase(const ConvolutionProblem& p, int d, int64_t place) {
  const int64_t stride = p.stride[d], dilation = p.dilation[d];
  const int64_t common = std::gcd(stride, dilation);
  const int64_t off = (place + p.before[d]) % stride, window = (place + p.before[d]) / stride;
  AxisPhase phase = {
      divide_up(p.x[d] - place, stride), 0, 0, stride / common, 0, -dilation / common};
  while (phase.tap < p.kernel[d] && phase.tap * dilation % stride != off) ++phase.tap;
  phase.taps = divide_up(p.kernel[d] - phase.tap, phase.taps_apart);
  phase.first = window - (phase.tap * dilation - off) / stride;
  return phase;
}

int64_t phases_of(const ConvolutionProblem& p, int d) { return std::min(p.stride[d], p.x[d]); }
int64_t phases_of(const ConvolutionProblem& p) {
  if (p.part != ConvolutionPart::input_gradient) return 1;
  return phases_of(p, 0) * phases_of(p, 1) * phases_of(p, 2);
}
void set_phase(const ConvolutionProblem& p, int64_t number, Walk& columns, Walk& along) {
  const int64_t taps = volume(p.kernel);
  const Steps x = steps_of(p.x), kernel = steps_of(p.kernel);
  int64_t places[3], of_taps[3];
  AxisPhase phases[3];
  Steps places_apart, taps_apart;
  int64_t first_place = 0, first_tap = 0;
  for (int d = 2; d >= 0; --d) {
    const int64_t place = number % phases_of(p, d);
    number /= phases_of(p, d);
    const AxisPhase& phase = phases[d] = axis_phase(p, d, place);
    places[d] = phase.places, of_taps[d] = phase.taps;
    places_apart.of[d] = p.stride[d] * x.of[d], taps_apart.of[d] = phase.taps_apart * kernel.of[d];
    first_place += place * x.of[d], first_tap += phase.tap * kernel.of[d];
  }
  columns = walk_of(p.batch, places, p.out * volume(p.y), p.in * volume(p.x), places_apart);
  along = walk_of(p.out / p.groups, of_taps, volume(p.y), p.in / p.groups * taps, taps_apart);
  columns.other_first = first_place, along.other_first = first_tap;
  for (int d = 0; d < 3; ++d) columns.first[d] = phases[d].first, along.scale[d] = phases[d].scale;
}

// ---- launches ----

// Rows, columns and terms of a group's product; at most, of each phase.
struct Sides {
  int64_t i, j, k;
};
Sides sides_of(const ConvolutionProblem& p) {
  const int64_t in = p.in / p.groups, out = p.out / p.groups, taps = volume(p.kernel);
  switch (p.part) {
    case ConvolutionPart::forward: return {out, p.batch * volume(p.y), in * taps};
    case ConvolutionPart::weight_gradient: return {out, in * taps, p.batch * volume(p.y)};
    case ConvolutionPart::input_gradient: break;
  }
  Sides sides = {in, p.batch, out};
  for (int d = 0; d < 3; ++d) {
    sides.j *= divide_up(p.x[d], p.stride[d]);
    sides.k *= divide_up(p.kernel[d], p.stride[d] / std::gcd(p.stride[d], p.dilation[d]));
  }
  return sides;
}

// Axes of space that a kernel walks, of three.
int axes_of(const ConvolutionProblem& p) {
  const auto is_flat = [&](int d) {
    return p.x[d] == 1 && p.kernel[d] == 1 && p.y[d] == 1 && p.before[d] == 0;
  };
  return is_flat(0) ? is_flat(1) ? 1 : 2 : 3;
}

// A launch for each few phases, of blocks that have so much of the product.
void launch_phases(const ConvolutionProblem& p, Parameter& parameter, Function kernel, int high,
                   int wide, unsigned shared) {
  const int64_t all = phases_of(p);
  for (int64_t begin = 0; begin < all; begin += kPhases) {
    const int64_t phases = std::min<int64_t>(kPhases, all - begin);
    int64_t most = 0;
    for (int64_t n = 0; n < phases; ++n) {
      if (p.part == ConvolutionPart::input_gradient)
        set_phase(p, begin + n, parameter.columns[n], parameter.along[n]);
      most = std::max(most, parameter.columns[n].count);
    }
    Grid grid;
    grid.blocks[0] = static_cast<unsigned>(divide_up(parameter.rows, high) * divide_up(most, wide));
    grid.blocks[1] = static_cast<unsigned>(phases * parameter.pieces);
    grid.blocks[2] = static_cast<unsigned>(p.groups);
    grid.shared_bytes = shared;
    Gpu::current().launch(kernel, grid, &parameter);
  }
}

Function general_kernel(const ConvolutionProblem& p, const char* kernel) {
  return kernel_of(kernel, static_cast<std::uint64_t>(p.dtype), "convolution.cuh", kernel,
                   [&] { return define("TW_TYPE", type_name(p.dtype)) + define("TW_AXES", "3"); });
}

const ConvolutionProblem& problem_of(const void* problem) {
  return *static_cast<const ConvolutionProblem*>(problem);
}

constexpr char kNaive[] = "convolution_naive", kImplicit[] = "convolution_implicit",
               kJoin[] = "convolution_join";

void run_naive(const void* problem) {
  const ConvolutionProblem& p = problem_of(problem);
  Parameter parameter = parameter_of(p);
  launch_phases(p, parameter, general_kernel(p, kNaive), 1, kBlockThreads, 0);
}

// ---- implicit ----

// What blocks have of the product. Rates: guesses, as shares of the matmul rung's of as many
// elements a thread.
struct TileShape {
  int each, high, wide;
  double share;
};
constexpr TileShape kBlocks[] = {{8, 128, 128, 0.85},
                                 {8, 64, 256, 0.8},
                                 {4, 64, 64, 0.8},
                                 {4, 32, 128, 0.75},
                                 {4, 16, 256, 0.7}};

// k in pieces that are multiplied side by side where there are few tiles. It follows from the shape
// alone, so that every GPU adds in the same order.
struct Pieces {
  int64_t count, terms;
};
Pieces pieces_of(const ConvolutionProblem& p) {
  constexpr int64_t kSide = 64, kWanted = 1024, kMost = 128, kLeastTerms = 256, kMultiple = 8;
  const Sides s = sides_of(p);
  const int64_t tiles = divide_up(s.i, kSide) * divide_up(s.j, kSide) * p.groups * phases_of(p);
  const int64_t wanted =
      std::min({divide_up(kWanted, std::max<int64_t>(tiles, 1)), kMost, s.k / kLeastTerms});
  if (wanted < 2) return {1, s.k};
  const int64_t terms = divide_up(divide_up(s.k, wanted), kMultiple) * kMultiple;
  return {divide_up(s.k, terms), terms};
}

double block_ns(const ConvolutionProblem& p, const TileShape& block, int64_t pieces) {
  const Sides s = sides_of(p);
  const double blocks = static_cast<double>(divide_up(s.i, block.high) *
                                            divide_up(s.j, block.wide) * p.groups * phases_of(p)) *
                        static_cast<double>(pieces);
  const double products = static_cast<double>(block.high) * block.wide * static_cast<double>(s.k) /
                          static_cast<double>(pieces);
  return waves_ns(blocks, products,
                  block.share * (block.each == 8 ? rates().registers : rates().registers_small));
}
// Eight by eight of float64 do not fit in registers.
const TileShape& best_block(const ConvolutionProblem& p, int64_t pieces) {
  const TileShape* best = nullptr;
  double least = 0;
  for (const TileShape& block : kBlocks) {
    if (block.each == 8 && p.dtype == DType::float64) continue;
    const double ns = block_ns(p, block, pieces);
    if (!best || ns < least) best = &block, least = ns;
  }
  return *best;
}

void run_blocks(const ConvolutionProblem& p, const Pieces& pieces) {
  const TileShape& block = best_block(p, pieces.count);
  const bool lines = p.part == ConvolutionPart::weight_gradient;
  const int axes = axes_of(p);
  std::uint64_t key = static_cast<std::uint64_t>(p.dtype);
  key = (key * 8 + static_cast<std::uint64_t>(&block - kBlocks)) * 8 +
        static_cast<std::uint64_t>(axes) * 2 + lines;
  const Function kernel = kernel_of(kImplicit, key, "convolution.cuh", kImplicit, [&] {
    return define("TW_TYPE", type_name(p.dtype)) + define("TW_AXES", std::to_string(axes)) +
           define("TW_EACH", std::to_string(block.each)) +
           define("TW_HIGH", std::to_string(block.high)) +
           define("TW_WIDE", std::to_string(block.wide)) + define("TW_LINES", lines ? "1" : "0");
  });
  const auto shared = static_cast<unsigned>(
      convolution_shared_bytes(block.high, block.wide, axes, static_cast<int>(size_of(p.dtype))));
  Parameter parameter = parameter_of(p);
  parameter.pieces = pieces.count, parameter.terms = pieces.terms;
  if (pieces.count == 1) return launch_phases(p, parameter, kernel, block.high, block.wide, shared);
  const Room partial(pieces.count * parameter.results * static_cast<int64_t>(size_of(p.dtype)));
  parameter.partial = partial.at();
  launch_phases(p, parameter, kernel, block.high, block.wide, shared);
  Gpu::current().launch(general_kernel(p, kJoin), grid_for(parameter.results), &parameter);
}
void run_implicit(const void* problem) {
  const ConvolutionProblem& p = problem_of(problem);
  run_blocks(p, {1, sides_of(p).k});
}
void run_pieces(const void* problem) {
  const ConvolutionProblem& p = problem_of(problem);
  run_blocks(p, pieces_of(p));
}

// ---- the choice ----

// Second and third axis of a grid.
constexpr int64_t kMostBlocks = 65535;
bool fits_grid(const void* problem, std::string* reason) {
  if (problem_of(problem).groups <= kMostBlocks) return true;
  if (reason) *reason = "more groups than a grid has blocks";
  return false;
}
// Places are found with 32 bits.
bool fits_blocks(const void* problem, std::string* reason) {
  const ConvolutionProblem& p = problem_of(problem);
  constexpr int64_t kMostElements = 0x7fff0000, kMostPlaces = int64_t{1} << 28;
  const int64_t x = p.batch * p.in * volume(p.x), y = p.batch * p.out * volume(p.y);
  bool fits = std::max({x, y, p.out * p.in / p.groups * volume(p.kernel)}) < kMostElements;
  for (int d = 0; d < 3; ++d)
    fits &= std::max({p.y[d] * p.stride[d], p.kernel[d] * p.dilation[d], p.x[d] + p.before[d]}) <
            kMostPlaces;
  if (!fits && reason) *reason = "about 2^31 elements or more";
  return fits && fits_grid(problem, reason);
}
// Of a row, which depends on how many there are.
bool cuts_by_rows(const void* problem) {
  return problem_of(problem).part != ConvolutionPart::weight_gradient;
}

// Finding an element costs about as much as its product.
double naive_ns(const void* problem) {
  const ConvolutionProblem& p = problem_of(problem);
  return block_ns(p, {4, 1, kBlockThreads, rates().naive / 2 / rates().registers_small}, 1);
}
double implicit_ns(const void* problem) {
  const ConvolutionProblem& p = problem_of(problem);
  return block_ns(p, best_block(p, 1), 1);
}
// With one piece it is `implicit`, which comes first.
double pieces_ns(const void* problem) {
  const ConvolutionProblem& p = problem_of(problem);
  const int64_t pieces = pieces_of(p).count;
  const double block = block_ns(p, best_block(p, pieces), pieces);
  if (pieces == 1) return block + 1;
  const double bytes = 2 * static_cast<double>(pieces * parameter_of(p).results) *
                       static_cast<double>(size_of(p.dtype));
  return block + rates().launch_ns + bytes / rates().memory;
}

const char* refuses(const Call& call) { return refuses_narrow(call.in[0].dtype); }
// Kernels give zeros, or the bias, where there are no terms.
const Kernel& choose(const void* problem) {
  const auto& q = *static_cast<const LoweredConvolution*>(problem);
  static const OpKernels* const ladders[] = {find_op(kConvolutionOps[0], KernelSet::cuda),
                                             find_op(kConvolutionOps[1], KernelSet::cuda),
                                             find_op(kConvolutionOps[2], KernelSet::cuda)};
  const OpKernels* const ladder = ladders[static_cast<int>(q.problem.part)];
  if (q.results == 0 || !q.has_terms) return *ladder->kernels.front();
  return choose_among(ladder, &q.problem);
}
void run(const Kernel& kernel, const void* problem) {
  const auto& q = *static_cast<const LoweredConvolution*>(problem);
  if (q.results > 0) kernel.run(&q.problem);
}

template <ConvolutionPart part> constexpr Lowering lowering() {
  constexpr bool forward = part == ConvolutionPart::forward;
  return {.op = kConvolutionOps[static_cast<int>(part)],
          .problem_bytes = sizeof(LoweredConvolution),
          .refuses = refuses,
          .set_up = set_up_convolution<part>,
          .bind = bind_convolution < forward ? 3 : 2 >,
          .contiguous = forward ? 7 : 3,
          .choose = choose,
          .run = run,
          .describe = describe_convolution,
          .set = KernelSet::cuda};
}
constexpr Lowering kLowerings[] = {lowering<ConvolutionPart::forward>(),
                                   lowering<ConvolutionPart::input_gradient>(),
                                   lowering<ConvolutionPart::weight_gradient>()};

}  // namespace

void register_convolution_kernels() {
  for (const char* op : kConvolutionOps) {
    register_kernel(new Kernel{.op = op,
                               .name = "naive",
                               .device = "cuda",
                               .precision = Precision::ieee,
                               .help = "one thread an element",
                               .accepts = fits_grid,
                               .cost_ns = naive_ns,
                               .run = run_naive});
    register_kernel(new Kernel{.op = op,
                               .name = "implicit",
                               .device = "cuda",
                               .precision = Precision::ieee,
                               .help = "tiles of a product; elements are found where they lie",
                               .accepts = fits_blocks,
                               .cost_ns = implicit_ns,
                               .run = run_implicit});
    register_kernel(
        new Kernel{.op = op,
                   .name = "pieces",
                   .device = "cuda",
                   .precision = Precision::ieee,
                   .help = "implicit, with terms in pieces that are added up at the end",
                   .accepts = fits_blocks,
                   .cost_ns = pieces_ns,
                   .run = run_pieces,
                   .depends_on_batch = cuts_by_rows});
  }
  for (const Lowering& each : kLowerings) register_lowering(&each);
}

}  // namespace tw::cuda
