// Random tensors from counter-based streams: the same seed gives the same numbers on any number of
// threads.
#pragma once
#include "core/tensor/tensor.h"

namespace tw {

// A stream and how far it has been read.
struct Generator {
  std::uint64_t seed;
  std::uint64_t position = 0;  // in 32-bit words, a multiple of 4
};
Generator& default_generator();

// Uniform in [low, high): as many random bits as the type has digits.
Tensor uniform(Generator& generator, const Shape& shape, double low, double high, DType dtype);
// Box-Muller (1958).
Tensor normal(Generator& generator, const Shape& shape, double mean, double deviation, DType dtype);
// Whole numbers in [low, high).
Tensor randint(Generator& generator, const Shape& shape, std::int64_t low, std::int64_t high,
               DType dtype);
// 1 with probability p, else 0.
Tensor bernoulli(Generator& generator, const Shape& shape, double p, DType dtype);
// 0 .. n-1 in random order (Fisher-Yates).
Tensor randperm(Generator& generator, std::int64_t n);
// Zeroes elements with probability p and scales the rest by 1 / (1 - p).
Tensor dropout(Generator& generator, const Tensor& x, double p);

}  // namespace tw
