// The only reader of environment variables. Every variable is listed in env.cpp with its meaning.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tw {

struct EnvVariable {
  const char* name;  // without the TILEWRIGHT_ prefix
  const char* help;
};
const std::vector<EnvVariable>& env_variables();

// Value of TILEWRIGHT_<name>, or "" where unset. `name` must be listed in env_variables().
std::string env_text(const char* name);
// As a number, or `fallback` where unset; raises ValueError for text that is not a number.
std::int64_t env_integer(const char* name, std::int64_t fallback);
// Value of a variable that belongs to another program, or "" where unset.
std::string foreign_env_text(const char* name);

}  // namespace tw
