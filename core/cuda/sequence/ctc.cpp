// Connectionist temporal classification: a block a sequence.
#include <new>

#include "core/base/error.h"
#include "core/cuda/gpu/families.h"
#include "core/cuda/gpu/add_kernel.h"
#include "core/cuda/sequence/ctc_parameters.h"

namespace tw::cuda {

namespace {

using std::int64_t;

using Paths = PathsOf<void>;
struct Problem {
  Paths parameter;
  DType dtype;
};

template <int first> const char* refuses(const Call& call) {
  return refuses_narrow(call.in[first].dtype);
}
template <int first> void set_up(const Call& call, void* problem) {
  Problem& p = *new (problem) Problem{};
  const Meta& x = call.in[first];
  p.dtype = x.dtype;
  Paths& q = p.parameter;
  q.steps = x.size(0);
  q.batch = x.size(1);
  q.classes = x.size(2);
  q.width = call.in[first + 1].size(1);
  q.blank = call.attributes[0];
}
void set_up_targets(const Call& call, void* problem) {
  Paths& q = (new (problem) Problem{{}, DType::float32})->parameter;
  q.batch = call.in[0].size(0);
  q.width = call.in[0].size(1);
  q.steps = call.attributes[0];
  q.classes = call.attributes[1];
  q.blank = call.attributes[2];
}
Paths& bind_targets(void* problem, void* const* at) {
  Paths& q = static_cast<Problem*>(problem)->parameter;
  q.targets = static_cast<const int64_t*>(at[0]);
  q.input_lengths = static_cast<const int64_t*>(at[1]);
  q.target_lengths = static_cast<const int64_t*>(at[2]);
  return q;
}
Paths& bind_terms(void* problem, void* const* at) {
  Paths& q = bind_targets(problem, at + 1);
  q.log_probs = at[0];
  q.losses = at[4];
  q.beginnings = at[5];
  return q;
}

void raise_bad(const Fault& fault) {
  constexpr const char* kLengths[] = {"input_lengths", "target_lengths"};  // as WrongTarget
  if (fault.user != kWrongLabel)
    fail(ErrorKind::value, "ctc_loss: ", kLengths[fault.user], " has ", fault.value,
         ", expected 0 to ", fault.limit);
  fail(ErrorKind::value, "ctc_loss: target ", fault.value, " is no class of ", fault.limit);
}

constexpr char kTargets[] = "ctc_targets", kTerms[] = "ctc_terms",
               kBackward[] = "ctc_terms_backward";
void launch(const Problem& p, const char* kernel, Grid grid, const Paths& parameter) {
  Gpu::current().launch(kernel_of(kernel, static_cast<std::uint64_t>(p.dtype), "ctc.cuh", kernel,
                                  [&] { return define("TW_TYPE", type_name(p.dtype)); }),
                        grid, &parameter);
}
void run_targets(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  static const std::int32_t code = register_fault(raise_bad);
  Paths q = p.parameter;
  q.fault = Gpu::current().fault();
  q.code = code;
  if (q.batch > 0) launch(p, kTargets, grid_for(q.batch * std::max<int64_t>(q.width, 1)), q);
}
void run_terms(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  const auto batch = static_cast<unsigned>(p.parameter.batch);
  if (batch > 0) launch(p, kTerms, {{batch, 1, 1}}, p.parameter);
}
void run_backward(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  Paths q = p.parameter;
  if (q.batch == 0) return;
  const auto size = static_cast<int64_t>(size_of(p.dtype));
  const Room rows(q.batch * kScratchRows * (2 * q.width + 1) * size);
  q.scratch = rows.at();
  launch(p, kBackward, {{static_cast<unsigned>(q.batch), 1, 1}}, q);
}

constexpr char kHelp[] = "logarithms of sums of paths, a block a sequence";

}  // namespace

void register_ctc_kernels() {
  add_kernel<Problem>(kTargets, "a label a thread",
                      {.set_up = set_up_targets,
                       .bind =
                           [](void* problem, void* const* at) {
                             bind_targets(problem, at).checked = static_cast<int64_t*>(at[3]);
                           },
                       .run = run_targets,
                       .contiguous = 7});
  add_kernel<Problem>(kTerms, kHelp,
                      {.refuses = refuses<0>,
                       .set_up = set_up<0>,
                       .bind = [](void* problem, void* const* at) { bind_terms(problem, at); },
                       .run = run_terms,
                       .contiguous = 15,
                       .name = "labels"});
  add_kernel<Problem>(kBackward, kHelp,
                      {.refuses = refuses<1>,
                       .set_up = set_up<1>,
                       .bind =
                           [](void* problem, void* const* at) {
                             Paths& q = bind_terms(problem, at + 1);
                             q.g = at[0];
                             q.dx = at[7];
                           },
                       .run = run_backward,
                       .contiguous = 127,
                       .name = "labels"});
}

}  // namespace tw::cuda
