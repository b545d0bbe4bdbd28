// Lines are kept once each and named by number in the nodes, which have room for that.
#include "core/autograd/anomaly.h"

#include <limits>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/autograd/backward.h"
#include "core/memory/events.h"

namespace tw {

namespace {

struct Lines {
  std::mutex mutex;
  std::vector<const char*> texts = {""};
  std::unordered_map<const char*, std::uint16_t> numbers;  // texts are one object a line

  // 0 where there are too many.
  std::uint16_t number_of(const char* text) {
    const std::lock_guard lock(mutex);
    if (const auto found = numbers.find(text); found != numbers.end()) return found->second;
    if (texts.size() > std::numeric_limits<std::uint16_t>::max()) return 0;
    const auto number = static_cast<std::uint16_t>(texts.size());
    texts.push_back(text);
    numbers.emplace(text, number);
    return number;
  }
  const char* at(std::uint16_t number) {
    const std::lock_guard lock(mutex);
    return texts[number];
  }
};
// Never destroyed: threads may outlive the end of the program.
Lines& lines() {
  static Lines* const instance = new Lines;
  return *instance;
}

}  // namespace

void note_line(Node& node) {
  if (!modes.anomaly || !source_line) return;
  const char* const line = source_line();
  if (*line) node.line = lines().number_of(line);
}

void refuse_nan(const Node& node, const Tensor* grads) {
  for (int i = 0; i < node.inputs; ++i)
    if (grads[i] && gradient_arithmetic().has_nan(grads[i]))
      fail(ErrorKind::runtime, "backward: the gradient of ", node.op, " by its input ", i,
           " has a NaN; the op ran ",
           node.line ? std::string("at ") + lines().at(node.line)
                     : "outside detect_anomaly, which notes the line");
}

}  // namespace tw
