// Work that the memory floor can let run aside: the transfer engine above takes it over.
#pragma once

namespace tw {

// Has job(argument) run once on another thread; null where nobody offers that.
extern void (*run_in_background)(void (*job)(void*), void* argument);

}  // namespace tw
