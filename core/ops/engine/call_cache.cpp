#include "core/ops/engine/call_cache.h"

#include <array>
#include <cstring>

#include "core/base/frontend_lock.h"

namespace tw {

namespace {

// A training step of a small network makes some dozens of different small calls.
constexpr int kPlaces = 256;
KnownCall* places[kPlaces];

KnownCall*& place_of(const CallKey& key) { return places[key.hash() >> 56]; }
static_assert(kPlaces == 1 << (64 - 56));

// Odd numbers that look random (splitmix64), a factor for each word of a key.
template <int count> constexpr std::array<std::uint64_t, count> make_factors() {
  std::array<std::uint64_t, count> factors{};
  std::uint64_t state = 0;
  for (std::uint64_t& factor : factors) {
    std::uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    factor = (z ^ z >> 31) | 1;
  }
  return factors;
}

}  // namespace

void CallKey::describe(const OpRecord& op, const Operand* in, int inputs, Attributes attributes) {
  // Three words, the op's attributes, and of each operand its type and each axis's extent and
  // stride.
  if (3 + attributes.count + inputs > kCapacity) return;
  words_[0] = reinterpret_cast<std::int64_t>(&op);
  words_[1] = reinterpret_cast<std::int64_t>(modes.choice);
  words_[2] = static_cast<std::int64_t>(choice_epoch.load(std::memory_order_acquire)) << 8 |
              static_cast<std::int64_t>(default_dtype());
  int count = 3;
  for (int i = 0; i < attributes.count; ++i) words_[count++] = attributes.at[i];
  for (int i = 0; i < inputs; ++i) {
    const TensorHeader* const x = in[i].tensor.get();
    if (!x) {
      if (!in[i].scalar.absent()) return;
      words_[count++] = -1;
      continue;
    }
    const int rank = x->shape.rank();
    if (count + 2 * rank + inputs - i > kCapacity) return;
    words_[count++] = rank << 16 | static_cast<int>(x->dtype);
    // Strides as well where they are row-major: a result has those of its operand along axes of one
    // element.
    for (int axis = 0; axis < rank; ++axis) {
      words_[count++] = x->shape[axis];
      words_[count++] = x->strides[axis];
    }
  }
  count_ = count;
}

bool CallKey::operator==(const CallKey& other) const {
  if (count_ != other.count_) return false;
  for (int i = 0; i < count_; ++i)
    if (words_[i] != other.words_[i]) return false;
  return true;
}

// The upper bits of a sum of products, none of which waits for another (multiply-shift hashing,
// Dietzfelbinger and others 1997).
std::uint64_t CallKey::hash() const {
  static constexpr auto kFactors = make_factors<kCapacity>();
  std::uint64_t sum = 0;
  for (int i = 0; i < count_; ++i) sum += static_cast<std::uint64_t>(words_[i]) * kFactors[i];
  return sum;
}

KnownCall* find_known(const CallKey& key) {
  if (!key) return nullptr;
  KnownCall* const known = place_of(key);
  return known && known->key == key ? known : nullptr;
}

KnownCall* keep_known(const CallKey& key, const Lowering& lowering, const Kernel& kernel,
                      const void* problem, std::uint32_t problem_bytes, const Call& call) {
  if (problem_bytes > kMaxProblemBytes || MidCall::any()) return nullptr;
  KnownCall*& place = place_of(key);
  if (!place) place = new KnownCall{key, nullptr, nullptr, {}, {}, nullptr, {}};
  place->key = key;
  place->lowering = &lowering;
  place->kernel = &kernel;
  std::memcpy(place->problem, problem, problem_bytes);
  for (int i = 0; i < call.op->results; ++i) {
    const Meta& y = call.out[i];
    place->results[i] = {*y.shape, *y.strides, y.count, y.dtype, y.contiguous};
  }
  place->text = nullptr;
  return place;
}

}  // namespace tw
