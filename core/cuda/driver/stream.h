// Streams of a GPU: queues of work, each in its own order. A mark is a place in one of them, for
// the host or other streams to wait for.
#pragma once
#include <cstdint>
#include <memory>

#include "core/cuda/driver/driver.h"
#include "core/cuda/driver/async_errors.h"

namespace tw::cuda {

class Gpu;

struct GpuStream {
  Gpu* gpu;
  Stream handle;
  int number;    // among its GPU's
  int priority;  // lower goes first
  LaunchLog log = {};
};

// Streams of one GPU by number.
using StreamSet = std::uint64_t;
inline constexpr int kMostStreams = 64;
constexpr StreamSet set_of(const GpuStream& stream) { return StreamSet{1} << stream.number; }

// All that was asked of a stream before the mark was made. Its event serves again afterwards.
class Mark {
 public:
  explicit Mark(GpuStream& stream);
  ~Mark();
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  bool reached() const;
  void wait() const;                        // on the host
  void hold(const GpuStream& other) const;  // what is asked of it from now on comes after the mark
  const GpuStream& stream() const { return stream_; }

 private:
  GpuStream& stream_;
  const std::uint64_t launches_;  // before it
  Event event_;
};
using MarkRef = std::shared_ptr<const Mark>;

// What is asked of `later` from now on comes after all that was asked of `earlier`.
void order(GpuStream& earlier, const GpuStream& later);

}  // namespace tw::cuda
