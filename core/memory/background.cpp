#include "core/memory/background.h"

namespace tw {

void (*run_in_background)(void (*job)(void*), void* argument) = nullptr;

}  // namespace tw
