// Random tensors from counter-based streams: the same seed gives the same numbers on any number of
// threads.
#pragma once
#include <vector>

#include "core/tensor/tensor.h"

namespace tw {

// A stream and how far it has been read.
struct Generator {
  std::uint64_t seed;
  std::uint64_t position = 0;  // in 32-bit words, a multiple of 4
};
Generator& default_generator();

// Where a function drew its numbers from, so that it draws the same ones when it is run again.
struct DrawLog {
  struct Draw {
    std::uint64_t seed, position;
    std::int64_t words;
  };
  std::vector<Draw> draws;
};
// Within its scope draws are logged, or repeated from the log, which leaves the generators as they
// are; then other draws than those logged raise RuntimeError.
class DrawScope {
 public:
  enum class Mode : std::uint8_t { log, repeat };
  DrawScope(DrawLog& log, Mode mode);
  ~DrawScope();
  DrawScope(const DrawScope&) = delete;
  DrawScope& operator=(const DrawScope&) = delete;
  // Where to draw `words` words for `generator`, which moves on.
  static DrawLog::Draw draw(Generator& generator, std::int64_t words);

 private:
  static DrawLog::Draw take(DrawScope* scope, Generator& generator, std::int64_t words);
  DrawLog::Draw next(Generator& generator, std::int64_t words);
  DrawLog& log_;
  const Mode mode_;
  DrawScope* const outer_;
  std::size_t at_ = 0;
};

}  // namespace tw
