// The products of recurrent layers: of the states, the same weight at each step; and of the inputs,
// some steps at a time.
#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>

#include "core/cpu/matmul/matmul.h"
#include "core/cpu/sequence/recurrent_steps.h"
#include "core/memory/scratch.h"
#include "core/runtime/registry.h"

namespace tw {

// Flops below which waking other threads costs more than it brings.
int threads_for(std::int64_t flops);

struct Weight {
  const void* at;
  std::int64_t row, column;  // strides in elements
};

MatmulProblem product_of(DType dtype, std::int64_t m, std::int64_t k, std::int64_t n,
                         const Weight& b, std::int64_t a_row, std::int64_t c_row);
// By the kernel that is chosen freely, or unpacked where operands lie in cache: packing them took
// 10 % of the weights' gradients.
void multiply(const MatmulProblem& p, bool in_cache);

// c (m, n) = a (m, k) @ b (k, n) + beta * c, for one b and many a.
class StateProduct {
 public:
  // `many`: rows of a in all, from which copying b pays; then b's columns follow each other.
  StateProduct(DType dtype, std::int64_t m, std::int64_t k, std::int64_t n, const Weight& b,
               std::int64_t a_row, std::int64_t c_row, double beta, bool many);
  void operator()(const void* a, void* c) const { (*this)(a, c, parts_[0].problem.m); }
  // For fewer rows of a.
  void operator()(const void* a, void* c, std::int64_t rows) const;

 private:
  void add(const MatmulProblem& p, std::int64_t column);
  struct Part {
    MatmulProblem problem;
    const Kernel* kernel;
    std::int64_t column;
  };
  const std::size_t bytes_;
  Scratch panels_;
  Part parts_[2];
  int count_ = 0;
};

// A weight (gates * hidden, k) as panels whose columns are all gates of some units, gate by gate,
// so that the cells find the products of those units together.
class UnitPanels {
 public:
  UnitPanels(const RecurrentProblem& p, const void* weight, std::int64_t k);

  std::int64_t pieces() const { return (p_.hidden + products_.units - 1) / products_.units; }
  std::int64_t first_of(std::int64_t piece) const { return piece * products_.units; }
  std::int64_t units_at(std::int64_t first) const {
    return std::min<std::int64_t>(products_.units, p_.hidden - first);
  }
  // Columns of a panel: those of a gate, and all.
  std::int64_t units() const { return products_.units; }
  std::int64_t width() const { return gates_of(p_) * products_.units; }
  // to (rows, width) = from + a (rows, k) @ the panel of the units from `first` on.
  void multiply(std::int64_t first, std::int64_t rows, const void* a, const void* from,
                std::int64_t from_row, void* to) const;

  const void* panel(std::int64_t first) const { return panel_at(first); }

 private:
  void* panel_at(std::int64_t first) const;
  const RecurrentProblem& p_;
  const RecurrentTable::Products& products_;
  const std::int64_t k_;
  Scratch panels_;
};

// The products of the inputs with their weight, for the cells to read.
class InputProducts {
 public:
  // `by_units`: of some steps and of the units of a panel together, biases included; else of all
  // steps, row by row.
  InputProducts(const RecurrentProblem& p, bool by_units);
  bool in_panels() const { return panels_.has_value(); }
  // Before the step that is `index`-th to run.
  void prepare(std::int64_t index);
  // Of units from `first` on, of the step at place `t`.
  RecurrentSums of(std::int64_t t, std::int64_t first) const;

 private:
  std::size_t bytes_in_advance(bool by_units);
  void* sums_at(std::int64_t piece) const;
  const RecurrentProblem& p_;
  const std::int64_t bytes_;
  std::optional<UnitPanels> panels_, bias_;
  std::int64_t steps_ = 0;  // at a time, in panels
  std::int64_t from_ = 0;   // the earliest place of those that are ready
  Scratch sums_;
};

}  // namespace tw
