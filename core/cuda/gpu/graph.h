// Launches of a thread as a CUDA graph: recorded instead of run, then run again and again as one
// launch, which costs the host what a single kernel does.
#pragma once
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/cuda/driver/driver.h"
#include "core/memory/block.h"
#include "core/runtime/device.h"

namespace tw::cuda {

class Gpu;

// Memory that kernels ask for between their launches while these are recorded. Addresses are in the
// graph, so it is given back when the graph is gone.
class GraphMemory {
 public:
  explicit GraphMemory(Gpu& gpu) : gpu_(gpu) {}
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;
  void* allocate(std::size_t bytes);
  void release(void* memory, std::size_t bytes) { free_[bytes].push_back(memory); }
  // Before a launch of the graph.
  void use();

 private:
  Gpu& gpu_;
  std::vector<Block*> all_;
  std::unordered_map<std::size_t, std::vector<void*>> free_;  // for later launches of the graph
};

// What this thread records; its launches go there.
struct Recording {
  Stream stream = nullptr;
  GraphMemory* memory = nullptr;
  std::size_t launches = 0;
};
extern thread_local Recording* recording;

// What `run` launches on the GPU, without running it. Raises what it raises.
std::unique_ptr<LaunchGraph> record_graph(Gpu& gpu, const std::function<void()>& run);

}  // namespace tw::cuda
