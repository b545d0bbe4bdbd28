// How the memory floor gets slow work done beside the program: the runtime floor, which it may not
// include, puts its queue here.
#pragma once

namespace tw {

// Has job(argument) run once on another thread; null where nobody offers that. A forked child does
// not run what its parent had queued.
inline void (*run_in_background)(void (*job)(void* argument), void* argument) = nullptr;

}  // namespace tw
