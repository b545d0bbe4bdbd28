// What a thread has chosen: the one record that ops ask before they start. A new thread has the
// defaults; tasks take on their submitter's (core/runtime/mode_changes.h). Settings of the whole
// process are elsewhere: the number of threads, the precision limit, tuning, who observes memory.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tw {

class BlockSource;
class Capture;
class CheckpointFrame;
class DryRun;
class Observers;
struct Choice;
struct Device;

// Each floor changes its own part; this one only knows the names.
struct Modes {
  bool grad = true;  // ops record themselves
  // No observer, device but the CPU, autocast, dry run, capture, anomaly or call in full: one load
  // on the eager path.
  bool plain = true;
  bool unlocks : 1 = true;                // long kernels run without the frontend's lock
  bool anomaly : 1 = false;               // nodes note their lines, passes look for NaN
  bool in_full : 1 = false;               // calls take no shortcut: the choice wants it so
  std::uint8_t autocast = 0;              // one more than the dtype of products; 0: off
  std::uint32_t run = 0;                  // the innermost run of a checkpointed function
  const Choice* choice = nullptr;         // instruction set and forced kernels; null: the defaults
  const Device* device = nullptr;         // of new tensors; null: the CPU
  Observers* observers = nullptr;         // null: nobody observes
  DryRun* dry_run = nullptr;              // while it lives, kernels are not run
  BlockSource* source = nullptr;          // of new storages; null: the default pool
  CheckpointFrame* checkpoint = nullptr;  // keeps what is saved
  Capture* capture = nullptr;             // records calls

  // To be called after a change of what it sums up.
  void update_plain() {
    plain = !observers && !device && !autocast && !dry_run && !capture && !anomaly && !in_full;
  }
};

// Read by every eager op: a fixed offset from the thread's pointer, without a check for first use.
// Static TLS space is scarce for libraries that are loaded late, so the record stays small.
#ifdef __GLIBC__
#define TW_STATIC_TLS __attribute__((tls_model("initial-exec")))
#else
#define TW_STATIC_TLS
#endif
extern constinit thread_local Modes modes TW_STATIC_TLS;
static_assert(sizeof(Modes) <= 64);

}  // namespace tw
