#include "core/autograd/origins.h"

#include <limits>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/fork.h"

namespace tw {

namespace {

// Texts are one object each.
struct Origins {
  std::mutex mutex;
  std::vector<Origin> all = {Origin{}};
  std::map<std::pair<const char*, const char*>, std::uint16_t> numbers;

  // 0 where there are too many.
  std::uint16_t number_of(const Origin& origin) {
    const std::lock_guard lock(mutex);
    if (const auto found = numbers.find({origin.line, origin.module}); found != numbers.end())
      return found->second;
    if (all.size() > std::numeric_limits<std::uint16_t>::max()) return 0;
    const auto number = static_cast<std::uint16_t>(all.size());
    all.push_back(origin);
    numbers.emplace(std::pair{origin.line, origin.module}, number);
    return number;
  }
  Origin at(std::uint16_t number) {
    const std::lock_guard lock(mutex);
    return all[number];
  }
};
// Never destroyed: threads may outlive the end of the program.
Origins& origins() {
  static Origins* const instance = new Origins;
  return *instance;
}
const AtFork guarded(
    ForkOrder::origins, [] { origins().mutex.lock(); }, [] { origins().mutex.unlock(); });

}  // namespace

void note_origin(Node& node) {
  if (!modes.anomaly && !observed()) return;
  const Origin origin = current_origin();
  if (*origin.line || *origin.module) node.origin = origins().number_of(origin);
}

Origin origin_of(const Node& node) { return node.origin ? origins().at(node.origin) : Origin{}; }

}  // namespace tw
