// The one check of a cache of keys and values that its op and its kernel share.
#pragma once
#include <cstdint>

#include "core/base/error.h"

namespace tw {

// Raises ValueError where `rows` do not fit behind `filled` ones.
inline void check_cache_room(std::int64_t filled, std::int64_t rows, std::int64_t room) {
  if (filled >= 0 && filled + rows <= room) return;
  fail(ErrorKind::value, "KeyValueCache: ", rows, " rows do not fit: ", filled, " of ", room,
       " are filled; make it longer, or call reset()");
}

}  // namespace tw
