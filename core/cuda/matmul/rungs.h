// What the rungs of the GPU's ladder for matrix products share, and the rungs.
#pragma once
#include <cstdlib>

#include "core/cuda/gpu/add_kernel.h"
#include "core/cuda/gpu/rates.h"
#include "core/cuda/matmul/matmul_parameters.h"
#include "core/problems/matmul.h"

namespace tw::cuda {

using MatmulParameter = MatmulOf<void, void>;
MatmulParameter parameter_of(const MatmulProblem& p);

inline const MatmulProblem& matmul_of(const void* problem) {
  return *static_cast<const MatmulProblem*>(problem);
}
// TW_TYPE and TW_SUM.
std::string matmul_settings(DType dtype);

// Whether an operand's elements lie together along k (else along its other axis).
inline bool lies_along(std::int64_t step, std::int64_t other_step) {
  return step == 1 || (other_step != 1 && std::abs(step) <= std::abs(other_step));
}
inline bool a_lies_along_k(const MatmulProblem& p) { return lies_along(p.a_col, p.a_row); }
inline bool b_lies_along_k(const MatmulProblem& p) { return lies_along(p.b_row, p.b_col); }

// Addresses are not known when a rung is chosen, only when it runs.
inline bool is_on_16_bytes(const void* at) {
  return reinterpret_cast<std::uintptr_t>(at) % 16 == 0;
}

// k in pieces that are multiplied side by side, where C alone has too few tiles to keep a GPU busy.
// It follows from the shape alone, so that every GPU adds in the same order.
struct Pieces {
  std::int64_t count, terms;  // terms: of all but the last, a multiple of 64
};
Pieces pieces_of(const MatmulProblem& p);

void join_pieces(const MatmulProblem& p, const MatmulParameter& parameter);
// Has a launch run with room for the sums of pieces, which then become C.
template <class Launch> void launch_pieces(const MatmulProblem& p, const Pieces& pieces,
                                           MatmulParameter& parameter, Launch launch) {
  parameter.pieces = pieces.count;
  parameter.terms = pieces.terms;
  if (pieces.count == 1) return launch();
  const auto sum_bytes = static_cast<std::int64_t>(size_of(compute_dtype(p.dtype)));
  const Room partial(p.batch * pieces.count * p.m * p.n * sum_bytes);
  parameter.partial = partial.at();
  launch();
  join_pieces(p, parameter);
}

// Blocks of high x wide elements of C; a batch or m longer than a grid takes is cut.
void launch_blocks(const MatmulProblem& p, Function kernel, int high, int wide, unsigned shared,
                   MatmulParameter parameter);
inline void launch_blocks(const MatmulProblem& p, Function kernel, int high, int wide,
                          unsigned shared) {
  launch_blocks(p, kernel, high, wide, shared, parameter_of(p));
}

// Estimates from a rate, products a nanosecond and multiprocessor with whole tiles, and blocks in
// waves.
double waves_ns(const MatmulProblem& p, int high, int wide, double products_per_ns,
                std::int64_t pieces = 1);

void run_naive(const void* problem);
void run_tiled(const void* problem);
void run_registers(const void* problem);
double naive_ns(const void* problem);
double tiled_ns(const void* problem);
double registers_ns(const void* problem);
bool accepts_pieces(const void* problem, std::string* reason);
void run_split_k(const void* problem);
double split_k_ns(const void* problem);

// Float in parts of bfloat16: 1 to 3.
template <int parts> void run_parts(const void* problem);
template <int products> double parts_ns(const void* problem) {
  return waves_ns(matmul_of(problem), kPartsHigh, kPartsWide, 0.4 * rates().warps / products);
}

bool accepts_halves(const void* problem, std::string* reason);
bool accepts_float(const void* problem, std::string* reason);
void run_tensor(const void* problem);
double tensor_ns(const void* problem);

// What each rung that accepts a product m x k @ k x n is taken to need on this thread's GPU.
std::vector<std::pair<std::string, double>> product_estimates(std::int64_t m, std::int64_t k,
                                                              std::int64_t n, DType dtype);

bool accepts_split(const void* problem, std::string* reason);
void run_split(const void* problem);
double split_ns(const void* problem);

}  // namespace tw::cuda
