// GPUs in users' hands: what they are, what they hold, waiting for them.
#include "binding/tensor/casters.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"
#include "core/cuda/driver/compiler.h"
#include "core/cuda/driver/driver.h"
#include "core/cuda/gpu/gpu.h"
#include "core/cuda/driver/nvtx.h"

namespace tw::binding {

using namespace nb::literals;
using cuda::Gpu;

namespace {

nb::dict facts_of(int number) {
  const cuda::GpuFacts& facts = Gpu::at(number).facts;
  nb::dict out;
  out["name"] = facts.name;
  out["capability"] = nb::make_tuple(facts.capability / 10, facts.capability % 10);
  out["multiprocessors"] = facts.multiprocessors;
  out["memory_bytes"] = facts.memory_bytes;
  out["shared_bytes_per_block"] = facts.shared_bytes;
  return out;
}

nb::dict memory_of(int number) {
  const cuda::GpuMemory memory = Gpu::at(number).blocks.memory();
  nb::dict out;
  out["live_bytes"] = memory.live;
  out["peak_live_bytes"] = memory.peak;
  out["reserved_bytes"] = memory.reserved;
  out["peak_reserved_bytes"] = memory.peak_reserved;
  out["waiting_bytes"] = memory.waiting;
  out["limit_bytes"] = memory.limit ? nb::object(nb::int_(memory.limit)) : nb::none();
  out["allocations"] = memory.allocations;
  out["releases"] = memory.releases;
  out["driver_allocations"] = memory.driver_calls;
  return out;
}

nb::list sources_of(int number) {
  nb::list out;
  for (const Gpu::Source& source : Gpu::at(number).sources())
    out.append(nb::make_tuple(source.file, source.kernel, source.settings));
  return out;
}

nb::tuple compile(const std::string& file, const std::string& settings, int capability) {
  const cuda::Compiled made = cuda::compile(file, settings, capability, true);
  return nb::make_tuple(nb::bytes(made.cubin.data(), made.cubin.size()), made.log);
}

}  // namespace

void bind_cuda(nb::module_& m) {
  m.def("_gpu_count", Gpu::count, "Number of GPUs; 0 without a driver.");
  m.def("_gpu_driver_fault", cuda::driver_fault, "Why the CUDA driver cannot be used, or ''.");
  m.def("_gpu_compiler_fault", cuda::compiler_fault, "Why NVRTC cannot be used, or ''.");
  m.def("_gpu_facts", facts_of, "number"_a, "Name, compute capability and sizes of a GPU.");
  m.def("_gpu_memory", memory_of, "number"_a, "Figures of a GPU's memory pool, in bytes.");
  m.def(
      "_gpu_synchronize", [](int number) { Gpu::at(number).synchronize(); }, "number"_a,
      "Returns when all work of a GPU is done; raises what went wrong in it.");
  m.def(
      "_gpu_trim", [](int number) { Gpu::at(number).blocks.trim(); }, "number"_a,
      "Gives unused memory of a GPU back to the driver.");
  m.def(
      "_gpu_set_limit",
      [](int number, std::size_t bytes) { Gpu::at(number).blocks.set_limit(bytes); }, "number"_a,
      "bytes"_a, "Bounds what the pool takes from the driver; 0: nothing does.");
  m.def(
      "_gpu_reset_peaks", [](int number) { Gpu::at(number).blocks.reset_peaks(); }, "number"_a,
      "Starts the peak figures of a GPU's memory anew.");
  m.def(
      "_gpu_free_memory",
      [](int number) {
        std::size_t free = 0, total = 0;
        Gpu::at(number).enter();
        cuda::check(cuda::driver().memory_info(&free, &total), "memory cannot be asked for");
        return nb::make_tuple(free, total);
      },
      "number"_a, "Free and total bytes of a GPU, whoever holds the rest.");
  m.def(
      "_gpu_launches", [](int number) { return Gpu::at(number).launches.total(); }, "number"_a,
      "How many kernels were launched on a GPU so far.");
  m.def("_gpu_sources", sources_of, "number"_a,
        "File, kernel and settings of every kernel that a GPU was asked for.");
  m.def("_gpu_compile", compile, "file"_a, "settings"_a, "capability"_a,
        "Compiles a file of kernels: the cubin, and the compiler's figures.");
  m.def("_nvtx_attached", cuda::nvtx::is_attached, "Whether a tool listens for ranges.");
  m.def(
      "_nvtx_push", [](const std::string& name) { return cuda::nvtx::push(name.c_str()); },
      "name"_a, "Opens a range of this thread; the tool's number of its level.");
  m.def("_nvtx_pop", cuda::nvtx::pop, "Ends the latest range of this thread.");
  m.def(
      "_nvtx_mark", [](const std::string& name) { cuda::nvtx::mark(name.c_str()); }, "name"_a,
      "Marks a moment.");
  m.def("_nvtx_set_emitting", cuda::nvtx::set_emitting, "emits"_a,
        "Whether each op of this thread opens a range; returns what was before.");
}

}  // namespace tw::binding
