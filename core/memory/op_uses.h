// Which blocks the op at work on this thread has addresses of: they keep their place until it ends.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/memory/block.h"

namespace tw {

struct OpUse {
  std::shared_ptr<BlockSource> source;
  Block* block;
  std::uint64_t life;  // tells the block from a later one in the same record
};
void note_use(OpUse use);
// Ends the op: source->end_use(...) for each use noted on this thread since the last call. Whoever
// runs ops calls this after each while blocks may move.
void end_op();
// Sets the uses of the op at work aside, while a callback may run ops of its own.
class NestedOps {
 public:
  NestedOps();
  ~NestedOps();
  NestedOps(const NestedOps&) = delete;

 private:
  std::vector<OpUse> outer_;
};
// Differs between ops and between threads.
std::uint64_t current_op();

}  // namespace tw
