// Values for the program that calls ops: a capture cannot repeat what it does with them.
#include "core/ops/read.h"

#include "core/autograd/capture.h"
#include "core/ops/copy.h"

namespace tw {

static Tensor on_the_cpu(const Tensor& x, const char* what) {
  refuse_in_capture(what);
  return to_device(x, nullptr);
}

HostValues::HostValues(const Tensor& x, const char* what)
    : x_(on_the_cpu(x, what)), pinned_(x_->storage) {}

}  // namespace tw
