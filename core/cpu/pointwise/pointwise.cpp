// Feeds pointwise kernels, which know only contiguous runs and constants: merges axes, walks the
// rest, and stages operands of other strides or element types through buffers that stay in the L1
// cache.
#include "core/cpu/pointwise/pointwise.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/axis_order.h"
#include "core/base/cpu_info.h"
#include "core/base/error.h"
#include "core/base/thresholds.h"
#include "core/cpu/pointwise/complex_functions.h"
#include "core/cpu/copy/convert.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/reduce/reduce.h"
#include "core/cpu/pointwise/staging.h"
#include "core/problems/axes.h"
#include "core/runtime/thread_pool.h"

namespace tw {

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
    case DType::complex128: return ComputeType::c128;
  }
  __builtin_unreachable();
}

DType dtype_of(ComputeType type) {
  constexpr DType kTypes[] = {DType::float32,   DType::float64,    DType::int32,
                              DType::int64,     DType::uint64,     DType::uint8,
                              DType::complex64, DType::complex128, DType::bfloat16};
  return kTypes[static_cast<int>(type)];
}

PointwiseFn pointwise_value(PointwiseOp op, ComputeType type) {
  return pointwise_value(op, type, active_kernels());
}
PointwiseFn pointwise_value(PointwiseOp op, ComputeType type, const IsaKernels& kernels) {
  const int row = static_cast<int>(op);
  if (type == ComputeType::c64)
    if (const PointwiseFn f = complex_value<float>(op)) return f;
  if (type == ComputeType::c128)
    if (const PointwiseFn f = complex_value<double>(op)) return f;
  if (type == ComputeType::f32) return kernels.pointwise_float32->value[row];
  if (type == ComputeType::f64) return kernels.pointwise_float64->value[row];
  if (type == ComputeType::bf16) return kernels.pointwise_bfloat16->value[row];
  return kernels.pointwise_integer->value[static_cast<int>(type) - 2][row];
}

PointwiseFn pointwise_gradient(PointwiseOp op, int input, ComputeType type) {
  return pointwise_gradient(op, input, type, active_kernels());
}
PointwiseFn pointwise_gradient(PointwiseOp op, int input, ComputeType type,
                               const IsaKernels& kernels) {
  const int row = static_cast<int>(op);
  if (type == ComputeType::f32) return kernels.pointwise_float32->gradient[row][input];
  if (type == ComputeType::f64) return kernels.pointwise_float64->gradient[row][input];
  if (type == ComputeType::bf16) return kernels.pointwise_bfloat16->gradient[row][input];
  return nullptr;
}

// Whole numbers have no fractions: pow(2, -1) of integers would be 0.
void check_exponents(const PointwiseProblem& p) {
  constexpr int kExponent = 2;
  if (!is_signed_int(p.dtype[kExponent]) || p.count == 0) return;
  PlainDims shape, strides;
  for (int i = 0; i < p.rank; ++i) {
    const std::int64_t step = p.stride[kExponent][i];
    shape.push_back(step == 0 ? 1 : p.extent[i]);
    strides.push_back(step);
  }
  char item[8];
  std::int64_t least;
  reduce({ReduceOp::min,
          p.dtype[kExponent],
          p.dtype[kExponent],
          {},
          {},
          shape,
          strides,
          p.data[kExponent],
          item});
  convert_elements(p.dtype[kExponent], DType::int64, 1, item, 0, &least, 0);
  if (least < 0)
    fail(ErrorKind::value, "pow: integers to the negative power ", least,
         " are no integers; convert with astype(float32) first");
}

DType result_type(const PointwiseProblem& p) {
  const bool is_truth = p.dtype[0] == DType::bool_ && p.type != ComputeType::u8;
  return is_truth ? DType::bool_ : dtype_of(p.type);
}

// bool has no arithmetic: its sum and product are the logical ones.
PointwiseOp op_for(PointwiseOp op, DType type) {
  if (!is_bool(type)) return op;
  if (op == PointwiseOp::add) return PointwiseOp::logical_or;
  if (op == PointwiseOp::multiply) return PointwiseOp::logical_and;
  return op;
}

