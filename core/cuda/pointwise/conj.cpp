// The complex conjugate.
#include "core/cuda/gpu/families.h"
#include "core/cuda/gpu/add_kernel.h"
#include "core/cuda/pointwise/conj_parameters.h"

namespace tw::cuda {

namespace {

using Conjugate = ConjugateOf<void>;
struct Problem {
  Conjugate parameter;
  DType dtype;
};

void run(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  if (p.parameter.count == 0) return;
  static const char place = 0;
  Gpu::current().launch(
      kernel_of(&place, static_cast<std::uint64_t>(p.dtype), "conj.cuh", "conjugate",
                [&] { return define("TW_TYPE", type_name(p.dtype)); }),
      grid_for(p.parameter.count), &p.parameter);
}

}  // namespace

void register_complex_kernels() {
  add_kernel<Problem>("conj", "an element a thread",
                      {.set_up =
                           [](const Call& call, void* problem) {
                             *static_cast<Problem*>(problem) = {
                                 {call.in[0].count, nullptr, nullptr}, call.in[0].dtype};
                           },
                       .bind =
                           [](void* problem, void* const* at) {
                             Conjugate& p = static_cast<Problem*>(problem)->parameter;
                             p.x = at[0];
                             p.y = at[1];
                           },
                       .run = run,
                       .contiguous = 1});
}

}  // namespace tw::cuda
