// The op as a record: what every floor knows of an op, and one use of it as kernels see it. A
// record names no kernel and a kernel's lowering no tensor, so that calls can be replayed, moved to
// another device and described without running them.
#pragma once
#include <atomic>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>

#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace tw {

class Operand;
class Tensor;
class Vjp;
struct Kernel;
struct Lowering;
struct OpKernels;
struct Signature;
struct OpRecord;

// Whose kernels and lowerings a device runs.
enum class KernelSet : std::uint8_t { cpu, cuda };
inline constexpr int kKernelSets = 2;
inline constexpr const char* kKernelSetNames[] = {"cpu", "cuda"};

// ---- attributes of a call ----

// A bool, an integer, a dtype, the bits of a double, or where a list stands. Lists follow the
// attributes, their length first. Operands, numbers included, are no attributes: these
// decide shapes, types and kernels, and do not change between two runs of a captured step.
using Attribute = std::int64_t;
inline constexpr Attribute kNone = std::numeric_limits<Attribute>::min();

inline Attribute attribute_of(double value) { return std::bit_cast<Attribute>(value); }
inline Attribute attribute_of(DType dtype) { return static_cast<Attribute>(dtype); }

struct List {
  const Attribute* first = nullptr;
  int count = 0;
  const Attribute* begin() const { return first; }
  const Attribute* end() const { return first + count; }
  Attribute operator[](int i) const { return first[i]; }
};

struct Attributes {
  const Attribute* at = nullptr;
  int count = 0;
  Attribute operator[](int i) const { return at[i]; }
  bool none(int i) const { return at[i] == kNone; }
  bool flag(int i) const { return at[i] != 0; }
  double real(int i) const { return std::bit_cast<double>(at[i]); }
  DType dtype(int i) const { return static_cast<DType>(at[i]); }
  DType dtype(int i, DType otherwise) const { return none(i) ? otherwise : dtype(i); }
  // Of an attribute that is a list or one of some strings: the place of that string; -1: a list.
  int choice(int i) const { return at[i] < 0 && !none(i) ? static_cast<int>(~at[i]) : -1; }
  List list(int i) const { return {at + at[i] + 1, static_cast<int>(at[at[i]])}; }
  Dims dims(int i) const;  // raises ValueError for more than kMaxRank
  // Bits of the axes that an attribute lists, of `rank`; all where it is None. Raises IndexError
  // for axes out of range and ValueError for repeated ones.
  std::uint32_t axes(int i, int rank, const char* op) const;
  // The same of an attribute that is one axis.
  std::uint32_t axis(int i, int rank, const char* op) const {
    return none(i) ? all_axes(rank) : 1u << normalize_axis(at[i], rank, op);
  }
};

// Builds attributes: all of them first, then the lists that some are. The longest are those
// of unslice: a range for each axis, and a shape.
class AttributeList {
 public:
  static constexpr int kCapacity = 4 * kMaxRank + 16;
  explicit AttributeList(int attributes) : count_(attributes) {}
  // One by one: for so few numbers the call of memcpy that a compiler makes of the loop takes
  // longer.
  AttributeList(const Attribute* attributes, int count) : count_(count) {
    for (int i = 0; i < count; ++i)
      static_cast<volatile Attribute&>(attributes_[i]) = attributes[i];
  }
  AttributeList& set(int i, Attribute value) {
    attributes_[i] = value;
    return *this;
  }
  template <class Values> AttributeList& set_list(int i, const Values& values) {
    attributes_[i] = count_;
    const int length = count_++;
    for (const auto value : values) push(static_cast<Attribute>(value));
    attributes_[length] = count_ - length - 1;
    return *this;
  }
  operator Attributes() const { return {attributes_, count_}; }

 private:
  void push(Attribute value) {
    if (count_ == kCapacity) fail_full();
    attributes_[count_++] = value;
  }
  [[noreturn]] static void fail_full();
  int count_;
  Attribute attributes_[kCapacity];
};

// ---- a call ----

// What a call knows of an operand or a result: no address.
struct Meta {
  const Shape* shape;
  const Strides* strides;  // in elements
  std::int64_t count;      // elements
  DType dtype;
  bool contiguous;  // row-major without gaps
  bool number;      // of the caller's program: 0-d, weak in promotion, stored as the call's type
  bool absent;      // an optional operand that was left out
  int rank() const { return shape->rank(); }
  std::int64_t size(int axis) const { return (*shape)[axis]; }
};

// What `infer` says of a result.
struct Result {
  int like = -1;   // an input whose shape it has; else `shape` holds
  int alias = -1;  // an input whose memory it shows, by `strides` from `offset` on, in elements
  DType dtype;
  Shape shape;
  Strides strides;  // of a view, or of fresh memory that lies as `like` does; else row-major
  std::int64_t offset = 0;
};

struct Call {
  const OpRecord* op;
  const Meta* in;
  int inputs;
  const Meta* out;  // once inferred
  Attributes attributes;
  DType type = DType::float32;  // what numbers are stored as, and pointwise rows compute in
};

// The same use as ops see it.
struct Use {
  const OpRecord& op;
  const Operand* in;
  int inputs;
  Attributes attributes;
};

struct Estimate {
  double flops = 0, bytes = 0;
};

// ---- records ----

// What the gradient of one input reads: bits of inputs (one may have an index for each axis) and of
// results.
struct Reads {
  std::uint64_t inputs = 0;
  std::uint16_t results = 0;
  Reads& operator|=(const Reads& other) {
    inputs |= other.inputs;
    results |= other.results;
    return *this;
  }
};

