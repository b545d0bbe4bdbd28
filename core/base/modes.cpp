#include "core/base/modes.h"

namespace tw {

constinit thread_local Modes modes TW_STATIC_TLS;

}  // namespace tw