namespace {

// One operand along the innermost axis.
struct Lane {
  char* data;
  DType dtype;
  std::int64_t stride;  // elements
  std::int64_t step_bytes() const { return stride * static_cast<std::int64_t>(size_of(dtype)); }
};

using Problem = PointwiseProblem;

Lane lane(const Problem& p, int operand) {
  return {static_cast<char*>(p.data[operand]), p.dtype[operand], p.stride[operand][p.rank - 1]};
}

std::int64_t step_bytes(const Problem& p, int operand, int axis) {
  return p.stride[operand][axis] * static_cast<std::int64_t>(size_of(p.dtype[operand]));
}

// Runs the kernel along one axis.
class Row {
 public:
  explicit Row(const Problem& p)
      : fn_(p.select ? p.select : p.fn),
        inputs_(p.operands - 1),
        compute_(dtype_of(p.type)),
        selects_(p.select != nullptr),
        result_(result_type(p)),
        traffic_(p.traffic) {}

  // Rows of n elements, the operands' row_bytes apart; types and strides are those of all rows.
  void run(const Lane* lanes, std::int64_t n, std::int64_t rows, const std::int64_t* row_bytes) {
    if (!seen_ || single_ != (n == 1)) look_at(lanes, n == 1);
    Lane row[kMaxOperands];
    std::copy_n(lanes, inputs_ + 1, row);
    const void* in[kMaxPointwiseInputs];
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t at = r % kRepeatedRows, together = std::min(rows - r, kRepeatedRows);
      for (int k = 0; k < inputs_; ++k) {
        if (!step_[k] && at == 0) repeat(k, row[k + 1], row_bytes[k + 1], together);
        in[k] = step_[k]           ? row[k + 1].data
                : row_bytes[k + 1] ? buffers_[k].bytes + at * kRepeatedBytes
                                   : buffers_[k].bytes;
      }
      if (any_staged_ || !y_direct_)
        run_staged(row, n, in);
      else
        fn_(n, row[0].data, in, step_, traffic_at(traffic_, row[0].data));
      for (int k = 0; k <= inputs_; ++k) row[k].data += row_bytes[k];
    }
  }

 private:
  struct alignas(64) Buffer {
    char bytes[thresholds::kStageBytes];
  };
  static constexpr std::int64_t kRepeatedBytes = 64,
                                kRepeatedRows = thresholds::kStageBytes / kRepeatedBytes;

  void look_at(const Lane* lanes, bool single) {
    seen_ = true;
    single_ = single;
    any_staged_ = false;
    for (int k = 0; k < inputs_; ++k) {
      const Lane& x = lanes[k + 1];
      step_[k] = x.stride != 0 || single;
      staged_[k] =
          step_[k] && (!same_representation(x.dtype, type_of(k)) || !(x.stride == 1 || single));
      any_staged_ |= staged_[k];
    }
    const Lane& y = lanes[0];
    y_direct_ = (y.stride == 1 || single) && same_representation(y.dtype, result_);
  }

  // What the kernel reads.
  DType type_of(int k) const { return selects_ && k == 0 ? DType::bool_ : compute_; }

  // The values of some rows, or of all where they are the same one, each as often as a kernel reads
  // it at once. By one store of a vector where the instruction set has such: the kernel's first
  // load of what several had written would have to wait for all of them.
  void repeat(int k, const Lane& x, std::int64_t row_bytes, std::int64_t rows) {
    if (row_bytes == 0) rows = 1;
    if (rows == 1 && repeated_[k] == x.data) return;
    repeated_[k] = x.data;
    const DType type = type_of(k);
    const auto size = static_cast<std::int64_t>(size_of(type));
    const char* values = x.data;
    alignas(16) char converted[kRepeatedRows * 16];
    if (!same_representation(x.dtype, type) || (rows > 1 && row_bytes != size)) {
      convert_elements(x.dtype, type, rows, x.data, row_bytes, converted, size);
      values = converted;
    }
    const int kind = std::countr_zero(static_cast<unsigned>(size));
    active_kernels().convert->spread[kind](rows, kRepeatedBytes / size, values, buffers_[k].bytes);
  }