enum OpFlags : std::uint16_t {
  kFunction = 1,     // in the module, and of Tensor where a tensor comes first
  kMethod = 2,       // of Tensor alone
  kWidensAll = 4,    // what is too narrow for kernels becomes float32 by ops of its own
  kBroadcasts = 16,  // inputs of fewer or shorter axes are stretched
  kConstant = 32,    // results depend on no input smoothly: they take no part in the graph
  kInPlace = 64,     // has a form `name_` whose result takes the place of its first operand
  // The first attribute is an axis, or a list of axes; operands and results have the same axes, and
  // what a call does along the others does not depend on their order.
  kAlongAxis = 128,
  kAlongAxes = 256,
  kAnyOrder = 512  // the same, and no attribute is an axis: nothing depends on the order of axes
};

// What autocast does with an op's operands of float32, float16 and bfloat16.
enum class Autocast : std::uint8_t {
  as_given,
  narrow,  // all become the type that was asked for: products, which are fast in it
  wide     // all become float32: what would lose more digits than a step can spare
};

inline constexpr int kMaxReads = 7;
inline constexpr std::uint16_t kAllShapes = 0xffff;
// Beside the bits of inputs: only where the result has more than two axes.
inline constexpr std::uint16_t kOfStacks = 0x8000;

struct OpRecord {
  const char* name = nullptr;
  // "(x: Tensor, axis: int = -1) -> Tensor": operands are the parameters that are tensors or
  // numbers to compute with, attributes the others, in order.
  const char* signature = nullptr;
  const char* help = nullptr;
  std::uint16_t flags = 0;
  int results = 1;  // internal ones included, which stand behind those that callers get
  // Computes the results of small calls of the usual kind without the steps that others need, and
  // returns true; returns run_in_full (core/ops/engine/apply.h) for all others. Null: run_in_full.
  bool (*quick)(const OpRecord& op, const Operand* in, int inputs, Attributes attributes,
                Tensor* out) = nullptr;
  // Answers the call by other ops, or by this one on other operands; false: it is to run as it is.
  // Null: no call is rewritten.
  bool (*rewrite)(const Use& use, Tensor* out) = nullptr;
  // Checks and, from metadata alone, says what the results are. Null: the op is its body.
  void (*infer)(Call& call, Result* results) = nullptr;
  Estimate (*estimate)(const Call& call) = nullptr;
  // The composite definition, the op in terms of others: what runs where no kernel
  // does, and what is recorded where the op has no gradient of its own.
  void (*body)(const Use& use, Tensor* out) = nullptr;
  void (*vjp)(Vjp& call) = nullptr;
  // Adds the result to what a tensor holds, which is row-major, in one kernel; false where none
  // does. Null: none.
  bool (*add_into)(const Use& use, const Tensor& target) = nullptr;
  Reads reads[kMaxReads] = {};  // by input
  Autocast autocast = Autocast::as_given;
  std::uint8_t smooth = 1;    // bits of the results that pass gradients on
  std::uint16_t shapes = 0;   // inputs whose shape the gradient reads
  const void* row = nullptr;  // of the table that the record was made from
  // Found on first use, by whatever thread that is.
  mutable std::atomic<const OpKernels*> kernels[kKernelSets] = {};  // by device
  mutable std::atomic<const Signature*> parsed = nullptr;
};

// "x": the name of the parameter that an operand is given by.
const char* parameter_name(const OpRecord& op, int operand);

// ---- lowerings: from a call to the problem that a device's kernels solve ----

// Reasons to refuse a call. The same one in float32 would be taken.
inline constexpr char kTooNarrow[] = "kernels are for float32 and float64";
// The same one of operands in the type of the result would be.
inline constexpr char kOtherType[] = "operands are converted to the type of the result first";

inline constexpr int kMaxProblemBytes = 2048;

struct Lowering {
  const char* op;
  std::uint32_t problem_bytes;  // at most kMaxProblemBytes
  // Null where this device's kernels take the call, else why they do not.
  const char* (*refuses)(const Call& call);
  // Writes a problem with all but addresses, and the addresses into it: inputs, then results.
  void (*set_up)(const Call& call, void* problem);
  void (*bind)(void* problem, void* const* at);
  // Where the size of a problem follows from the call: any number of bytes. Null: problem_bytes.
  std::uint32_t (*bytes)(const Call& call) = nullptr;
  std::uint32_t contiguous = 0;   // inputs that kernels read row-major without gaps
  const char* kernels = nullptr;  // the op whose kernels solve the problem, where another one's do
  // Inputs that are copied so that kernels can read them: a choice by the call. Null: none.
  std::uint32_t (*copies)(const Call& call) = nullptr;
  // Null: choose_kernel, and the kernel's run.
  const Kernel& (*choose)(const void* problem) = nullptr;
  void (*run)(const Kernel& kernel, const void* problem) = nullptr;
  std::string (*describe)(const void* problem) = nullptr;
  // Pointwise ops: n row-major elements of float32 or float64, for calls too small for a problem.
  void (*plain)(DType type, std::int64_t n, void* y, const void* const* inputs) = nullptr;
  KernelSet set = KernelSet::cpu;
  // What runs depends on the program's state at that time, a generator's: launches that are
  // recorded leave it out.
  bool reads_host = false;
  // Of ops with kWidensAll: kernels take 16 bits, but a call that is recorded is widened all the
  // same, so that gradients are made of results that are not rounded.
  bool widens_recorded = false;
};

}  // namespace tw
