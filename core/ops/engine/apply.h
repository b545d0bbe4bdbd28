// The one way in which ops run: infer, choose and prepare, pin, allocate, run, tell, record.
#pragma once
#include <initializer_list>

#include "core/runtime/op.h"
#include "core/tensor/operand.h"

namespace tw {

// Writes the op's results to `out`, one for each that the record has. Raises what infer raises,
// TypeError where neither a kernel nor a body takes the operands, MemoryError; nothing is changed
// then.
void apply(const OpRecord& op, const Operand* in, int inputs, Attributes attributes, Tensor* out);

// What `quick` of a record leaves: the steps of a call on the device where this thread makes new
// tensors, of which nobody is told. Returns whether the record's node may stand for the call.
bool run_in_full(const OpRecord& op, const Operand* in, int inputs, Attributes attributes,
                 Tensor* out);

// Writes the result into the memory of `target`, which has its shape, whatever its type and strides
// are; takes no part in the graph. For kernels that take any strides.
void apply_into(const OpRecord& op, const Operand* in, int inputs, Attributes attributes,
                const Tensor& target);

// Runs an op whose results are inputs that it writes to, which callers have checked.
void apply_in_place(const OpRecord& op, const Operand* in, int inputs, Attributes attributes);

// Where the operands are; null: the CPU. Raises ValueError where they are not on one device.
const Device* device_of(const OpRecord& op, const Operand* in, int inputs);

void describe_operand(const Operand& x, Meta& meta);

// The same as apply for ops with one result.
Tensor apply(const OpRecord& op, std::initializer_list<Operand> in, Attributes attributes = {});

}  // namespace tw
