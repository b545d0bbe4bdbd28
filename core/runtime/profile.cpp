// What the frontend installs.
#include "core/runtime/profile.h"

namespace tw {

FrontendLock frontend_lock = {nullptr, nullptr};

}  // namespace tw
