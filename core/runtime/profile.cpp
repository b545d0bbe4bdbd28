// State of the observation seam.
#include "core/runtime/profile.h"

namespace tw {

std::vector<Observation>* observations = nullptr;
FrontendLock frontend_lock = {nullptr, nullptr};

}  // namespace tw
