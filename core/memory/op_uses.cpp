#include "core/memory/op_uses.h"

#include <atomic>
#include <utility>
#include <vector>

namespace tw {

namespace {

std::uint64_t next_op() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

struct Op {
  std::uint64_t id = next_op();
  std::vector<OpUse> uses;
  ~Op() { end(); }
  void end() {
    if (uses.empty()) return;
    id = next_op();
    // A pool may end with its last use.
    for (OpUse& use : std::exchange(uses, {})) use.source->end_use(use.block, use.life);
  }
};
thread_local Op op;

}  // namespace

void note_use(OpUse use) { op.uses.push_back(std::move(use)); }
void end_op() { op.end(); }
NestedOps::NestedOps() : outer_(std::exchange(op.uses, {})) { op.id = next_op(); }
NestedOps::~NestedOps() {
  end_op();
  op.uses = std::move(outer_);
}
std::uint64_t current_op() { return op.id; }

}  // namespace tw
