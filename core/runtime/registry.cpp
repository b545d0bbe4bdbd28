// The list of kernels per op and the choice among them. Entries live for the whole process, so
// that a caller may keep a pointer to one.
#include "core/runtime/registry.h"

#include <atomic>
#include <cctype>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>

#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/fork.h"

namespace tw {

namespace {

constexpr Kernel kUndecided{};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr char kBodyName[] = "body", kBodyHelp[] = "the op in terms of other ops";
// Of what stands for a body, which solves no problem: where only a kernel can run, as in calls that
// write to a tensor that was there.
bool refuses(const void*, std::string* reason) {
  if (reason) *reason = "this call runs as one kernel or not at all";
  return false;
}

struct Registry {
  std::mutex mutex;
  std::vector<std::unique_ptr<OpKernels>> ops;  // in order of registration
};

// Never destroyed: plug-ins and other static objects may register and choose at any time.
Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}
const AtFork guarded(
    ForkOrder::kernel_registry, [] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); });

OpKernels* find_existing(std::string_view op, KernelSet set = KernelSet::cpu) {
  for (const auto& entry : registry().ops)
    if (entry->set == set && entry->op == op) return entry.get();
  return nullptr;
}

OpKernels* find_or_add(std::string_view op, KernelSet set) {
  if (OpKernels* entry = find_existing(op, set)) return entry;
  auto& added = registry().ops.emplace_back(std::make_unique<OpKernels>(op, set));
  added->forced.store(&kUndecided, std::memory_order_relaxed);
  return added.get();
}

// Where no kernel could run, a body is no choice.
const Kernel* body_of(const OpKernels& entry) { return entry.lowering ? entry.body : nullptr; }

// What can be forced.
std::vector<const Kernel*> choices_of(const OpKernels& entry) {
  std::vector<const Kernel*> choices = entry.kernels;
  if (const Kernel* body = body_of(entry)) choices.push_back(body);
  return choices;
}

std::string names_of(const OpKernels& entry) {
  std::string names;
  for (const Kernel* kernel : choices_of(entry))
    names += (names.empty() ? "" : ", ") + std::string(kernel->name);
  return names;
}

const Kernel* find_kernel(const OpKernels& entry, const std::string& name) {
  for (const Kernel* kernel : choices_of(entry))
    if (name == kernel->name) return kernel;
  return nullptr;
}

// Of each device that has a kernel of this name.
Forced find_kernels(const std::string& op, const std::string& name, const char* who) {
  Forced found;
  std::string names;
  for (int set = 0; set < kKernelSets; ++set) {
    const OpKernels* entry = find_existing(op, static_cast<KernelSet>(set));
    if (!entry) continue;
    if (const Kernel* kernel = find_kernel(*entry, name)) found.emplace_back(entry, kernel);
    if (choices_of(*entry).empty()) continue;
    if (set) names.append(names.empty() ? "" : "; ").append(kKernelSetNames[set]).append(": ");
    names += names_of(*entry);
  }
  if (found.empty())
    fail(ErrorKind::value, who, ": ", op, " has no kernel '", name, "'; choose from ", names);
  return found;
}

// The variable of an op is its name in capitals, where env.cpp lists it.
const Kernel* forced_by_environment(const OpKernels& entry) {
  std::string variable;
  for (char c : entry.op)
    variable += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const EnvVariable& listed : env_variables()) {
    if (variable != listed.name) continue;
    const std::string name = env_text(listed.name);
    if (name.empty()) return nullptr;
    find_kernels(entry.op, name, ("TILEWRIGHT_" + variable).c_str());
    return find_kernel(entry, name);
  }
  return nullptr;
}

// An unknown name in the environment raises at each use until it is mended or overruled.
[[gnu::noinline, gnu::cold]] const Kernel* decide(const OpKernels& entry) {
  const Kernel* kernel = forced_by_environment(entry);
  const Kernel* before = &kUndecided;
  return entry.forced.compare_exchange_strong(before, kernel) ? kernel : before;
}

bool accepts(const Kernel& kernel, const void* problem, std::string* reason) {
  return !kernel.accepts || kernel.accepts(problem, reason);
}
// Whether a kernel is for its whole op: no reason to refuse, and exact.
bool always_accepts(const Kernel& kernel) {
  return !kernel.accepts && kernel.precision <= Precision::fp32;
}

