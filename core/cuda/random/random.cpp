// Random numbers, with the CPU's bits: the same words of the same stream.
#include "core/problems/generator.h"

#include <new>

#include "core/cuda/gpu/families.h"
#include "core/cuda/copy/fill_parameters.h"
#include "core/cuda/gpu/add_kernel.h"
#include "core/cuda/random/random_parameters.h"

namespace tw::cuda {

namespace {

struct Problem {
  Random parameter;
  DType dtype;
};

Random& fresh(const Call& call, void* problem) {
  Problem& p = *new (problem) Problem{};
  p.dtype = call.out[0].dtype;
  p.parameter.count = call.out[0].count;
  return p.parameter;
}
void bind_made(void* problem, void* const* at) {
  Random& p = static_cast<Problem*>(problem)->parameter;
  p.key = static_cast<const std::uint64_t*>(at[0]);
  p.y = at[1];
}
void bind_dropout(void* problem, void* const* at) {
  Random& p = static_cast<Problem*>(problem)->parameter;
  p.x = at[0];
  p.key = static_cast<const std::uint64_t*>(at[1]);
  p.y = at[2];
}
const char* refuses(const Call& call) { return refuses_narrow(call.in[0].dtype); }

void launch(const Problem& p, const char* kernel, std::int64_t items) {
  if (p.parameter.count == 0) return;
  const bool wide = p.dtype == DType::float64;
  const Function function = kernel_of(kernel, wide, "random.cuh", kernel,
                                      [&] { return define("TW_TYPE", wide ? "double" : "float"); });
  Gpu::current().launch(function, grid_for(items), &p.parameter);
}
const Problem& problem_of(const void* problem) { return *static_cast<const Problem*>(problem); }

constexpr char kUniformFloat[] = "uniform_float", kUniformDouble[] = "uniform_double",
               kNormal[] = "normal", kIntegers[] = "integers", kDropout[] = "dropout";

void run_uniform(const void* problem) {
  const Problem& p = problem_of(problem);
  const bool wide = p.dtype == DType::float64;
  launch(p, wide ? kUniformDouble : kUniformFloat,
         wide ? p.parameter.count : divide_up(p.parameter.count, kPhiloxWords));
}
void run_normal(const void* problem) {
  const Problem& p = problem_of(problem);
  launch(p, kNormal, divide_up(p.parameter.count, kNormalBlock) * (kNormalBlock / 2));
}
void run_integers(const void* problem) {
  launch(problem_of(problem), kIntegers, problem_of(problem).parameter.count);
}
void run_dropout(const void* problem) {
  launch(problem_of(problem), kDropout,
         divide_up(problem_of(problem).parameter.count, kPhiloxWords));
}

// ---- keys ----

struct DrawProblem {
  Generator* generator;
  std::int64_t words;
  void* key;
};
void run_draw(const void* problem) {
  const auto& p = *static_cast<const DrawProblem*>(problem);
  static const char place = 0;
  const Fill fill = {1,
                     p.key,
                     {static_cast<std::int64_t>(p.generator->seed),
                      static_cast<std::int64_t>(p.generator->position)}};
  p.generator->position += static_cast<std::uint64_t>((p.words + 3) / 4 * 4);
  const Function kernel =
      kernel_of(&place, 0, "fill.cuh", "fill", [] { return define("TW_TO", "bytes16"); });
  Gpu::current().launch(kernel, grid_for(1), &fill);
}

constexpr char kHelp[] = "a Philox block a thread";

}  // namespace

void register_random_kernels() {
  add_kernel<DrawProblem>(
      "draw", "moves a generator on; the key follows the work before it",
      {.set_up =
           [](const Call& call, void* problem) {
             *static_cast<DrawProblem*>(problem) = {
                 reinterpret_cast<Generator*>(call.attributes[0]), call.attributes[1], nullptr};
           },
       .bind = [](void* problem,
                  void* const* at) { static_cast<DrawProblem*>(problem)->key = at[0]; },
       .run = run_draw,
       .name = "queued"})
      .reads_host = true;
  add_kernel<Problem>("random_uniform", kHelp,
                      {.set_up =
                           [](const Call& call, void* problem) {
                             fresh(call, problem).bits =
                                 static_cast<std::int32_t>(call.attributes[2]);
                           },
                       .bind = bind_made,
                       .run = run_uniform,
                       .contiguous = 1});
  add_kernel<Problem>("random_normal", kHelp,
                      {.set_up = [](const Call& call, void* problem) { fresh(call, problem); },
                       .bind = bind_made,
                       .run = run_normal,
                       .contiguous = 1});
  add_kernel<Problem>("random_integers", kHelp,
                      {.set_up =
                           [](const Call& call, void* problem) {
                             Random& p = fresh(call, problem);
                             p.low = call.attributes[1];
                             p.span = static_cast<std::uint64_t>(call.attributes[2]) -
                                      static_cast<std::uint64_t>(p.low);
                           },
                       .bind = bind_made,
                       .run = run_integers,
                       .contiguous = 1});
  add_kernel<Problem>("dropout_by", kHelp,
                      {.refuses = refuses,
                       .set_up =
                           [](const Call& call, void* problem) {
                             Random& p = fresh(call, problem);
                             p.keep = static_cast<float>(1 - call.attributes.real(0));
                             const double keep = 1 - call.attributes.real(0);
                             p.scale = keep > 0 ? 1 / keep : 1;
                           },
                       .bind = bind_dropout,
                       .run = run_dropout,
                       .contiguous = 3});
}

}  // namespace tw::cuda
