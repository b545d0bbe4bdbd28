// The kernel registry: the kernels of each op, and the choice among them. `apply`, `explain`,
// forcing, benchmarks and the tests that hold every kernel against the reference read this list.
#pragma once
#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/base/cpu_info.h"
#include "core/memory/events.h"
#include "core/runtime/choice.h"
#include "core/runtime/device.h"
#include "core/runtime/op.h"

namespace tw {

// ieee: the order of multiply-adds may differ, nothing else. fp32: another algorithm, error
// measured and no worse than ieee's. high: 16 bits or so of float32's 24. medium: 8.
enum class Precision : std::uint8_t { ieee, fp32, high, medium };
inline constexpr const char* kPrecisionNames[] = {"ieee", "fp32", "high", "medium"};

// A problem is the op's own struct (MatmulProblem, ReduceProblem, ...), behind a plain pointer.
struct Kernel {
  const char* op;
  const char* name;    // unique within the op and device; for a ladder: the rung
  const char* device;  // a name of kKernelSetNames
  Precision precision = Precision::ieee;
  const char* help;
  // Whether this kernel can solve the problem; where not and `reason` is given, why, in a few
  // words. Null: any.
  bool (*accepts)(const void* problem, std::string* reason) = nullptr;
  double (*cost_ns)(const void* problem) = nullptr;  // estimate, for the choice
  void (*run)(const void* problem) = nullptr;        // on the active instruction set
  // What the estimate is the sum of, for `explain`; null where it is a single figure.
  std::vector<CostTerm> (*cost_terms)(const void* problem) = nullptr;
  // Problems whose operands have no more bits than the kernel keeps: free to choose whatever the
  // limit. Null: none.
  bool (*keeps_all_bits)(const void* problem) = nullptr;
  bool takes_memory = true;  // may ask for scratch memory as it runs
  // Whether a row's bits depend on how many rows there are, or differ from what the op's other
  // kernels give where this is false: batch invariance leaves the kernel out. Null: they do not.
  bool (*depends_on_batch)(const void* problem) = nullptr;
  // The largest error of float32 results that was measured, as a share of the largest result, on
  // standard normal numbers. 0: not told.
  double error = 0;
  // Estimate for one sample, by which the choice goes under batch invariance. Null: cost_ns.
  double (*cost_of_one_ns)(const void* problem) = nullptr;
  // The free choice leaves it out: the op's definition in plain loops, and what has no estimate.
  bool is_forced_only = false;
};
// An op's one kernel on a device, and how calls go to it: what add_kernel makes a Kernel and a
// Lowering of.
struct OneKernel {
  const char* (*refuses)(const Call& call) = nullptr;
  void (*set_up)(const Call& call, void* problem) = nullptr;
  void (*bind)(void* problem, void* const* addresses) = nullptr;
  double (*cost_ns)(const void* problem) = nullptr;
  void (*run)(const void* problem) = nullptr;
  std::uint32_t contiguous = 0;  // inputs that are copied where they have gaps, a bit each
  const char* name = nullptr;    // null: what the device calls one
};
// A Problem's. Kernel and lowering live as long as the process.
Lowering& add_one_kernel(KernelSet set, const char* op, const char* help, const OneKernel& one,
                         std::uint32_t problem_bytes);
// The definition of an op that has a kernel, for the same problems: the first rung of its ladder.
void add_definition(const char* op, void (*run)(const void* problem));
template <class Problem>
Lowering& add_one_kernel(KernelSet set, const char* op, const char* help, const OneKernel& one) {
  static_assert(sizeof(Problem) <= kMaxProblemBytes);
  static_assert(std::is_trivially_copyable_v<Problem>);
  return add_one_kernel(set, op, help, one, sizeof(Problem));
}

// The least exact kernels that the free choice may use for float32: fp32, high or medium. One
// setting for the process.
enum class MatmulPrecision : std::uint8_t { highest, high, medium };
inline constexpr const char* kMatmulPrecisionNames[] = {"highest", "high", "medium"};
void set_precision_limit(MatmulPrecision limit);
MatmulPrecision precision_limit();

// Kernels of an op in ladder order (order of registration).
const std::vector<const Kernel*>& kernels_of_op(std::string_view op,
                                                KernelSet set = KernelSet::cpu);
// Those with a kernel, or a body in its place, that can be forced.
std::vector<std::string> ops_with_kernels();
// `first`: before those that are there.
void register_kernel(const Kernel* kernel, bool first = false);
// How calls of an op become problems for its kernels.
void register_lowering(const Lowering* lowering);
// The op has a body, which can be forced like a kernel and runs where one would.
void register_body(const char* op);

// Forces kernel `name` for `op` on this thread, on each device that has one of that name; "" lifts
// it, so that the environment's holds, which is read anew. Raises ValueError that lists the names
// when unknown.
void force_kernel(const std::string& op, const std::string& name);
// The op and its kernel of this name, by device; null kernels for "". Raises as force_kernel does.
using Forced = std::vector<std::pair<const OpKernels*, const Kernel*>>;
Forced find_forced(const std::string& op, const std::string& name);
// By this thread or the environment; empty where none is. Raises ValueError for an unknown name in
// the environment.
std::string forced_kernel(const std::string& op);

// What the registry knows of one op.
struct OpKernels {
  OpKernels(std::string_view op, KernelSet set) : op(op), set(set) {}
  const std::string op;
  const KernelSet set;
  std::vector<const Kernel*> kernels;  // grows while modules load, before other threads choose
  const Lowering* lowering = nullptr;
  const OpKernels* solver = this;  // whose kernels the lowering's problems are for
  const Kernel* only = nullptr;    // where it has one kernel
  const Kernel* body = nullptr;    // stands for the op's body: solves no problem
  // By the environment: null for a free choice, or undecided until it was read.
  mutable std::atomic<const Kernel*> forced;
};
// What stands for the op's body; null where it has none, or no kernels that the body could replace.
const Kernel* body_of_op(std::string_view op);
// The entry of an op, empty where it has no kernels yet.
const OpKernels* find_op(std::string_view op, KernelSet set = KernelSet::cpu);
// The same of this thread's device, kept in the record.
inline const OpKernels& kernels_of(const OpRecord& op) {
  const KernelSet set = active_kernel_set();
  auto& place = op.kernels[static_cast<int>(set)];
  const OpKernels* known = place.load(std::memory_order_acquire);
  if (!known) [[unlikely]]
    place.store(known = find_op(op.name, set), std::memory_order_release);
  return *known;
}
// Forced, else the cheapest estimate among those that accept. A forced kernel that refuses raises
// ValueError with its reason.
const Kernel& choose_among(const OpKernels* op, const void* problem);
// Whether nothing is in force that a choice would depend on.
inline bool is_free(const OpKernels* op) {
  return !modes.choice && !op->forced.load(std::memory_order_relaxed);
}
inline const Kernel& choose_kernel(const OpKernels* op, const void* problem) {
  return is_free(op) && op->only ? *op->only : choose_among(op, problem);
}
// For a part of another op's problem, as a convolution's product: the kernel in force where it
// accepts, else the free choice.
const Kernel& choose_inside(const OpKernels* op, const void* problem);
// Whether several kernels are weighed, or one is forced.
bool has_choice(const OpKernels* op);
inline void run_kernel(const Lowering& lowering, const Kernel& kernel, const void* problem) {
  lowering.run ? lowering.run(kernel, problem) : kernel.run(problem);
}
// The kernel in force, having accepted the problem; null for a free choice.
const Kernel* choose_forced(const OpKernels* op, const void* problem);
// The cheapest estimate among those that accept, whatever is forced.
const Kernel& choose_freely(const OpKernels* op, const void* problem);
// To be called after a change that free choices of all threads depend on: of kernels, the precision
// limit, the numbers in cost estimates.
void forget_choices();
inline std::atomic<std::uint32_t> choice_epoch{1};

// The free choices for the last few problems of one thread, found again by `words` numbers that say
// all of a problem that a choice depends on. Small products take longer to choose than to compute.
template <int words> class ChoiceCache {
 public:
  using Key = std::array<std::int64_t, words>;
  const Kernel& choose(const OpKernels* op, const void* problem, const Key& key) {
    if (const Kernel* forced = choose_forced(op, problem)) return *forced;
    if (!uses(Optimization::choice_cache)) [[unlikely]]
      return choose_freely(op, problem);
    const std::uint32_t epoch = choice_epoch.load(std::memory_order_acquire);
    Entry& entry = entries_[place_of(key)];
    if (entry.epoch != epoch || entry.choice != modes.choice || entry.key != key)
      entry = {key, &choose_freely(op, problem), modes.choice, epoch};
    return *entry.kernel;
  }

 private:
  static constexpr int kPlaces = 32;
  struct Entry {
    Key key;
    const Kernel* kernel;
    const Choice* choice;  // the instruction set in force
    std::uint32_t epoch;   // 0: empty
  };
  static std::size_t place_of(const Key& key) {
    std::uint64_t mixed = 0;
    for (std::int64_t word : key) mixed = mixed * 31 + static_cast<std::uint64_t>(word);
    return mixed * 0x9e3779b97f4a7c15u >> 59;
  }
  Entry entries_[kPlaces] = {};
};

// Whether a kernel is in force.
bool is_forced(const OpKernels* op);
// Whether the op's body is to run where a kernel would.
bool forces_body(const OpKernels* op);
inline bool is_body_forced(const OpKernels* op) {
  return op->body && !is_free(op) && forces_body(op);
}
// False where a forced kernel refuses the problem.
bool forced_kernel_accepts(const OpKernels* op, const void* problem);

// What choose_kernel weighs, in ladder order; for `explain`, so it may be slow.
std::vector<Candidate> candidates(const OpKernels* op, const void* problem);

}  // namespace tw