const Kernel* forced_of(const OpKernels& entry) {
  if (modes.choice)
    if (const Kernel* own = modes.choice->forced_for(&entry)) return own;
  const Kernel* forced = entry.forced.load(std::memory_order_relaxed);
  return forced == &kUndecided ? decide(entry) : forced;
}

double cost_of(const Kernel& kernel, const void* problem) {
  return kernel.cost_ns ? kernel.cost_ns(problem) : kInfinity;
}

std::atomic<MatmulPrecision> limit{MatmulPrecision::highest};

// The settings allow one class less exact each: highest fp32, high high, medium medium.
bool within_limit(const Kernel& kernel, const void* problem) {
  static_assert(static_cast<int>(Precision::fp32) ==
                static_cast<int>(MatmulPrecision::highest) + 1);
  return static_cast<int>(kernel.precision) <= static_cast<int>(precision_limit()) + 1 ||
         (kernel.keeps_all_bits && kernel.keeps_all_bits(problem));
}

bool breaks_invariance(const Kernel& kernel, const void* problem) {
  return is_batch_invariant() && kernel.depends_on_batch && kernel.depends_on_batch(problem);
}

// What the choice goes by.
double weight_of(const Kernel& kernel, const void* problem) {
  if (kernel.cost_of_one_ns && is_batch_invariant()) return kernel.cost_of_one_ns(problem);
  return cost_of(kernel, problem);
}

// Those that the free choice weighs.
std::ptrdiff_t count_weighed(const OpKernels& entry) {
  return std::count_if(entry.kernels.begin(), entry.kernels.end(),
                       [](const Kernel* kernel) { return !kernel->is_forced_only; });
}

// Null when none accepts. Costs are asked for only where there is a choice; the first of equals
// wins.
const Kernel* cheapest(const OpKernels& entry, const void* problem) {
  const Kernel* best = nullptr;
  double best_cost = -1;  // not asked for yet
  for (const Kernel* kernel : entry.kernels) {
    if (kernel->is_forced_only || !within_limit(*kernel, problem) ||
        breaks_invariance(*kernel, problem) || !accepts(*kernel, problem, nullptr))
      continue;
    if (!best) {
      best = kernel;
      continue;
    }
    if (best_cost < 0) best_cost = weight_of(*best, problem);
    const double cost = weight_of(*kernel, problem);
    if (cost < best_cost) {
      best = kernel;
      best_cost = cost;
    }
  }
  return best;
}

[[noreturn, gnu::noinline, gnu::cold]] void fail_forced(const Kernel& kernel, const void* problem) {
  std::string reason;
  accepts(kernel, problem, &reason);
  fail(ErrorKind::value, kernel.op, ": the forced kernel '", kernel.name,
       "' does not accept this problem: ", reason);
}

[[noreturn, gnu::noinline, gnu::cold]] void fail_all(const OpKernels& entry, const void* problem) {
  if (entry.kernels.empty())
    fail(ErrorKind::not_implemented, entry.op, ": no kernel is registered");
  std::string reasons;
  for (const Kernel* kernel : entry.kernels) {
    std::string reason;
    accepts(*kernel, problem, &reason);
    reasons += (reasons.empty() ? "" : "; ") + std::string(kernel->name) + ": " + reason;
  }
  fail(ErrorKind::not_implemented, entry.op, ": no kernel accepts this problem (", reasons, ")");
}

}  // namespace

void set_precision_limit(MatmulPrecision new_limit) {
  limit.store(new_limit, std::memory_order_relaxed);
  forget_choices();
}
MatmulPrecision precision_limit() { return limit.load(std::memory_order_relaxed); }

void register_kernel(const Kernel* kernel, bool first) {
  std::lock_guard lock(registry().mutex);
  const auto set = std::strcmp(kernel->device, "cuda") ? KernelSet::cpu : KernelSet::cuda;
  OpKernels& entry = *find_or_add(kernel->op, set);
  for (const Kernel* other : entry.kernels)
    if (!std::strcmp(other->name, kernel->name))
      fail(ErrorKind::value, "register_kernel: ", kernel->op, " has a kernel '", kernel->name,
           "' already");
  entry.kernels.insert(first ? entry.kernels.begin() : entry.kernels.end(), kernel);
  entry.only = nullptr;
  if (count_weighed(entry) == 1)
    for (const Kernel* each : entry.kernels)
      if (!each->is_forced_only && always_accepts(*each)) entry.only = each;
  forget_choices();
}

