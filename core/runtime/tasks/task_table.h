// The scheduler's records, found by id: ids count up, so a record's place is its number. A block of
// records is given back when all of its tasks are forgotten.
#pragma once
#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/runtime/tasks/ranked_tree.h"
#include "core/runtime/tasks/scheduler.h"

namespace tw {

// Tasks that compete with one another: all unpaced ones, or one paced group.
struct TaskLane {
  RankedTree waiting;
  std::deque<TaskId> arrivals;  // in the order they became ready; stale ones stay until in front
  double share = 1.0;
  std::int64_t not_before_ns = INT64_MIN;
  std::int64_t unfinished = 0, running = 0;
};

// What few tasks have, apart so that the others stay small.
struct TaskRarities {
  std::string name;
  std::vector<TaskId> dependents;
};

struct TaskRecord : RankedNode {
  void* payload;
  TaskLane* lane;
  std::int64_t submitted_ns, ready_ns, started_ns, ended_ns;
  std::int64_t estimate_bytes, use_bytes, peak_use_bytes;
  std::unique_ptr<TaskRarities> rarities;
  int worker;
  std::uint32_t unmet;  // dependencies that have not completed
  TaskState state;
  TaskQuality quality;
  TaskCause cause;
  bool known, waiting, probed, timed;

  TaskRarities& rare() {
    if (!rarities) rarities = std::make_unique<TaskRarities>();
    return *rarities;
  }
  std::int64_t charge() const {
    switch (quality) {
      case TaskQuality::guaranteed: return estimate_bytes;
      case TaskQuality::burstable: return std::max(estimate_bytes, use_bytes);
      case TaskQuality::best_effort: return use_bytes;
    }
    __builtin_unreachable();
  }
};

class TaskTable {
 public:
  TaskId next_id() const { return next_; }
  TaskRecord& add() {
    const TaskId index = next_ - 1;
    if (index / kBlock - first_ == blocks_.size()) blocks_.push_back(take_block());
    TaskRecord& record = blocks_.back()->records[index % kBlock];
    record.id = next_++;
    record.known = true;
    return record;
  }
  // Null for an id that never was or is forgotten.
  TaskRecord* find(TaskId id) const {
    const TaskId block = (id - 1) / kBlock - first_;
    if (id == 0 || id >= next_ || (id - 1) / kBlock < first_ || !blocks_[block]) return nullptr;
    TaskRecord& record = blocks_[block]->records[(id - 1) % kBlock];
    return record.known ? &record : nullptr;
  }
  void forget(TaskId id) {
    TaskRecord* record = find(id);
    record->known = false;
    record->rarities.reset();
    std::unique_ptr<Block>& block = blocks_[(id - 1) / kBlock - first_];
    if (++block->forgotten < kBlock) return;
    block->forgotten = 0;
    spare_ = std::move(block);
    while (!blocks_.empty() && !blocks_.front()) {
      blocks_.pop_front();
      ++first_;
    }
  }
  template <class F> void each(F&& f) const {
    for (TaskId id = first_ * kBlock + 1; id < next_; ++id)
      if (TaskRecord* record = find(id)) f(*record);
  }

 private:
  // Large enough that blocks are rarely made, small enough (90 KiB) that the heap reuses them
  // instead of mapping fresh pages.
  static constexpr TaskId kBlock = 512;
  struct Block {
    std::array<TaskRecord, kBlock> records;
    TaskId forgotten = 0;
  };
  std::unique_ptr<Block> take_block() {
    if (spare_) return std::move(spare_);
    return std::make_unique<Block>();
  }
  std::deque<std::unique_ptr<Block>> blocks_;
  std::unique_ptr<Block> spare_;
  TaskId first_ = 0, next_ = 1;
};

}  // namespace tw