  void run_staged(const Lane* lanes, std::int64_t n, const void* const* in) {
    const std::int64_t most =
        thresholds::kStageBytes / static_cast<std::int64_t>(size_of(compute_));
    for (std::int64_t at = 0; at < n; at += most) stage(lanes, at, std::min(most, n - at), in);
  }
  void stage(const Lane* lanes, std::int64_t at, std::int64_t n, const void* const* in) {
    const void* inputs[kMaxPointwiseInputs];
    for (int k = 0; k < inputs_; ++k) {
      const Lane& x = lanes[k + 1];
      const DType type = type_of(k);
      const std::int64_t size = static_cast<std::int64_t>(size_of(type));
      if (staged_[k]) {
        convert_elements(x.dtype, type, n, x.data + at * x.step_bytes(), x.step_bytes(),
                         buffers_[k].bytes, size);
        inputs[k] = buffers_[k].bytes;
      } else {
        inputs[k] = static_cast<const char*>(in[k]) + step_[k] * at * size;
      }
    }
    const Lane& y = lanes[0];
    char* out = y.data + at * y.step_bytes();
    if (y_direct_) return fn_(n, out, inputs, step_, traffic_at(traffic_, out));
    char* buffer = buffers_[kMaxPointwiseInputs].bytes;
    fn_(n, buffer, inputs, step_, Traffic::in_l1);
    convert_elements(result_, y.dtype, n, buffer, static_cast<std::int64_t>(size_of(result_)), out,
                     y.step_bytes());
  }

  PointwiseFn fn_;
  int inputs_;
  DType compute_;
  bool selects_;
  DType result_;
  Traffic traffic_;
  bool seen_ = false, single_ = false, any_staged_ = false, y_direct_ = false;
  int step_[kMaxPointwiseInputs];
  bool staged_[kMaxPointwiseInputs];
  const char* repeated_[kMaxPointwiseInputs] = {};
  Buffer buffers_[kMaxOperands];
};

// Moves to a point of the outer axes, of all or of all but one.
void move_to(const Problem& p, std::int64_t outer, int skipped, Lane* lanes) {
  for (int axis = p.rank - 2; axis >= 0; --axis) {
    if (axis == skipped) continue;
    const std::int64_t at = outer % p.extent[axis];
    outer /= p.extent[axis];
    for (int k = 0; k < p.operands; ++k) lanes[k].data += at * step_bytes(p, k, axis);
  }
}

// Units are pieces of the innermost axis; a unit's number gives its position on the outer axes.
// Whole rows that are neighbours on the next axis go together.
void run_units(const Problem& p, std::int64_t piece, std::int64_t pieces, std::int64_t begin,
               std::int64_t end) {
  Row row(p);
  const std::int64_t inner = p.extent[p.rank - 1];
  const std::int64_t neighbours = pieces > 1 || p.rank < 2 ? 1 : p.extent[p.rank - 2];
  std::int64_t row_bytes[kMaxOperands] = {};
  if (neighbours > 1)
    for (int k = 0; k < p.operands; ++k) row_bytes[k] = step_bytes(p, k, p.rank - 2);
  for (std::int64_t unit = begin; unit < end;) {
    Lane lanes[kMaxOperands];
    const std::int64_t from = unit % pieces * piece;
    for (int k = 0; k < p.operands; ++k) {
      lanes[k] = lane(p, k);
      lanes[k].data += from * lanes[k].step_bytes();
    }
    move_to(p, unit / pieces, -1, lanes);
    const std::int64_t rows = std::min(neighbours - unit % neighbours, end - unit);
    row.run(lanes, std::min(piece, inner - from), rows, row_bytes);
    unit += rows;
  }
}

// ---- operands that lie across the result ----

// The axis along which an input is dense that is not along the innermost; -1: none.
int crossing_axis(const Problem& p) {
  const int inner = p.rank - 1;
  if (p.stride[0][inner] != 1) return -1;
  for (int k = 1; k < p.operands; ++k) {
    if (p.stride[k][inner] == 0 || p.stride[k][inner] == 1) continue;
    for (int axis = 0; axis < inner; ++axis)
      if (p.stride[k][axis] == 1 && p.extent[axis] >= 4) return axis;
  }
  return -1;
}

// Tiles of the crossing and the innermost axis: what is dense along the former is transposed into a
// buffer, from which its rows go through the kernel.
class CrossingTiles {
 public:
  CrossingTiles(const Problem& p, int axis) : p_(p), axis_(axis), inner_(p.rank - 1) {
    std::size_t widest = 1;
    for (int k = 1; k < p.operands; ++k)
      if (crosses(k)) widest = std::max(widest, size_of(p.dtype[k]));
    height_ = kTileBytes / kTileWidth / static_cast<std::int64_t>(widest);
    down_ = (p.extent[axis] + height_ - 1) / height_;
    across_ = (p.extent[inner_] + kTileWidth - 1) / kTileWidth;
  }
  void run() const {
    const std::int64_t outer = p_.count / (p_.extent[axis_] * p_.extent[inner_]);
    const std::int64_t grain =
        std::max<std::int64_t>(1, thresholds::kGrain / (height_ * kTileWidth));
    parallel_ranges(outer * down_ * across_, grain, [&](std::int64_t begin, std::int64_t end) {
      Row row(p_);
      for (std::int64_t tile = begin; tile < end; ++tile) run_tile(row, tile);
    });
  }

