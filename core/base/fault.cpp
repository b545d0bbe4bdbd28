#include "core/base/fault.h"

namespace tw {

std::atomic<std::int64_t> faults_after{-1};

}  // namespace tw
