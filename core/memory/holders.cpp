#include "core/memory/holders.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <tuple>

namespace tw {

namespace {

constexpr std::size_t kMostTold = 5;

struct Sum {
  Holding holding;
  int blocks = 0;
};

void tell(std::ostream& text, const Sum& sum) {
  constexpr double kMiB = 1 << 20;
  const Holding& of = sum.holding;
  text << of.bytes / kMiB << " MiB in " << sum.blocks << (sum.blocks == 1 ? " block" : " blocks")
       << " of " << (*of.tensor ? of.tensor : "unknown shape");
  if (*of.op) text << " by " << of.op;
  if (*of.module) text << " in " << of.module;
  if (*of.source) text << " at " << of.source;
}

}  // namespace

std::string largest_holders(const std::vector<Holding>& blocks) {
  std::map<std::tuple<const char*, const char*, const char*, const char*>, Sum> sums;
  for (const Holding& block : blocks) {
    Sum& sum = sums[{block.tensor, block.op, block.module, block.source}];
    const double bytes = sum.holding.bytes + block.bytes;
    sum.holding = block;
    sum.holding.bytes = bytes;
    ++sum.blocks;
  }
  std::vector<Sum> ordered;
  for (const auto& [key, sum] : sums) ordered.push_back(sum);
  std::sort(ordered.begin(), ordered.end(),
            [](const Sum& a, const Sum& b) { return a.holding.bytes > b.holding.bytes; });
  if (ordered.empty()) return "";
  std::ostringstream text;
  text << "; largest holders: ";
  for (std::size_t i = 0; i < std::min(ordered.size(), kMostTold); ++i) {
    if (i) text << ", ";
    tell(text, ordered[i]);
  }
  if (ordered.size() > kMostTold) text << ", and " << ordered.size() - kMostTold << " more";
  return text.str();
}

}  // namespace tw
