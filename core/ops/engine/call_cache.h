// Calls are made again and again with tensors of the same shapes: what `apply` found out about the
// last few of those too short to free the frontend's lock for (the kernel, the problem without
// addresses, the results) is kept here, so that such a call binds addresses and runs. Touched under
// the frontend's lock alone, as reference counts are.
#pragma once
#include <cstdint>

#include "core/autograd/node.h"
#include "core/runtime/op.h"
#include "core/runtime/registry.h"
#include "core/tensor/operand.h"

namespace tw {

// All that a call's checks, results and choice of kernel follow from.
class CallKey {
 public:
  // Empty where it is not `wanted`, where an operand is a number, and where the description of the
  // operands would exceed kCapacity.
  CallKey(bool wanted, const OpRecord& op, const Operand* in, int inputs, Attributes attributes) {
    if (wanted) describe(op, in, inputs, attributes);
  }
  explicit operator bool() const { return count_ > 0; }
  bool operator==(const CallKey& other) const;
  std::uint64_t hash() const;

 private:
  static constexpr int kCapacity = 48;
  void describe(const OpRecord& op, const Operand* in, int inputs, Attributes attributes);

  int count_ = 0;  // 0: no key
  std::int64_t words_[kCapacity];
};

struct KnownCall {
  struct Made {
    Shape shape;
    Strides strides;
    std::int64_t count;
    DType dtype;
    bool contiguous;
  };

  CallKey key;
  const Lowering* lowering;
  const Kernel* kernel;
  Made results[kMaxResults];
  alignas(16) char problem[kMaxProblemBytes];
  // For observers; null where the call was kept while nobody observed.
  const char* text = nullptr;
  Estimate estimate = {};
};

// Null where the call is not among them, or has no key.
KnownCall* find_known(const CallKey& key);
// Takes the place of another one, which no thread may be in the middle of. Null where it is not
// kept.
KnownCall* keep_known(const CallKey& key, const Lowering& lowering, const Kernel& kernel,
                      const void* problem, std::uint32_t problem_bytes, const Call& call);

}  // namespace tw
