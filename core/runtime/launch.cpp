// What the frontend installs.
#include "core/runtime/launch.h"

namespace tw {

FrontendLock frontend_lock = {nullptr, nullptr};

}  // namespace tw
