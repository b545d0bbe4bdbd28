// Functions that a tensor or a node calls with a value or gradient.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace tw {

class Tensor;

// Called with a value or gradient; a non-empty result replaces it.
using Hook = std::function<Tensor(const Tensor&)>;
struct HookEntry {
  std::uint64_t id;
  Hook call;
};

// How many functions of the frontend tensors and nodes hold: hooks, checkpointed functions and
// gradients of custom functions. Only while there are any, a tensor can be part of a cycle that a
// frontend's collector must see.
inline std::size_t held_functions = 0;

// Hooks in the order of registration. An id stays valid when the tensor has ended: it then stands
// for nothing.
class HookList {
 public:
  HookList() = default;
  HookList(const HookList&) = delete;
  ~HookList();
  std::uint64_t add(Hook hook);
  bool empty() const { return entries_.empty(); }
  const std::vector<HookEntry>& entries() const { return entries_; }
  // From whatever list holds it; without effect where none does any more.
  static void remove(std::uint64_t id);

 private:
  std::vector<HookEntry> entries_;
};

}  // namespace tw