 private:
  bool crosses(int k) const {
    const std::int64_t inner = p_.stride[k][inner_];
    return inner != 0 && inner != 1 && p_.stride[k][axis_] == 1;
  }
  void run_tile(Row& row, std::int64_t tile) const {
    const std::int64_t i = tile % down_ * height_, j = tile / down_ % across_ * kTileWidth;
    const std::int64_t rows = std::min(height_, p_.extent[axis_] - i);
    const std::int64_t n = std::min(kTileWidth, p_.extent[inner_] - j);
    alignas(64) char buffers[kMaxPointwiseInputs][kTileBytes];
    Lane lanes[kMaxOperands];
    std::int64_t row_bytes[kMaxOperands];
    for (int k = 0; k < p_.operands; ++k) {
      lanes[k] = lane(p_, k);
      lanes[k].data += i * step_bytes(p_, k, axis_) + j * lanes[k].step_bytes();
      row_bytes[k] = step_bytes(p_, k, axis_);
    }
    move_to(p_, tile / across_ / down_, axis_, lanes);
    for (int k = 1; k < p_.operands; ++k) {
      if (!crosses(k)) continue;
      const auto size = static_cast<std::int64_t>(size_of(p_.dtype[k]));
      const int kind = std::countr_zero(static_cast<unsigned>(size));
      active_kernels().convert->transpose[kind](n, rows, lanes[k].data, lanes[k].step_bytes(),
                                                buffers[k - 1], kTileWidth * size, false);
      lanes[k] = {buffers[k - 1], p_.dtype[k], 1};
      row_bytes[k] = kTileWidth * size;
    }
    row.run(lanes, n, rows, row_bytes);
  }

  const Problem& p_;
  const int axis_, inner_;
  std::int64_t height_, down_, across_;
};

const PointwiseTable& floating_table(ComputeType type) {
  const IsaKernels& kernels = active_kernels();
  return type == ComputeType::f32 ? *kernels.pointwise_float32 : *kernels.pointwise_float64;
}

// Lets few operations make a power of all elements by one exponent, or its gradient, where they
// can; else the exponent is an operand like others.
void settle_exponent(Problem& p) {
  const bool is_slope = p.exponent == 3;
  double power;
  convert_elements(p.dtype[p.exponent], DType::float64, 1, p.data[p.exponent], 0, &power, 0);
  p.exponent = 0;
  if (is_slope && power == 0) return;  // 0, though a^-1 may be infinite
  const auto* const found = std::ranges::find(kSimplePowers, is_slope ? power - 1 : power);
  if (found == std::end(kSimplePowers) || !uses(Optimization::strength_reduction)) return;
  const auto which = found - kSimplePowers;
  const PointwiseTable& table = floating_table(p.type);
  p.fn = (is_slope ? table.simple_power_slope : table.simple_power)[which];
  const bool stored = p.dtype[0] == DType::bfloat16 && p.dtype[1] == DType::bfloat16;
  if (is_slope || !stored || p.type != ComputeType::f32) return;
  if (!uses(Optimization::native_bfloat16)) return;
  p.fn = active_kernels().pointwise_bfloat16->simple_power[which];
  p.type = ComputeType::bf16;
}

// ---- from calls to problems ----

Traffic traffic_to(const Meta& y) {
  static const bool loads_halves = cpu_info().vector_path_bits == 256;
  const std::int64_t bytes = y.count * static_cast<std::int64_t>(size_of(y.dtype));
  if (bytes < thresholds::kBeyondL1Bytes) return Traffic::in_l1;
  if (bytes >= thresholds::kStreamBytes && uses(Optimization::streaming_stores))
    return Traffic::nontemporal;
  return loads_halves && uses(Optimization::split_loads) ? Traffic::beyond_l1 : Traffic::in_l1;
}

// Whether all tensors lie alike, without gaps.
bool is_one_run(const Call& call) {
  if (!call.out->contiguous) return false;
  for (int i = 0; i < call.inputs; ++i) {
    const Meta& x = call.in[i];
    if (!x.number && (!x.contiguous || !(*x.shape == *call.out->shape))) return false;
  }
  return true;
}

