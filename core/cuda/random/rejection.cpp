// Random numbers by tries, classes by their probabilities, permutations: with the CPU's words.
#include <bit>
#include <new>

#include "core/base/error.h"
#include "core/cuda/gpu/families.h"
#include "core/cuda/gpu/add_kernel.h"
#include "core/cuda/random/rejection_parameters.h"

namespace tw::cuda {

namespace {

using std::int64_t;

void raise_wrong(const Fault& fault) {
  const auto x = std::bit_cast<double>(fault.value);
  switch (fault.user) {
    case kWrongRate: fail(ErrorKind::value, "poisson: rate ", x, " is not at least 0");
    case kWrongShape: fail(ErrorKind::value, "standard_gamma: shape ", x, " is not above 0");
    case kWrongShare: fail(ErrorKind::value, "quantile: q must be from 0 to 1, got ", x);
    case kWrongCount:
      fail(ErrorKind::value, "binomial: count ", x, " is not a whole number of at least 0");
    case kWrongChance: fail(ErrorKind::value, "binomial: prob ", x, " is not in [0, 1]");
    case kWrongProbability:
      fail(ErrorKind::value, "multinomial: probability ", x, " of class ", fault.limit, " in row ",
           fault.place, " is not a finite number of at least 0");
    case kNoProbability:
      fail(ErrorKind::value, "multinomial: row ", fault.place, " has no probability above 0");
    case kInfiniteSum:
      fail(ErrorKind::value, "multinomial: the probabilities of row ", fault.place,
           " add up to infinity");
    default:  // kTooFewClasses
      fail(ErrorKind::value, "multinomial: row ", fault.place, " has ", fault.value,
           fault.value == 1 ? " class" : " classes", " of a probability above 0, too few for ",
           fault.limit, " samples; pass replacement=True to draw a class again");
  }
}

template <class Parameter> void launch(const char* kernel, Grid grid, Parameter parameter) {
  static const std::int32_t code = register_fault(raise_wrong);
  Gpu& gpu = Gpu::current();
  parameter.fault = gpu.fault();
  parameter.code = code;
  gpu.launch(kernel_of(kernel, 0, "rejection.cuh", kernel, [] { return std::string(); }), grid,
             &parameter);
}

// ---- an element a thread ----

constexpr char kPoisson[] = "poisson", kGamma[] = "gamma_numbers", kShares[] = "checked_shares",
               kPermutation[] = "permutation", kBinomialNumbers[] = "binomial",
               kGammaSlopes[] = "gamma_slopes", kBetaSlopes[] = "beta_slopes";
const Draw& draw_of(const void* problem) { return *static_cast<const Draw*>(problem); }
template <const char* kernel> void run_elements(const void* problem) {
  const Draw& p = draw_of(problem);
  if (p.count > 0) launch(kernel, grid_for(p.count), p);
}
void set_up_elements(const Call& call, void* problem) {
  (new (problem) Draw{})->count = call.out[0].count;
}
template <int parameters, bool by_key = true> void bind_elements(void* problem, void* const* at) {
  Draw& p = *static_cast<Draw*>(problem);
  for (int i = 0; i < parameters; ++i) p.x[i] = static_cast<const double*>(at[i]);
  if (by_key) p.key = static_cast<const std::uint64_t*>(at[parameters]);
  p.y = at[parameters + by_key];
}

const char* refuses_long(const Call& call) {
  return call.out[0].count >> 31 ? "permutations have less than 2^31 elements" : nullptr;
}
void run_permutation(const void* problem) {
  Draw p = draw_of(problem);
  if (p.count == 0) return;
  const Room reserved(p.count * 4);
  p.reserved = static_cast<std::int32_t*>(reserved.at());
  launch(kPermutation, {}, p);
}

// ---- classes ----

void set_up_classes(const Call& call, void* problem) {
  Classes& p = *new (problem) Classes{};
  p.rows = call.in[0].size(0);
  p.classes = call.in[0].size(1);
  p.samples = call.attributes[0];
  p.replacement = call.attributes.count > 1 && call.attributes.flag(1);
}
void bind_classes(void* problem, void* const* at) {
  Classes& p = *static_cast<Classes*>(problem);
  p.p = static_cast<const double*>(at[0]);
  p.u = static_cast<const double*>(at[1]);
  p.y = at[2];
}
constexpr char kChecked[] = "checked_probabilities", kSums[] = "sum_classes",
               kSearch[] = "search_classes", kArrivals[] = "arrivals", kFirst[] = "first_arrivals";
const Classes& classes_of(const void* problem) { return *static_cast<const Classes*>(problem); }

void run_checked(const void* problem) {
  const Classes& p = classes_of(problem);
  if (p.rows > 0) launch(kChecked, {{static_cast<unsigned>(p.rows), 1, 1}}, p);
}
void run_again(const void* problem) {
  Classes p = classes_of(problem);
  if (p.rows * p.samples == 0) return;
  const Room sums(p.rows * p.classes * 8), last(p.rows * 8);
  p.sums = static_cast<double*>(sums.at());
  p.last = static_cast<int64_t*>(last.at());
  launch(kSums, grid_for(p.rows), p);
  launch(kSearch, grid_for(p.rows * p.samples), p);
}
void run_once(const void* problem) {
  Classes p = classes_of(problem);
  if (p.rows * p.samples == 0) return;
  const Room times(p.rows * p.classes * 8);
  p.sums = static_cast<double*>(times.at());
  launch(kArrivals, grid_for(p.rows * p.classes), p);
  launch(kFirst,
         {{static_cast<unsigned>(divide_up(p.classes, kBlockThreads)),
           static_cast<unsigned>(p.rows), 1}},
         p);
}

constexpr char kTries[] = "tries, from a stream for each element",
               kSeries[] = "series and continued fractions";

}  // namespace

void register_draw_kernels() {
  add_kernel<Draw>("poisson_by", kTries,
                   {.set_up = set_up_elements,
                    .bind = bind_elements<1>,
                    .run = run_elements<kPoisson>,
                    .contiguous = 3,
                    .name = "attempts"});
  add_kernel<Draw>("gamma_by", kTries,
                   {.set_up = set_up_elements,
                    .bind = bind_elements<1>,
                    .run = run_elements<kGamma>,
                    .contiguous = 3,
                    .name = "attempts"});
  add_kernel<Draw>("binomial_by", kTries,
                   {.set_up = set_up_elements,
                    .bind = bind_elements<2>,
                    .run = run_elements<kBinomialNumbers>,
                    .contiguous = 7,
                    .name = "attempts"});
  add_kernel<Draw>("gamma_slope", kSeries,
                   {.set_up = set_up_elements,
                    .bind = bind_elements<2, false>,
                    .run = run_elements<kGammaSlopes>,
                    .contiguous = 3,
                    .name = "terms"});
  add_kernel<Draw>("beta_slope", kSeries,
                   {.set_up = set_up_elements,
                    .bind = bind_elements<3, false>,
                    .run = run_elements<kBetaSlopes>,
                    .contiguous = 7,
                    .name = "terms"});
  add_kernel<Draw>(kShares, "a number a thread",
                   {.set_up = set_up_elements,
                    .bind = bind_elements<1, false>,
                    .run = run_elements<kShares>,
                    .contiguous = 1});
  add_kernel<Draw>("random_permutation", "swaps that do not meet at once, by one block",
                   {.refuses = refuses_long,
                    .set_up = set_up_elements,
                    .bind =
                        [](void* problem, void* const* at) {
                          Draw& p = *static_cast<Draw*>(problem);
                          p.key = static_cast<const std::uint64_t*>(at[0]);
                          p.y = at[1];
                        },
                    .run = run_permutation,
                    .contiguous = 1});
  add_kernel<Classes>(kChecked, "a row a block",
                      {.set_up = set_up_classes,
                       .bind =
                           [](void* problem, void* const* at) {
                             Classes& p = *static_cast<Classes*>(problem);
                             p.p = static_cast<const double*>(at[0]);
                             p.y = at[1];
                           },
                       .run = run_checked,
                       .contiguous = 1,
                       .name = "classes"});
  add_kernel<Classes>("multinomial_again", "a search in the sums of each row",
                      {.set_up = set_up_classes,
                       .bind = bind_classes,
                       .run = run_again,
                       .contiguous = 3,
                       .name = "classes"});
  add_kernel<Classes>("multinomial_once", "the first arrivals of each row",
                      {.set_up = set_up_classes,
                       .bind = bind_classes,
                       .run = run_once,
                       .contiguous = 3,
                       .name = "classes"});
}

}  // namespace tw::cuda
