// SHA-256 (FIPS 180-4): names and seals of what the engine keeps in files.
#pragma once
#include <string>
#include <string_view>

namespace tw {

// 64 hexadecimal digits.
std::string sha256(std::string_view bytes);
inline constexpr std::size_t kSha256Digits = 64;

}  // namespace tw