void set_up_axes(const Call& call, Problem& p) {
  const Shape& shape = *call.out->shape;
  const int rank = shape.rank();
  const Strides& y = *call.out->strides;
  const AxisOrder order(y);
  OperandAxes axes{0, p.operands, p.extent,
                   [&p](int k, int axis) -> std::int64_t& { return p.stride[k][axis]; }};
  for (int k = 0; k < rank; ++k) {
    const int axis = order.at[k];
    std::int64_t strides[kMaxOperands] = {y[axis]};
    for (int i = 0; i < call.inputs; ++i) strides[i + 1] = step_along(call.in[i], shape, axis);
    axes.push(shape[axis], strides);
  }
  p.rank = static_cast<std::int8_t>(axes.rank);
}

void set_up(const Call& call, PointwiseFn fn, ComputeType type, void* problem) {
  Problem& p = *static_cast<Problem*>(problem);
  p.fn = fn;
  p.select = nullptr;
  p.repeated = {};
  p.type = type;
  p.count = call.out->count;
  p.traffic = traffic_to(*call.out);
  p.operands = static_cast<std::int8_t>(call.inputs + 1);
  p.rank = 0;
  p.checks_exponents = false;
  p.exponent = 0;
  p.dtype[0] = call.out->dtype;
  for (int i = 0; i < call.inputs; ++i) p.dtype[i + 1] = call.in[i].dtype;
  if (is_one_run(call)) {
    p.rank = 1;
    p.extent[0] = p.count;
    p.stride[0][0] = 1;
    for (int i = 0; i < call.inputs; ++i) p.stride[i + 1][0] = p.count == 1 || !call.in[i].number;
  } else {
    set_up_axes(call, p);
  }
  if (p.rank > 0) return;
  p.rank = 1;
  p.extent[0] = 1;
  for (int k = 0; k < p.operands; ++k) p.stride[k][0] = 1;
}

// Whether all operands are of the call's type; masks, where the row chooses by them, count as
// such.
bool is_of_one_type(const Call& call) {
  for (int i = 0; i < call.inputs; ++i)
    if (call.in[i].dtype != call.type && !is_bool(call.in[i].dtype)) return false;
  return true;
}
// `stored`: the function of bfloat16 as it lies, or null.
ComputeType compute_type_of(const Call& call, PointwiseFn stored) {
  const bool as_it_lies = call.type == DType::bfloat16 && stored && is_of_one_type(call) &&
                          uses(Optimization::native_bfloat16);
  return as_it_lies ? ComputeType::bf16 : compute_type_of(call.type);
}

// Where a mask chooses among numbers of the result's type.
PointwiseFn select_for(const Call& call, ComputeType type) {
  const DType made = call.out->dtype;
  if (!is_bool(call.in[0].dtype) || call.in[0].number || size_of(made) > 8) return nullptr;
  if (!same_representation(made, dtype_of(type))) return nullptr;
  if (!uses(Optimization::byte_mask_select)) return nullptr;
  const int size = std::countr_zero(static_cast<unsigned>(size_of(made)));
  return active_kernels().pointwise_integer->select.of_size[size];
}

// The operand of an input that is one number, where numbers are floating; 0 where it is more.
std::int8_t one_exponent(const Call& call, int input) {
  if (!is_floating(call.type) || call.in[input].rank() > 0) return 0;
  return static_cast<std::int8_t>(input + 1);
}

template <PointwiseOp op> void set_up_value(const Call& call, void* problem) {
  const ComputeType type = compute_type_of(call, pointwise_value(op, ComputeType::bf16));
  Problem& p = *static_cast<Problem*>(problem);
  set_up(call, pointwise_value(op_for(op, call.type), type), type, problem);
  p.checks_exponents = op == PointwiseOp::pow && is_signed_int(call.type);
  if constexpr (op == PointwiseOp::pow) p.exponent = one_exponent(call, 1);
  if constexpr (op == PointwiseOp::where) p.select = select_for(call, type);
  if constexpr (op == PointwiseOp::xlogy) {
    const PointwiseTable& table = floating_table(type);
    p.repeated = {table.logarithm, table.xlogy_by_log, 2};
  }
}
template <PointwiseOp op, int input> void set_up_gradient(const Call& call, void* problem) {
  const PointwiseFn stored = pointwise_gradient(op, input, ComputeType::bf16);
  const ComputeType type = compute_type_of(call, stored);
  set_up(call, pointwise_gradient(op, input, type), type, problem);
  if constexpr (op == PointwiseOp::pow && input == 0)
    static_cast<Problem*>(problem)->exponent = one_exponent(call, 2);
  if constexpr (op == PointwiseOp::xlogy && input == 0) {
    const PointwiseTable& table = floating_table(type);
    static_cast<Problem*>(problem)->repeated = {table.logarithm, table.xlogy_slope_by_log, 3};
  }
}

