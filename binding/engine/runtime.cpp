// Threads, instruction sets, devices and the kernel registry.
#include "binding/tensor/casters.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"
#include "core/base/cpu_info.h"
#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/float_environment.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/matmul/tuning.h"
#include "core/runtime/launch.h"
#include "core/runtime/device.h"
#include "core/runtime/mode_changes.h"
#include "core/runtime/thread_pool.h"
#include "core/runtime/warning.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (int i = 0; i < kIsas; ++i)
    if (kernels_of(static_cast<Isa>(i))) names.push_back(name_of(static_cast<Isa>(i)));
  return names;
}

Isa read_isa(const std::string& name) {
  for (int i = 0; i < kIsas; ++i)
    if (name == name_of(static_cast<Isa>(i))) return static_cast<Isa>(i);
  std::string known;
  for (const std::string& isa : available_isas()) known += (known.empty() ? "" : ", ") + isa;
  fail(ErrorKind::value, "no instruction set '", name, "'; this machine has: ", known);
}

nb::dict cpu_dictionary() {
  const CpuInfo& info = cpu_info();
  nb::dict out;
  out["features"] = nb::cast(info.features);
  out["l1d_bytes"] = info.l1d_bytes;
  out["l2_bytes"] = info.l2_bytes;
  out["l3_bytes"] = info.l3_bytes;
  out["vector_path_bits"] = info.vector_path_bits;
  out["logical_processors"] = info.logical_processors;
  out["usable_processors"] = info.usable_processors;
  out["isas"] = nb::cast(available_isas());
  out["active_isa"] = name_of(active_isa());
  return out;
}

nb::dict describe_kernel(const Kernel& kernel) {
  nb::dict out;
  out["op"] = kernel.op;
  out["name"] = kernel.name;
  out["device"] = kernel.device;
  out["precision"] = kPrecisionNames[static_cast<int>(kernel.precision)];
  out["help"] = kernel.help;
  out["error"] = or_none(kernel.error);
  return out;
}

nb::list list_tunables() {
  nb::list out;
  for (const TunableRow& row : matmul_tunables()) {
    const auto number = [&row](double value) {
      return row.whole ? nb::object(nb::int_(std::int64_t(value))) : nb::object(nb::float_(value));
    };
    nb::dict entry;
    entry["name"] = row.name;
    entry["help"] = row.help;
    entry["value"] = number(row.value);
    entry["default"] = number(row.fallback);
    entry["least"] = number(row.least);
    entry["most"] = number(row.most);
    out.append(entry);
  }
  return out;
}

// The modes of the thread that made it, for others to run under. Entered and left by Python code:
// a daemon thread that ends at the interpreter's exit must not unwind through a call from here.
class CarriedModes {
 public:
  CarriedModes() : modes_(inherited_modes()) {}
  void enter() const { entered().push_back(std::make_unique<ModesGuard>(modes_.get())); }
  static void leave() {
    if (entered().empty()) fail(ErrorKind::runtime, "no modes to leave on this thread");
    entered().pop_back();
  }

 private:
  static std::vector<std::unique_ptr<ModesGuard>>& entered() {
    static thread_local std::vector<std::unique_ptr<ModesGuard>> stack;
    return stack;
  }
  std::shared_ptr<const InheritedModes> modes_;
};

// A block's owner is named by its address, as Python's id() gives it.
const void* owner_of(nb::handle block) { return block.ptr(); }

void enter_kernels(nb::handle block, std::optional<std::string> isa, nb::dict forced) {
  ModeChanges changes;
  if (isa) changes.isa = find_isa(read_isa(*isa));
  for (const auto& [op, name] : forced)
    for (const auto& kernel : find_forced(nb::cast<std::string>(op), nb::cast<std::string>(name)))
      changes.forced.push_back(kernel);
  enter_modes(owner_of(block), changes);
}

void leave(nb::handle block) {
  if (!leave_modes(owner_of(block)))
    fail(ErrorKind::runtime,
         "a block of modes ended on a thread that did not enter it; modes belong to a thread: "
         "enter and leave no_grad(), autocast() and kernels.use() on the same one");
}

