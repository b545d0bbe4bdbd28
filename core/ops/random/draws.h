// Random tensors of a generator, for ops that are made of them.
#pragma once
#include "core/ops/random/random.h"
#include "core/runtime/op.h"
#include "core/tensor/tensor.h"

namespace tw {

// A key for `words` random words: where the generator stands, which moves on. In a checkpoint's
// rerun the key of its run.
Tensor draw(Generator& generator, std::int64_t words);
// The generator in an attribute; the default one for None.
Generator& generator_of(Attributes attributes, int i);
// Refuses probabilities outside [0, 1]: a number, and elements of a tensor that shows them.
void check_chances(const Operand& p, const char* op);
// Uniform in [0, 1), float32 or float64. In float32 with `bits` random bits: no more than the type
// that it is meant for has digits, else rounding to that type would give 1.
Tensor unit_uniform(Generator& generator, const Shape& shape, bool wide, int bits = 24);
Tensor uniform(Generator& generator, const Shape& shape, double low, double high, DType dtype);
Tensor normal(Generator& generator, const Shape& shape, double mean, double deviation, DType dtype);

}  // namespace tw
