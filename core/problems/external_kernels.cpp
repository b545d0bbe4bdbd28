// A Kernel is a set of plain functions, which know nothing of whom they are called for: each kernel
// from outside gets a slot, and functions of its own that know the slot.
#include "core/problems/external_kernels.h"

#include <array>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/problems/convolution.h"
#include "core/problems/matmul.h"
#include "core/runtime/registry.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

constexpr int kSlots = 64;
const tw_kernel* slots[kSlots];
int taken = 0;
std::mutex mutex;  // guards both

// The interface's numbers of types are the engine's.
static_assert(static_cast<int>(DType::bool_) == TW_BOOL);
static_assert(static_cast<int>(DType::uint8) == TW_UINT8);
static_assert(static_cast<int>(DType::float16) == TW_FLOAT16);
static_assert(static_cast<int>(DType::complex128) == TW_COMPLEX128);

void run_in_parallel(std::int64_t count, void (*body)(void*, std::int64_t), void* context) {
  parallel_chunks(count, [=](std::int64_t i) { body(context, i); });
}

tw_matmul published(const MatmulProblem& p, const tw_engine* engine) {
  return {engine,
          static_cast<std::int32_t>(p.dtype),
          p.epilogue.relu,
          p.batch,
          p.m,
          p.n,
          p.k,
          p.a,
          p.a_batch,
          p.a_row,
          p.a_col,
          p.b,
          p.b_batch,
          p.b_row,
          p.b_col,
          p.c,
          p.c_batch,
          p.c_row,
          p.c_col,
          p.alpha,
          p.beta,
          p.epilogue.bias,
          p.epilogue.row,
          p.epilogue.col};
}
tw_convolution published(const ConvolutionProblem& p, const tw_engine* engine) {
  tw_convolution out{};
  out.engine = engine;
  out.dtype = static_cast<std::int32_t>(p.dtype);
  out.batch = p.batch, out.groups = p.groups, out.in = p.in, out.out = p.out;
  for (int i = 0; i < 3; ++i) {
    out.x[i] = p.x[i], out.kernel[i] = p.kernel[i], out.y[i] = p.y[i];
    out.stride[i] = p.stride[i], out.dilation[i] = p.dilation[i], out.before[i] = p.before[i];
  }
  out.a = p.a, out.b = p.b, out.bias = p.bias, out.result = p.result;
  return out;
}

template <class Problem, class F> auto with_published(const void* problem, F f) {
  const tw_engine engine = {num_threads(), run_in_parallel};
  const auto given = published(*static_cast<const Problem*>(problem), &engine);
  return f(static_cast<const void*>(&given));
}

template <class Problem, int slot> struct Functions {
  static bool accepts(const void* problem, std::string* reason) {
    const char* why = nullptr;
    const bool does = with_published<Problem>(
        problem, [&](const void* given) { return slots[slot]->accepts(given, &why) != 0; });
    if (!does && reason) *reason = why ? why : "it refuses";
    return does;
  }
  static double cost_ns(const void* problem) {
    return with_published<Problem>(problem, slots[slot]->cost_ns);
  }
  static void run(const void* problem) {
    if (const int code = with_published<Problem>(problem, slots[slot]->run))
      fail(ErrorKind::runtime, slots[slot]->op, ": kernel '", slots[slot]->name,
           "' failed with code ", code);
  }
};
template <class Problem, int... slot>
constexpr auto make_kernels(std::integer_sequence<int, slot...>) {
  return std::array{Kernel{.op = "",
                           .name = "",
                           .device = "cpu",
                           .help = "",
                           .accepts = Functions<Problem, slot>::accepts,
                           .cost_ns = Functions<Problem, slot>::cost_ns,
                           .run = Functions<Problem, slot>::run}...};
}

void check(const tw_kernel& kernel) {
  if (!kernel.op || !kernel.name || !*kernel.name || !kernel.run)
    fail(ErrorKind::value, "kernels.load: a kernel without op, name or run");
  bool is_known = std::string_view(kernel.op) == "matmul";
  for (const char* op : kConvolutionOps) is_known |= std::string_view(kernel.op) == op;
  if (!is_known)
    fail(ErrorKind::value, "kernels.load: '", kernel.op,
         "' takes no kernels from outside; matmul, convolution, convolution_input_gradient and "
         "convolution_weight_gradient do");
  for (const Kernel* other : kernels_of_op(kernel.op))
    if (std::string_view(other->name) == kernel.name)
      fail(ErrorKind::value, "kernels.load: ", kernel.op, " has a kernel '", kernel.name,
           "' already");
}

}  // namespace

void add_external_kernels(const tw_kernels& library) {
  if (library.abi != TW_KERNEL_ABI)
    fail(ErrorKind::value, "kernels.load: the library was built for version ", library.abi,
         " of the interface, this is ", TW_KERNEL_ABI, "; build it again");
  const std::lock_guard lock(mutex);
  if (library.count < 0 || library.count > kSlots - taken)
    fail(ErrorKind::value, "kernels.load: ", library.count, " kernels, but there is room for ",
         kSlots - taken);
  for (int i = 0; i < library.count; ++i) {
    check(library.kernels[i]);
    for (int k = 0; k < i; ++k)
      if (std::string_view(library.kernels[i].op) == library.kernels[k].op &&
          std::string_view(library.kernels[i].name) == library.kernels[k].name)
        fail(ErrorKind::value, "kernels.load: two kernels '", library.kernels[i].name, "' of ",
             library.kernels[i].op);
  }
  constexpr std::make_integer_sequence<int, kSlots> all;
  static const auto products = make_kernels<MatmulProblem>(all);
  static const auto convolutions = make_kernels<ConvolutionProblem>(all);
  for (int i = 0; i < library.count; ++i) {
    const tw_kernel& given = library.kernels[i];
    const bool is_product = std::string_view(given.op) == "matmul";
    auto* const kernel = new Kernel((is_product ? products : convolutions)[taken]);
    kernel->op = given.op;
    kernel->name = given.name;
    kernel->help = given.help ? given.help : "";
    if (!given.accepts) kernel->accepts = nullptr;
    if (!given.cost_ns) kernel->cost_ns = nullptr;
    kernel->is_forced_only = !given.cost_ns;
    slots[taken++] = &given;
    register_kernel(kernel);
  }
}

}  // namespace tw
