// Feeds pointwise kernels, which know only contiguous runs and constants: merges axes, walks the
// rest, and stages operands of other strides or element types through buffers that stay in the L1
// cache.
#include "core/cpu/pointwise.h"

#include <algorithm>
#include <cstring>

#include "core/cpu/convert.h"
#include "core/cpu/isa.h"
#include "core/runtime/registry.h"
#include "core/runtime/thread_pool.h"

namespace tw {

const PointwiseRow kPointwiseRows[kPointwiseOps] = {
#define TW_UNARY(name, types, result, formula, gradient, help) \
  {#name, 1, kind::types, PointwiseResult::result, #formula, {#gradient, "none", "none"}, help},
#define TW_BINARY(name, types, result, formula, ga, gb, help) \
  {#name, 2, kind::types, PointwiseResult::result, #formula, {#ga, #gb, "none"}, help},
#define TW_TERNARY(name, types, result, formula, ga, gb, gc, help) \
  {#name, 3, kind::types, PointwiseResult::result, #formula, {#ga, #gb, #gc}, help},
#include "core/ops/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY
};

ComputeType compute_type_of(DType dtype) {
  switch (dtype) {
    case DType::bool_:
    case DType::uint8: return ComputeType::u8;
    case DType::int8:
    case DType::int16:
    case DType::uint16:
    case DType::int32: return ComputeType::i32;
    case DType::uint32:
    case DType::int64: return ComputeType::i64;
    case DType::uint64: return ComputeType::u64;
    case DType::float16:
    case DType::bfloat16:
    case DType::float32: return ComputeType::f32;
    case DType::float64: return ComputeType::f64;
    case DType::complex64: return ComputeType::c64;
  }
  __builtin_unreachable();
}

DType dtype_of(ComputeType type) {
  constexpr DType kTypes[] = {DType::float32, DType::float64, DType::int32,    DType::int64,
                              DType::uint64,  DType::uint8,   DType::complex64};
  return kTypes[static_cast<int>(type)];
}

PointwiseFn pointwise_value(PointwiseOp op, ComputeType type) {
  const IsaKernels& kernels = active_kernels();
  const int row = static_cast<int>(op);
  if (type == ComputeType::f32) return kernels.pointwise_float32->value[row];
  if (type == ComputeType::f64) return kernels.pointwise_float64->value[row];
  return kernels.pointwise_integer->value[static_cast<int>(type) - 2][row];
}

PointwiseFn pointwise_gradient(PointwiseOp op, int input, ComputeType type) {
  const IsaKernels& kernels = active_kernels();
  const int row = static_cast<int>(op);
  if (type == ComputeType::f32) return kernels.pointwise_float32->gradient[row][input];
  if (type == ComputeType::f64) return kernels.pointwise_float64->gradient[row][input];
  return nullptr;
}

namespace {

constexpr int kMaxOperands = kMaxPointwiseInputs + 1;
// Elements staged at a time: six operands of 8 bytes fit half of a 48 KiB L1 cache.
constexpr std::int64_t kStage = 512;
// Elements a thread takes at a time: large enough to hide the hand-over (about 1 us).
constexpr std::int64_t kGrain = 32768;

// Results larger than this are written around the caches: reading a line only to overwrite it costs
// a quarter of an addition's traffic. Smaller ones may still be in the last cache when the next op
// reads them, which is worth more (measured both ways in docs/notes/pointwise.md).
constexpr std::int64_t kStreamBytes = 32 << 20;

bool same_representation(DType a, DType b) {
  return a == b || (size_of(a) == 1 && size_of(b) == 1 && !is_signed_int(a) && !is_signed_int(b));
}

// One operand along the innermost axis.
struct Lane {
  char* data;
  DType dtype;
  std::int64_t stride;  // elements
  std::int64_t step_bytes() const { return stride * static_cast<std::int64_t>(size_of(dtype)); }
};

// The problem with axes merged: operand 0 is y.
struct Plan {
  const PointwiseProblem& problem;
  int operands;
  int rank = 0;
  std::int64_t extent[kMaxRank];
  std::int64_t stride[kMaxOperands][kMaxRank];

  explicit Plan(const PointwiseProblem& p) : problem(p), operands(p.inputs + 1) {
    for (int axis = 0; axis < p.shape.rank(); ++axis) push(axis);
    if (rank == 0) {
      extent[0] = 1;
      for (int k = 0; k < operands; ++k) stride[k][0] = 1;
      rank = 1;
    }
  }

  std::int64_t stride_of(int operand, int axis) const {
    return operand == 0 ? problem.y_strides[axis] : problem.input[operand - 1].strides[axis];
  }

  // Appends an axis, merged into the previous one where every operand allows.
  void push(int axis) {
    const std::int64_t n = problem.shape[axis];
    if (n == 1) return;
    bool merges = rank > 0;
    for (int k = 0; k < operands && merges; ++k)
      merges = stride[k][rank - 1] == n * stride_of(k, axis);
    const int at = merges ? rank - 1 : rank++;
    extent[at] = merges ? extent[at] * n : n;
    for (int k = 0; k < operands; ++k) stride[k][at] = stride_of(k, axis);
  }

  Lane lane(int operand) const {
    if (operand == 0) return {static_cast<char*>(problem.y), problem.y_dtype, stride[0][rank - 1]};
    const PointwiseOperand& input = problem.input[operand - 1];
    return {static_cast<char*>(const_cast<void*>(input.data)), input.dtype,
            stride[operand][rank - 1]};
  }
};

// Runs the kernel along one axis.
class Row {
 public:
  explicit Row(const PointwiseProblem& p)
      : fn_(p.fn),
        inputs_(p.inputs),
        compute_(dtype_of(p.type)),
        result_(p.y_dtype == DType::bool_ && p.type != ComputeType::u8 ? DType::bool_ : compute_),
        stream_(element_count(p.shape) * static_cast<std::int64_t>(size_of(p.y_dtype)) >=
                kStreamBytes) {}

  void run(const Lane* lanes, std::int64_t n) {
    const void* in[kMaxPointwiseInputs];
    int step[kMaxPointwiseInputs];
    bool staged[kMaxPointwiseInputs];
    bool any_staged = false;
    for (int k = 0; k < inputs_; ++k) {
      const Lane& x = lanes[k + 1];
      step[k] = x.stride != 0 || n == 1;
      staged[k] = step[k] && (x.dtype != compute_ && !same_representation(x.dtype, compute_));
      staged[k] |= step[k] && x.stride != 1 && n > 1;
      any_staged |= staged[k];
      in[k] = step[k] ? x.data : repeat(k, x);
    }
    const Lane& y = lanes[0];
    const bool y_direct = (y.stride == 1 || n == 1) && same_representation(y.dtype, result_);
    if (!any_staged && y_direct) return fn_(n, y.data, in, step, stream_ && is_line(y.data));
    for (std::int64_t at = 0; at < n; at += kStage)
      stage(lanes, at, std::min(kStage, n - at), in, step, staged, y_direct);
  }

 private:
  struct alignas(64) Buffer {
    char bytes[kStage * 8];
  };

  static bool is_line(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 64 == 0; }

  const void* repeat(int k, const Lane& x) {
    char* buffer = buffers_[k].bytes;
    const std::size_t size = size_of(compute_);
    convert_elements(x.dtype, compute_, 1, x.data, 0, buffer, 0);
    for (std::size_t filled = size; filled < 64; filled *= 2)
      std::memcpy(buffer + filled, buffer, filled);
    return buffer;
  }

  void stage(const Lane* lanes, std::int64_t at, std::int64_t n, const void* const* in,
             const int* step, const bool* staged, bool y_direct) {
    const std::int64_t size = static_cast<std::int64_t>(size_of(compute_));
    const void* inputs[kMaxPointwiseInputs];
    for (int k = 0; k < inputs_; ++k) {
      const Lane& x = lanes[k + 1];
      if (staged[k]) {
        convert_elements(x.dtype, compute_, n, x.data + at * x.step_bytes(), x.step_bytes(),
                         buffers_[k].bytes, size);
        inputs[k] = buffers_[k].bytes;
      } else {
        inputs[k] = static_cast<const char*>(in[k]) + step[k] * at * size;
      }
    }
    const Lane& y = lanes[0];
    char* out = y.data + at * y.step_bytes();
    if (y_direct) return fn_(n, out, inputs, step, stream_ && is_line(out));
    char* buffer = buffers_[kMaxPointwiseInputs].bytes;
    fn_(n, buffer, inputs, step, false);
    convert_elements(result_, y.dtype, n, buffer, static_cast<std::int64_t>(size_of(result_)), out,
                     y.step_bytes());
  }

  PointwiseFn fn_;
  int inputs_;
  DType compute_, result_;
  bool stream_;
  Buffer buffers_[kMaxOperands];
};

// Units are pieces of the innermost axis; a unit's number gives its position on the outer axes.
void run_units(const Plan& plan, std::int64_t piece, std::int64_t pieces, std::int64_t begin,
               std::int64_t end) {
  Row row(plan.problem);
  const std::int64_t inner = plan.extent[plan.rank - 1];
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t from = unit % pieces * piece;
    Lane lanes[kMaxOperands];
    for (int k = 0; k < plan.operands; ++k) {
      Lane lane = plan.lane(k);
      std::int64_t offset = from * lane.stride;
      std::int64_t outer = unit / pieces;
      for (int axis = plan.rank - 2; axis >= 0; --axis) {
        offset += outer % plan.extent[axis] * plan.stride[k][axis];
        outer /= plan.extent[axis];
      }
      lane.data += offset * static_cast<std::int64_t>(size_of(lane.dtype));
      lanes[k] = lane;
    }
    row.run(lanes, std::min(piece, inner - from));
  }
}

// Every row is an op of the registry, with this one kernel.
[[maybe_unused]] const bool registered = [] {
  static Kernel kernels[kPointwiseOps];
  for (int i = 0; i < kPointwiseOps; ++i) {
    kernels[i] = {
        kPointwiseRows[i].name,
        "vector",
        "cpu",
        Precision::ieee,
        "the table row's formula over the vectors of the instruction set",
        [](const void*, std::string*) { return true; },
        nullptr,
        [](const void* problem) { run_pointwise(*static_cast<const PointwiseProblem*>(problem)); }};
    register_kernel(&kernels[i]);
  }
  return true;
}();

}  // namespace

void run_pointwise(const PointwiseProblem& problem) {
  const std::int64_t count = element_count(problem.shape);
  if (count == 0) return;
  const Plan plan(problem);
  const std::int64_t inner = plan.extent[plan.rank - 1];
  const std::int64_t piece = std::min(inner, kGrain);
  const std::int64_t pieces = (inner + piece - 1) / piece;
  const std::int64_t units = count / inner * pieces;
  const std::int64_t grain = std::max<std::int64_t>(1, kGrain / piece);
  parallel_ranges(units, grain, [&](std::int64_t begin, std::int64_t end) {
    run_units(plan, piece, pieces, begin, end);
  });
}

}  // namespace tw
