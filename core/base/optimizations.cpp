#include "core/base/optimizations.h"

#include <string>

#include "core/base/env.h"

namespace tw {

constexpr OptimizationRow kOptimizationRows[kOptimizations] = {
#define TW_OPTIMIZATION(name, reason, scope, bits, families, how, source) \
  {#name, Reason::reason, Scope::scope, Bits::bits, families, how, source},
#include "core/base/optimizations.inc"
#undef TW_OPTIMIZATION
};

namespace {

struct FromEnvironment {
  std::string text = env_text("OFF");
  OptimizationSet rows;
  std::vector<std::string_view> unknown;

  FromEnvironment() {
    const std::string_view all = text;
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t end = std::min(all.find(',', at), all.size());
      std::string_view name = all.substr(at, end - at);
      at = end + 1;
      while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
      while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
      if (name.empty()) continue;
      if (const OptimizationRow* const row = find_optimization(name))
        rows.add(id_of(*row));
      else
        unknown.push_back(name);
    }
  }
};
const FromEnvironment& from_environment() {
  static const FromEnvironment* const read = new FromEnvironment;
  return *read;
}

}  // namespace

std::atomic<std::uint64_t> off_for_all[OptimizationSet::kWords] = {off_at_start().word(0),
                                                                   off_at_start().word(1)};

const OptimizationSet& off_at_start() { return from_environment().rows; }
std::vector<std::string_view> unknown_in_environment() { return from_environment().unknown; }

void set_off_for_all(const OptimizationSet& rows) {
  OptimizationSet all = rows;
  for (const OptimizationRow& row : kOptimizationRows) {
    if (row.scope != Scope::start) continue;
    all.remove(id_of(row));
    if (is_off_at_start(id_of(row))) all.add(id_of(row));
  }
  for (int i = 0; i < OptimizationSet::kWords; ++i) off_for_all[i] = all.word(i);
}

const OptimizationRow* find_optimization(std::string_view name) {
  for (const OptimizationRow& row : kOptimizationRows)
    if (name == row.name) return &row;
  return nullptr;
}

}  // namespace tw