void bind(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  const int inputs = p.operands - 1;
  p.data[0] = at[inputs];
  for (int i = 0; i < inputs; ++i) p.data[i + 1] = at[i];
}

double cost_ns(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  constexpr double bytes_per_ns = 10;  // one core, reading and writing memory
  double bytes = 0;
  for (int k = 0; k < p.operands; ++k) bytes += static_cast<double>(size_of(p.dtype[k]));
  return 30 + bytes * static_cast<double>(p.count) / bytes_per_ns;
}

void run(const void* problem) { run_pointwise(*static_cast<const Problem*>(problem)); }

constexpr char kHelp[] = "the table row's formula over the vectors of the instruction set";
template <PointwiseOp op>
void run_plain(DType type, std::int64_t n, void* y, const void* const* inputs) {
  constexpr int kSteps[3] = {1, 1, 1};
  const IsaKernels& kernels = active_kernels();
  const auto& table =
      type == DType::float32 ? *kernels.pointwise_float32 : *kernels.pointwise_float64;
  table.value[static_cast<int>(op)](n, y, inputs, kSteps, Traffic::in_l1);
}
template <PointwiseOp op> void add_value(const char* name) {
  add_kernel<Problem>(name, kHelp,
                      {.set_up = set_up_value<op>, .bind = bind, .cost_ns = cost_ns, .run = run})
      .plain = run_plain<op>;
}
template <PointwiseOp op, int input> void add_gradient(const char* name) {
  if (kPointwiseRows[static_cast<int>(op)].gradients[input].form != GradientForm::formula) return;
  const auto refuses = [](const Call& call) {
    return is_complex(call.type) ? "gradients of complex numbers are made of other ops" : nullptr;
  };
  add_kernel<Problem>(name, kHelp,
                      {.refuses = refuses,
                       .set_up = set_up_gradient<op, input>,
                       .bind = bind,
                       .cost_ns = cost_ns,
                       .run = run});
}

}  // namespace

void register_pointwise_kernels() {
#define TW_ADD(name, input) add_gradient<PointwiseOp::name, input>(#name "_backward_" #input);
#define TW_UNARY(name, types, result, formula, ga, help) \
  add_value<PointwiseOp::name>(#name);                   \
  TW_ADD(name, 0)
#define TW_BINARY(name, types, result, formula, ga, gb, help) \
  add_value<PointwiseOp::name>(#name);                        \
  TW_ADD(name, 0) TW_ADD(name, 1)
#define TW_TERNARY(name, types, result, formula, ga, gb, gc, help) \
  add_value<PointwiseOp::name>(#name);                             \
  TW_ADD(name, 0) TW_ADD(name, 1) TW_ADD(name, 2)
#include "core/problems/pointwise.inc"
#include "core/runtime/choice.h"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY
#undef TW_ADD
}

void run_pointwise(const PointwiseProblem& p) {
  if (p.checks_exponents) check_exponents(p);
  if (p.count == 0) return;
  if (p.exponent > 0) {
    Problem settled = p;
    settle_exponent(settled);
    return run_pointwise(settled);
  }
  if (p.repeated.part && run_repeated_part(p)) return;
  if (const int axis = crossing_axis(p); axis >= 0 && uses(Optimization::transpose_tiling))
    return CrossingTiles(p, axis).run();
  if (has_short_rows(p) && uses(Optimization::short_row_batching)) return run_short_rows(p);
  const std::int64_t inner = p.extent[p.rank - 1];
  // Elements do not depend on each other: a thread that is alone takes all at once.
  const std::int64_t most = num_threads() == 1 ? p.count : thresholds::kGrain;
  const std::int64_t piece = std::min(inner, most);
  const std::int64_t pieces = (inner + piece - 1) / piece;
  const std::int64_t units = p.count / inner * pieces;
  const std::int64_t grain = std::max<std::int64_t>(1, most / piece);
  parallel_ranges(units, grain, [&](std::int64_t begin, std::int64_t end) {
    run_units(p, piece, pieces, begin, end);
  });
}

}  // namespace tw
