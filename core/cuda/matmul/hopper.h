// What rungs on the copy engine and warpgroups of 9.0 share.
#pragma once
#include "core/cuda/matmul/hopper_parameters.h"
#include "core/cuda/matmul/rungs.h"

namespace tw::cuda {

// An operand of a product as its tensor map is made: elements that lie together along one axis,
// rows of them, members of a batch. Steps in elements.
struct BoxedMatrix {
  const void* at;
  std::int64_t together, step, rows, row_step, members, member_step;
};
// Along k where its elements lie together there, else along its other axis.
BoxedMatrix boxed_a(const MatmulProblem& p);
BoxedMatrix boxed_b(const MatmulProblem& p);
// Boxes of kBoxSide elements by `box_rows`.
TensorMap tensor_map_of(const BoxedMatrix& x, DType dtype, int box_rows);

bool is_hopper(std::string* reason);
bool accepts_hopper(const void* problem, std::string* reason);
void run_hopper(const void* problem);
double hopper_ns(const void* problem);

}  // namespace tw::cuda
