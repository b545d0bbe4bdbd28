// Who holds memory, as errors tell it where there is not enough.
#pragma once
#include <string>
#include <vector>

namespace tw {

// What is known of a block; empty texts: not known.
struct Holding {
  const char* tensor = "";  // type and shape
  const char *op = "", *module = "", *source = "";
  double bytes = 0;
};

// "; largest holders: ..." of blocks, those alike as one; empty where there are none. Texts are
// ones that stay (texts.h).
std::string largest_holders(const std::vector<Holding>& blocks);

}  // namespace tw
