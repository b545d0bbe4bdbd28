// The table of thresholds as constants: thresholds.inc says what each is and why.
#pragma once
#include <cstdint>

namespace tw::thresholds {

#define TW_TECHNIQUE(title, text)
#define TW_THRESHOLD(name, value, unit, decides, reason) inline constexpr std::int64_t name = value;
#include "core/base/thresholds.inc"
#undef TW_THRESHOLD
#undef TW_TECHNIQUE

}  // namespace tw::thresholds