void register_lowering(const Lowering* lowering) {
  std::lock_guard lock(registry().mutex);
  OpKernels& entry = *find_or_add(lowering->op, lowering->set);
  entry.lowering = lowering;
  if (lowering->kernels) entry.solver = find_or_add(lowering->kernels, lowering->set);
}

Lowering& add_one_kernel(KernelSet set, const char* op, const char* help, const OneKernel& one,
                         std::uint32_t problem_bytes) {
  const bool on_cpu = set == KernelSet::cpu;
  register_kernel(new Kernel{.op = op,
                             .name = one.name ? one.name
                                     : on_cpu ? "vector"
                                              : "blocks",
                             .device = kKernelSetNames[static_cast<int>(set)],
                             .help = help,
                             .cost_ns = one.cost_ns,
                             .run = one.run});
  auto* const lowering = new Lowering{.op = op,
                                      .problem_bytes = problem_bytes,
                                      .refuses = one.refuses,
                                      .set_up = one.set_up,
                                      .bind = one.bind,
                                      .contiguous = one.contiguous,
                                      .set = set};
  register_lowering(lowering);
  return *lowering;
}

void add_definition(const char* op, void (*run)(const void* problem)) {
  register_kernel(new Kernel{.op = op,
                             .name = "naive",
                             .device = kKernelSetNames[static_cast<int>(KernelSet::cpu)],
                             .help = "the definition in plain loops, one element after the other",
                             .run = run,
                             .is_forced_only = true},
                  true);
}

void register_body(const char* op) {
  std::lock_guard lock(registry().mutex);
  for (int i = 0; i < kKernelSets; ++i) {
    find_or_add(op, static_cast<KernelSet>(i))->body = new Kernel{.op = op,
                                                                  .name = kBodyName,
                                                                  .device = "any",
                                                                  .precision = Precision::ieee,
                                                                  .help = kBodyHelp,
                                                                  .accepts = refuses,
                                                                  .run = nullptr};
  }
}

const Kernel* body_of_op(std::string_view op) {
  std::lock_guard lock(registry().mutex);
  const OpKernels* entry = find_existing(op);
  return entry ? body_of(*entry) : nullptr;
}

const std::vector<const Kernel*>& kernels_of_op(std::string_view op, KernelSet set) {
  static const auto* const kNone = new std::vector<const Kernel*>;
  std::lock_guard lock(registry().mutex);
  const OpKernels* entry = find_existing(op, set);
  return entry ? entry->kernels : *kNone;
}

std::vector<std::string> ops_with_kernels() {
  std::lock_guard lock(registry().mutex);
  std::vector<std::string> names;
  for (const auto& entry : registry().ops)
    if (entry->set == KernelSet::cpu && !choices_of(*entry).empty()) names.push_back(entry->op);
  return names;
}

Forced find_forced(const std::string& op, const std::string& name) {
  std::lock_guard lock(registry().mutex);
  const OpKernels* entry = find_existing(op);
  if (!entry || choices_of(*entry).empty())
    fail(ErrorKind::value, "force_kernel: no op '", op, "' with kernels");
  if (!name.empty()) return find_kernels(op, name, "force_kernel");
  Forced lifted = {{entry, nullptr}};
  if (const OpKernels* cuda = find_existing(op, KernelSet::cuda))
    lifted.emplace_back(cuda, nullptr);
  return lifted;
}

void force_kernel(const std::string& op, const std::string& name) {
  Choice choice = current_choice();
  for (const auto& [entry, kernel] : find_forced(op, name)) {
    if (!kernel) entry->forced.store(&kUndecided, std::memory_order_relaxed);
    choice.force(entry, kernel);
  }
  set_choice(choice);
}

