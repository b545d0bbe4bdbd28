// Where the op of a node was asked for: its line and module, remembered while ops are observed or
// in anomaly mode. Kept once each, and named by number in the nodes, which have room for that.
#pragma once
#include "core/autograd/node.h"
#include "core/memory/events.h"

namespace tw {

// Empty where that was not noted.
Origin origin_of(const Node& node);
// For ops of the node's gradient while it lives. What the frontend computes is at a line of its
// own.
class GradientScope {
 public:
  explicit GradientScope(const Node& node)
      : scope_({node.custom() ? "" : origin_of(node).line, origin_of(node).module}) {}

 private:
  const OriginScope scope_;
};

}  // namespace tw