MatmulPrecision read_precision(const std::string& name) {
  for (int i = 0; i < 3; ++i)
    if (name == kMatmulPrecisionNames[i]) return static_cast<MatmulPrecision>(i);
  fail(ErrorKind::value, "precision must be 'highest', 'high' or 'medium', got '", name, "'");
}

PyObject* slow_path_warning;

void warn(const std::string& text) {
  if (PyErr_WarnEx(slow_path_warning, text.c_str(), 1) < 0) throw nb::python_error();
}

}  // namespace

void bind_runtime(nb::module_& m) {
  slow_path_warning = PyErr_NewExceptionWithDoc(
      "tilewright.SlowPathWarning", "An op runs on a slow kernel for want of a better one.",
      PyExc_RuntimeWarning, nullptr);
  m.attr("SlowPathWarning") = nb::borrow(slow_path_warning);
  set_warning_sink(warn);
  m.def("get_num_threads", num_threads, "Threads that parallel kernels use, the caller included.");
  m.def("set_num_threads", set_num_threads, "count"_a,
        "Sets the number of threads (1 to 1024), for the whole process.\nRaises ValueError for "
        "another number.");
  m.def("get_thread_pinning", thread_pinning, "Whether workers are bound to a processor each.");
  m.def("set_thread_pinning", set_thread_pinning, "on"_a,
        "Binds each worker to one processor, the first left to the caller, from the next parallel "
        "work on.\n\nSteadier times on a machine of one's own; beside other programs roaming is "
        "better.");
  m.def("cpu_info", cpu_dictionary, "What the processor can do and what of it is in use.");
  m.def(
      "set_isa", [](const std::string& name) { set_isa(read_isa(name)); }, "name"_a,
      "Uses the kernels of one instruction set on this thread.\nRaises ValueError for one that "
      "this machine does not have.");
  m.def(
      "active_isa", [] { return name_of(active_isa()); },
      "Instruction set of the kernels that this thread uses.");
  m.def("_is_device_name", is_device_name, "name"_a,
        "Whether a name is that of a device, such as 'cuda:1', there or not.");
  m.def("device_names", device_names, "Devices that tensors can live on: 'null' computes nothing.");
  m.def(
      "active_device", [] { return active_device().name; },
      "Device on which this thread makes tensors.");
  m.def("set_device", set_device, "name"_a,
        "Where this thread makes tensors; an op runs where its operands are. Other threads keep "
        "theirs; a new thread starts with 'cpu', a task of a scheduler with its "
        "submitter's.\nRaises ValueError for a device that is not there.");
  m.def(
      "set_float32_matmul_precision",
      [](const std::string& name) { set_precision_limit(read_precision(name)); }, "precision"_a,
      "The least exact kernels that float32 matmul chooses freely: 'highest' (as exact as IEEE "
      "float32, the default), 'high' (about 16 bits, 'bf16x3') or 'medium' (8 bits, 'bf16'). "
      "One setting for all threads, as in PyTorch. Raises ValueError for other names.");
  m.def(
      "get_float32_matmul_precision",
      [] { return kMatmulPrecisionNames[static_cast<int>(precision_limit())]; },
      "What float32 matmul may use.");
  m.def("kernel_ops", ops_with_kernels,
        "Ops whose kernels, or body in their place, can be forced.");
  m.def(
      "kernels_of_op",
      [](const std::string& op) {
        nb::list out;
        for (const KernelSet set : {KernelSet::cpu, KernelSet::cuda})
          for (const Kernel* kernel : kernels_of_op(op, set)) out.append(describe_kernel(*kernel));
        if (const Kernel* body = body_of_op(op)) out.append(describe_kernel(*body));
        return out;
      },
      "op"_a, "Kernels of an op in ladder order, then its body.");
  m.def(
      "_in_float_environment",
      [](nb::callable function) {
        const FloatEnvironment environment;
        return nb::object(function());
      },
      "function"_a, "function(), computed with the engine's rounding mode and subnormal numbers.");
  m.def("force_kernel", force_kernel, "op"_a, "name"_a,
        "Forces a kernel by name on this thread; '' lifts it.\nRaises ValueError for an op or a "
        "kernel that is not there.");
  m.def("forced_kernel", forced_kernel, "op"_a, "Name of the kernel forced on this thread, or ''.");
  m.def("matmul_tunables", list_tunables,
        "Numbers of the matmul ladder that depend on the machine: in force, default, limits.");
  m.def("set_matmul_tuning", set_matmul_tuning, "name"_a, "value"_a,
        "Sets one of these numbers; raises ValueError for what its limits do not allow.");
  nb::class_<CarriedModes>(m, "_Modes", "This thread's modes, for other threads to run under.")
      .def(nb::init<>())
      .def("enter", &CarriedModes::enter, "The calling thread runs under them until leave().")
      .def(
          "leave", [](const CarriedModes&) { CarriedModes::leave(); },
          "Ends the calling thread's last enter(), and what changed since.");
  m.def(
      "_enter_grad_mode",
      [](nb::handle block, bool enabled) { enter_modes(owner_of(block), {.grad = enabled}); },
      "block"_a, "enabled"_a);
  m.def("_set_grad_enabled", [](bool enabled) { modes.grad = enabled; }, "enabled"_a);
  m.def(
      "_enter_anomaly_mode",
      [](nb::handle block, bool enabled) { enter_modes(owner_of(block), {.anomaly = enabled}); },
      "block"_a, "enabled"_a);
  m.def(
      "_set_anomaly_mode",
      [](bool enabled) {
        modes.anomaly = enabled;
        modes.update_plain();
      },
      "enabled"_a);
  m.def(
      "is_anomaly_enabled", [] { return modes.anomaly; },
      "Whether this thread looks for NaN in gradients.");
  m.def(
      "_enter_autocast",
      [](nb::handle block, std::optional<DType> dtype) {
        enter_modes(owner_of(block),
                    {.autocast = dtype ? static_cast<std::uint8_t>(*dtype) + 1 : 0});
      },
      "block"_a, "dtype"_a.none());
  m.def(
      "_enter_batch_invariance",
      [](nb::handle block, bool on) { enter_modes(owner_of(block), {.batch_invariant = on}); },
      "block"_a, "on"_a);
  m.def(
      "_set_batch_invariant",
      [](bool on) {
        Choice choice = current_choice();
        choice.batch_invariant = on;
        set_choice(choice);
      },
      "on"_a);
  m.def("is_batch_invariant", is_batch_invariant,
        "Whether this thread's kernels give a row the same bits whatever the rows beside it.");
  m.def(
      "is_autocast_enabled", [](const std::optional<std::string>&) { return modes.autocast != 0; },
      "device_type"_a.none() = nb::none(),
      "Whether products of this thread run in a narrower type, on any device.");
  m.def(
      "get_autocast_dtype",
      [](const std::optional<std::string>&) {
        return modes.autocast ? static_cast<DType>(modes.autocast - 1) : DType::bfloat16;
      },
      "device_type"_a.none() = nb::none(),
      "The type that products run in within `autocast`; where it is off, its default.");
  m.def("_enter_kernels", enter_kernels, "block"_a, "isa"_a.none(), "forced"_a);
  m.def("_leave_modes", leave, "block"_a);
  m.def(
      "env_text", [](const std::string& name) { return env_text(name.c_str()); }, "name"_a,
      "Value of TILEWRIGHT_<name>, or '' where unset.");
  m.def(
      "env_variables", []()->Annotated<"dict[str, str]"> {
        nb::dict out;
        for (const EnvVariable& variable : env_variables())
          out[(std::string("TILEWRIGHT_") + variable.name).c_str()] = variable.help;
        return out;
      },
      "Environment variables that the engine reads, with their meaning.");
}

}  // namespace tw::binding
