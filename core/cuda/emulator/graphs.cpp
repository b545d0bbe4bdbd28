// Graphs of the stand-in driver: the work of a stream, recorded while it is captured. A launch adds
// all of it to a stream, to be done as late as any.
#include <vector>

#include "state.h"

using namespace emulated;

namespace {

struct Graph {
  std::vector<Work> work;
};

}  // namespace

extern "C" {

Result cuStreamBeginCapture_v2(void* stream, int) {
  const std::lock_guard lock(mutex);
  std::vector<Work>*& captured = captured_work(stream);
  if (captured) return kInvalid;
  return captured = new std::vector<Work>, kSuccess;
}
Result cuStreamEndCapture(void* stream, void** graph) {
  const std::lock_guard lock(mutex);
  std::vector<Work>*& captured = captured_work(stream);
  if (!captured) return kInvalid;
  *graph = new Graph{std::move(*captured)};
  delete captured;
  return captured = nullptr, kSuccess;
}
Result cuGraphInstantiateWithFlags(void** ready, void* graph, unsigned long long) {
  return *ready = new Graph(*static_cast<Graph*>(graph)), kSuccess;
}
Result cuGraphLaunch(void* ready, void* stream) {
  const std::lock_guard lock(mutex);
  for (const Work& work : static_cast<Graph*>(ready)->work) enqueue(stream, work);
  return kSuccess;
}
Result cuGraphDestroy(void* graph) { return delete static_cast<Graph*>(graph), kSuccess; }
Result cuGraphExecDestroy(void* ready) { return delete static_cast<Graph*>(ready), kSuccess; }

}  // extern "C"
