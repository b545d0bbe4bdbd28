// Memory of a pool with a quota on a GPU, and the tiers below it: cold blocks go to pinned memory,
// and from there, where that has a quota too, to files. Copies are ordered by streams and events:
// the program does not wait for them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "core/memory/quota_pool.h"

namespace tw::cuda {

class Gpu;

struct HostTier {
  std::int64_t quota_bytes;  // of pinned memory; 0: blocks never leave the GPU
  std::string spill_parent;  // where the folder of files is made; empty: no files
};

std::shared_ptr<QuotaPool> make_gpu_pool(Gpu& gpu, std::int64_t quota_bytes, HostTier below,
                                         std::unique_ptr<Ledger> ledger);

// The books of the pinned memory below a pool; zeros while nothing was spilled.
struct HostFigures {
  LedgerFigures ledger{};
  std::string folder;  // of files; empty while there are none
};
HostFigures host_figures(QuotaPool& pool);

}  // namespace tw::cuda
