#include "core/cuda/gpu/graph.h"

#include "core/cuda/gpu/gpu.h"

namespace tw::cuda {

thread_local Recording* recording = nullptr;

namespace {

// A stream that records in the place of this thread's own, for a scope. It is relaxed: a kernel may
// be compiled and loaded meanwhile.
class RecordingScope {
 public:
  RecordingScope(Gpu& gpu, GraphMemory& memory) {
    gpu.enter();
    check(driver().create_stream(&made_.stream, kNonBlocking, 0), "no stream can be made");
    if (const Result result = driver().begin_capture(made_.stream, kRelaxedCapture)) {
      driver().destroy_stream(made_.stream);
      fail_driver(result, "launches cannot be recorded");
    }
    made_.memory = &memory;
    recording = &made_;
  }
  ~RecordingScope() {
    recording = nullptr;
    Graph graph = nullptr;
    if (!ended_ && driver().end_capture(made_.stream, &graph) == 0 && graph)
      driver().destroy_graph(graph);
    driver().destroy_stream(made_.stream);
  }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

  // Ends the recording; the caller owns the graph.
  Graph finish() {
    ended_ = true;
    Graph graph = nullptr;
    check(driver().end_capture(made_.stream, &graph), "launches cannot be recorded");
    return graph;
  }
  std::size_t launches() const { return made_.launches; }

 private:
  Recording made_;
  bool ended_ = false;
};

class RecordedGraph final : public LaunchGraph {
 public:
  RecordedGraph(Gpu& gpu, const std::function<void()>& run) : gpu_(gpu), memory_(gpu) {
    RecordingScope scope(gpu, memory_);
    run();
    const Graph graph = scope.finish();
    launches_ = scope.launches();
    const Result result = driver().make_graph(&ready_, graph, 0);
    driver().destroy_graph(graph);
    check(result, "recorded launches cannot be made one");
  }
  ~RecordedGraph() override {
    if (ready_) driver().destroy_graph_exec(ready_);
  }
  void launch() override {
    memory_.use();
    gpu_.launch(ready_);
  }
  std::size_t launches() const override { return launches_; }

 private:
  Gpu& gpu_;
  GraphMemory memory_;
  GraphExec ready_ = nullptr;
  std::size_t launches_ = 0;
};

}  // namespace

GraphMemory::~GraphMemory() {
  for (Block* block : all_) gpu_.blocks.release(block);
}

void* GraphMemory::allocate(std::size_t bytes) {
  std::vector<void*>& free = free_[bytes];
  if (!free.empty()) {
    void* const memory = free.back();
    free.pop_back();
    return memory;
  }
  all_.push_back(gpu_.blocks.allocate(bytes));
  return all_.back()->data;
}

void GraphMemory::use() {
  for (Block* block : all_) gpu_.blocks.use(*block);
}

std::unique_ptr<LaunchGraph> record_graph(Gpu& gpu, const std::function<void()>& run) {
  return std::make_unique<RecordedGraph>(gpu, run);
}

}  // namespace tw::cuda
