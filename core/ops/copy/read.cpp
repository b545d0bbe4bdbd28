// Values for the program that calls ops: a capture cannot repeat what it does with them.
#include "core/ops/copy/read.h"

#include <string>

#include "core/autograd/capture.h"
#include "core/base/modes.h"
#include "core/ops/copy/copy.h"
#include "core/ops/reduce/reduce.h"

namespace tw {

static Tensor on_the_cpu(const Tensor& x, const char* what) {
  refuse_in_capture(what);
  return to_device(x, nullptr);
}

HostValues::HostValues(const Tensor& x, const char* what)
    : x_(on_the_cpu(x, what)), pinned_(x_->storage) {}

bool shows_values(const Tensor& x) {
  return !x.device() && x.count() && !modes.capture && !modes.dry_run;
}

bool holds_any(const Tensor& mask, const char* op) {
  const std::string what = std::string(op) + " reads whether its operands are in range";
  return *HostValues(any(mask, {}, false), what.c_str()).as<bool>();
}

}  // namespace tw
