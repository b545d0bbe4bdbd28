#include "core/cuda/driver/stream.h"

#include "core/cuda/gpu/gpu.h"

namespace tw::cuda {

Mark::Mark(GpuStream& stream)
    : stream_(stream), launches_(stream.log.count()), event_(stream.gpu->take_event()) {
  if (const Result result = driver().record_event(event_, stream.handle)) {
    stream.gpu->give_event(event_);
    fail_driver(result, "an event cannot be recorded");
  }
}

Mark::~Mark() { stream_.gpu->give_event(event_); }

bool Mark::reached() const {
  stream_.gpu->enter();
  const Result result = driver().query_event(event_);
  if (result == kNotReady) return false;
  check(result, "a kernel failed");
  stream_.log.end_well(launches_);
  return true;
}

void Mark::wait() const {
  stream_.gpu->enter();
  check(driver().wait_for_event(event_), "a kernel failed");
  stream_.log.end_well(launches_);
}

void Mark::hold(const GpuStream& other) const {
  other.gpu->enter();
  check(driver().make_stream_wait(other.handle, event_, 0), "a stream cannot wait");
}

void order(GpuStream& earlier, const GpuStream& later) {
  if (&earlier != &later) Mark(earlier).hold(later);
}

}  // namespace tw::cuda
