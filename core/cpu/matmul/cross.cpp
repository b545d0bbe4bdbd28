// Cross products of vectors of three numbers along an axis.
#include "core/base/thresholds.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/matmul/cross.h"
#include "core/runtime/thread_pool.h"

namespace tw {

namespace {

using std::int64_t;

using Problem = CrossProblem;

const char* refuses(const Call& call) {
  const DType dtype = call.in[0].dtype;
  if (dtype == DType::float32 || dtype == DType::float64) return nullptr;
  return is_floating(dtype) ? kTooNarrow : "kernels are for real floating-point numbers";
}
void set_up(const Call& call, void* problem) {
  const Meta& x = call.in[0];
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < x.rank(); ++i) {
    if (i < call.attributes[0]) outer *= x.size(i);
    if (i > call.attributes[0]) inner *= x.size(i);
  }
  *static_cast<Problem*>(problem) = {x.dtype, outer, inner, nullptr, nullptr, nullptr};
}
void bind(void* problem, void* const* at) {
  auto& p = *static_cast<Problem*>(problem);
  p.a = at[0];
  p.b = at[1];
  p.y = at[2];
}
double cost_ns(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  return 100 + 2 * static_cast<double>(p.outer * p.inner);
}
// `count` vectors, a step apart, whose numbers lie `apart`.
template <class T>
void cross(int64_t count, int64_t step, int64_t apart, const T* a, const T* b, T* __restrict__ y) {
  for (int64_t i = 0; i < count; ++i, a += step, b += step, y += step) {
    const T a0 = a[0], a1 = a[apart], a2 = a[2 * apart];
    const T b0 = b[0], b1 = b[apart], b2 = b[2 * apart];
    y[0] = a1 * b2 - a2 * b1;
    y[apart] = a2 * b0 - a0 * b2;
    y[2 * apart] = a0 * b1 - a1 * b0;
  }
}
template <class T> void run_as(const Problem& p) {
  const T *const a = static_cast<const T*>(p.a), *const b = static_cast<const T*>(p.b);
  T* const y = static_cast<T*>(p.y);
  if (p.inner == 1)
    return parallel_ranges(p.outer, thresholds::kCellGrain, [&](int64_t begin, int64_t end) {
      cross(end - begin, 3, 1, a + 3 * begin, b + 3 * begin, y + 3 * begin);
    });
  parallel_ranges(p.outer, thresholds::kCellGrain / (p.inner + 1) + 1,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const int64_t at = 3 * i * p.inner;
                      cross(p.inner, 1, p.inner, a + at, b + at, y + at);
                    }
                  });
}
void run(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  p.dtype == DType::float64 ? run_as<double>(p) : run_as<float>(p);
}

}  // namespace

void register_cross_kernels() {
  add_kernel<Problem>("cross_along", "vector by vector",
                      {.refuses = refuses,
                       .set_up = set_up,
                       .bind = bind,
                       .cost_ns = cost_ns,
                       .run = run,
                       .contiguous = 3,
                       .name = "vectors"});
}

}  // namespace tw
