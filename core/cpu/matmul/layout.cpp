#include "core/cpu/matmul/layout.h"
#include "core/runtime/choice.h"

namespace tw {

namespace {

// Cycles per element to transpose a tile on its way to a C in L1 and beyond (it fills lines of C
// piece by piece).
constexpr double kTransposedStore = 0.5, kTransposedStoreFar = 2.5, kNearElements = 16384;
// To copy an element of a column.
constexpr double kCopiedColumn = 1;
// A tile one vector wide loads nine vectors for eight multiply-adds, with two ports for either.
constexpr double kNarrowTile = 1.125;

// One way round of a product: whether A's rows, B's rows, B's columns, C's rows are contiguous.
struct Way {
  double m, n;
  bool a_rows, b_rows, b_columns, c_rows;
};
Way way_of(const MatmulProblem& p) {
  return {double(p.m),           double(p.n),           is_unit(p.a_col, p.k),
          is_unit(p.b_col, p.n), is_unit(p.b_row, p.k), is_unit(p.c_col, p.n)};
}
Way other_way_of(const MatmulProblem& p) {
  return {double(p.n),           double(p.m),           is_unit(p.b_row, p.k),
          is_unit(p.a_row, p.m), is_unit(p.a_col, p.k), is_unit(p.c_row, p.m)};
}
// Estimated cycles: two vector multiply-adds each, half-filled vectors counted whole, and what
// moves.
double cycles_of(const Way& way, double k, int lanes) {
  const double vectors =
      double((std::int64_t(way.n) + lanes - 1) >> __builtin_ctz(unsigned(lanes)));
  const double moved_b = way.b_rows ? 0 : way.b_columns ? kPackColumns : kPackStrided;
  const double store = way.m * way.n <= kNearElements ? kTransposedStore : kTransposedStoreFar;
  const double moved_c = way.c_rows ? 0 : store * (1 + k / 1024);
  if (way.a_rows &&
      copies_for_dots(std::int64_t(way.m), std::int64_t(way.n), std::int64_t(k), lanes))
    return way.m * k * way.n / lanes + (way.b_columns ? 0 : kCopiedColumn * k * way.n) +
           moved_c * way.m * way.n;
  return way.m * k * vectors / 2 * (vectors > 1 ? 1 : kNarrowTile) +
         (way.a_rows ? 0 : kPackStrided * way.m * k) + moved_b * k * way.n +
         moved_c * way.m * way.n;
}

}  // namespace

MatmulProblem transposed(const MatmulProblem& p) {
  return {p.dtype,   p.batch,
          p.n,       p.m,
          p.k,       p.b,
          p.b_batch, p.b_col,
          p.b_row,   p.a,
          p.a_batch, p.a_col,
          p.a_row,   p.c,
          p.c_batch, p.c_col,
          p.c_row,   p.alpha,
          p.beta,    {p.epilogue.bias, p.epilogue.col, p.epilogue.row, p.epilogue.relu}};
}

bool flips(const MatmulProblem& p) {
  if (p.a_col == 1 && p.b_col == 1 && p.c_col == 1)
    return false;  // nothing to gain: the usual case
  const int lanes = lanes_of(p.dtype);
  const double k = double(p.k);
  return cycles_of(other_way_of(p), k, lanes) < cycles_of(way_of(p), k, lanes) &&
         uses(Optimization::operand_swap);
}
void fold_batch(MatmulProblem& p) {
  if (p.batch == 1 || p.m == 1 || p.b_batch != 0 || p.epilogue.row != 0) return;
  if (p.a_batch != p.m * p.a_row || p.c_batch != p.m * p.c_row) return;
  if (!uses(Optimization::batch_folding)) return;
  p.m *= p.batch;
  p.batch = 1;
}

}  // namespace tw