std::string forced_kernel(const std::string& op) {
  std::lock_guard lock(registry().mutex);
  const OpKernels* entry = find_existing(op);
  const Kernel* forced = entry ? forced_of(*entry) : nullptr;
  return forced ? forced->name : "";
}

const OpKernels* find_op(std::string_view op, KernelSet set) {
  std::lock_guard lock(registry().mutex);
  return find_or_add(op, set);
}

void forget_choices() { choice_epoch.fetch_add(1, std::memory_order_release); }

const Kernel* choose_forced(const OpKernels* op, const void* problem) {
  const Kernel* forced = forced_of(*op);
  if (forced && !accepts(*forced, problem, nullptr)) [[unlikely]]
    fail_forced(*forced, problem);
  return forced;
}

const Kernel& choose_among(const OpKernels* op, const void* problem) {
  const Kernel* forced = choose_forced(op, problem);
  return forced ? *forced : choose_freely(op, problem);
}

const Kernel& choose_freely(const OpKernels* op, const void* problem) {
  if (const Kernel* best = cheapest(*op, problem)) [[likely]]
    return *best;
  fail_all(*op, problem);
}

const Kernel& choose_inside(const OpKernels* op, const void* problem) {
  const Kernel* forced = forced_of(*op);
  const bool takes = forced && forced != op->body && accepts(*forced, problem, nullptr);
  const Kernel& kernel = takes ? *forced : choose_freely(op, problem);
  if (!modes.plain) [[unlikely]]
    note_use(kernel);
  return kernel;
}

bool is_forced(const OpKernels* op) { return forced_of(*op); }

bool has_choice(const OpKernels* op) { return count_weighed(*op) > 1 || is_forced(op); }

bool forces_body(const OpKernels* op) { return forced_of(*op) == op->body; }

bool forced_kernel_accepts(const OpKernels* op, const void* problem) {
  const Kernel* forced = forced_of(*op);
  return !forced || accepts(*forced, problem, nullptr);
}

// What batch invariance adds to the estimate of the kernel that is chosen under it.
static double price_of_invariance(const OpKernels& entry, double chosen_ns, const void* problem) {
  const Choice* const before = modes.choice;
  Choice free = current_choice();
  free.batch_invariant = false;
  modes.choice = interned(free);
  const Kernel* best = cheapest(entry, problem);
  const double best_ns = best ? cost_of(*best, problem) : chosen_ns;
  modes.choice = before;
  return chosen_ns - best_ns;
}

std::vector<Candidate> candidates(const OpKernels* op, const void* problem) {
  const Kernel* forced = forced_of(*op);
  const Kernel* chosen = forced ? forced : cheapest(*op, problem);
  const double chosen_ns = chosen ? cost_of(*chosen, problem) : kInfinity;
  std::vector<Candidate> list;
  for (const Kernel* kernel : op->kernels) {
    Candidate& candidate = list.emplace_back(Candidate{kernel, false, "", kInfinity, false});
    candidate.accepted = accepts(*kernel, problem, &candidate.reason);
    if (!candidate.accepted) continue;
    candidate.cost_ns = cost_of(*kernel, problem);
    if (kernel->cost_terms) candidate.terms = kernel->cost_terms(problem);
    candidate.chosen = kernel == chosen;
    candidate.reason.clear();
    if (!forced && is_batch_invariant() && kernel->cost_of_one_ns && candidate.cost_ns < chosen_ns)
      candidate.reason = "costs more for one sample: batch invariance is on";
    if (!forced && kernel->is_forced_only) candidate.reason = "runs where it is forced";
    if (!forced && !within_limit(*kernel, problem))
      candidate.reason = std::string("less exact than the precision setting '") +
                         kMatmulPrecisionNames[static_cast<int>(precision_limit())] + "' allows";
    if (!forced && breaks_invariance(*kernel, problem))
      candidate.reason = "its bits depend on the number of rows: batch invariance is on";
    if (!forced && candidate.chosen && is_batch_invariant())
      if (const double ns = price_of_invariance(*op, candidate.cost_ns, problem); ns > 0)
        candidate.terms.emplace_back(CostTerm{"for batch invariance", ns});
    if (forced && kernel != forced)
      candidate.reason.append("'").append(forced->name).append("' is forced");
  }
  return list;
}

}  // namespace tw
