// How the memory floor gets slow work done beside the program: the runtime floor, which it may not
// include, puts its queue here.
#pragma once

namespace tw {

// Runs job(argument) once: at once, until the runtime's transfer engine is linked in, then on one
// of its threads. A forked child does not run what its parent had queued.
inline void (*run_in_background)(void (*job)(void* argument), void* argument) =
    [](void (*job)(void*), void* argument) { job(argument); };

}  // namespace tw
