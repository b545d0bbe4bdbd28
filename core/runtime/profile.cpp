// State of the observation seam.
#include "core/runtime/profile.h"

namespace tw {

DispatchState dispatch_state;
FrontendLock frontend_lock = {nullptr, nullptr};

}  // namespace tw
