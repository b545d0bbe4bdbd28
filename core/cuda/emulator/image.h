// How the stand-in compiler's code begins, so that the stand-in driver knows it.
#pragma once

namespace emulated {

inline constexpr char kMagic[8] = {'t', 'w', 'e', 'm', 'u', '1', 0, 0};

}  // namespace emulated
