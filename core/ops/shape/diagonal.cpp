// Diagonals: as views of a tensor, as what zeros are filled with, and their sums.
#include <algorithm>

#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

// Two different axes, of a row and a column index.
struct Plane {
  int row, column;
  Plane(Attribute first, Attribute second, int rank, const char* op)
      : row(normalize_axis(first, rank, op)), column(normalize_axis(second, rank, op)) {
    if (row == column) fail(ErrorKind::value, op, ": axis ", row, " is repeated");
  }
};

void need_two_axes(const char* op, const Shape& shape) {
  if (shape.rank() < 2) fail(ErrorKind::value, op, ": needs at least 2 dimensions, got ", shape);
}

// Attributes: offset, axis1, axis2. The elements x[.., i, .., i + offset, ..] along a last axis.
void infer_diagonal(Call& call, Result* results) {
  const Meta& x = call.in[0];
  need_two_axes("diagonal", *x.shape);
  const Attribute offset = call.attributes[0];
  const Plane plane(call.attributes[1], call.attributes[2], x.rank(), "diagonal");
  const Strides& step = *x.strides;
  Result& y = results[0];
  for (int i = 0; i < x.rank(); ++i) {
    if (i == plane.row || i == plane.column) continue;
    y.shape.push_back(x.size(i));
    y.strides.push_back(step[i]);
  }
  const std::int64_t rows = x.size(plane.row), columns = x.size(plane.column);
  const std::int64_t count = std::max<std::int64_t>(
      0, offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns));
  y.shape.push_back(count);
  y.strides.push_back(step[plane.row] + step[plane.column]);
  if (count > 0) y.offset = offset >= 0 ? offset * step[plane.column] : -offset * step[plane.row];
  y.dtype = x.dtype;
  y.alias = 0;
}

Tensor diagonal(const Tensor& x, Attribute offset, Attribute row, Attribute column) {
  return apply(kDiagonal, {x}, AttributeList(3).set(0, offset).set(1, row).set(2, column));
}
Tensor diagonal_of(const Tensor& x, Attributes attributes) {
  return diagonal(x, attributes[0], attributes[1], attributes[2]);
}

// Zeros of a shape with `diagonal` on that diagonal.
Tensor around(const Tensor& diagonal, Attribute offset, Attribute row, Attribute column,
              const Shape& shape) {
  AttributeList attributes(4);
  attributes.set(0, offset).set(1, row).set(2, column).set_list(3, shape);
  return apply(kDiagonalBackward, {diagonal}, attributes);
}

// What other diagonals of a tensor left is kept.
bool add_to_diagonal(const Use& use, const Tensor& target) {
  const Tensor& g = use.in[0].tensor;
  if (g.dtype() != target.dtype()) return false;
  Operand operands[] = {diagonal_of(target, use.attributes), g};
  pointwise_in_place(PointwiseOp::add, operands);
  return true;
}

// The last axis becomes the diagonal of a plane of two axes.
Tensor embedded(const Tensor& x, Attribute offset, Attribute axis1, Attribute axis2,
                const char* op) {
  const int rank = x.rank() + 1;
  const Plane plane(axis1, axis2, rank, op);
  const std::int64_t length = x.size(x.rank() - 1);
  std::int64_t extent = 0;
  if (__builtin_add_overflow(length, offset < 0 ? -(offset + 1) : offset, &extent) ||
      __builtin_add_overflow(extent, offset < 0 ? 1 : 0, &extent))
    fail(ErrorKind::value, op, ": the result has more elements than 64 bits can count");
  Shape shape;
  for (int i = 0, from = 0; i < rank; ++i)
    shape.push_back(i == plane.row || i == plane.column ? extent : x.size(from++));
  return around(x, offset, plane.row, plane.column, shape);
}

}  // namespace

constexpr OpRecord kDiagonal = {
    .name = "diagonal",
    .signature = "(x: Tensor, offset: Diagonal = 0, axis1: int = 0, axis2: int = 1) -> Tensor",
    .help =
        "The elements whose index along axis2 is `offset` above that along axis1, along a last "
        "axis in place of the two, as a view.\n"
        "Raises ValueError for fewer than 2 dimensions and for one axis twice.\n"
        "Shapes: x (..., m, n) for the two axes; the result is (..., size of the diagonal).\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.diagonal.",
    .flags = kFunction,
    .infer = infer_diagonal,
    .vjp =
        [](Vjp& v) {
          const Attributes attributes = v.attributes();
          AttributeList with_shape(4);
          with_shape.set(0, attributes[0])
              .set(1, attributes[1])
              .set(2, attributes[2])
              .set_list(3, v.shape(0));
          v.give(0, kDiagonalBackward, {v.g()}, with_shape);
        },
    .shapes = 1};
constexpr OpRecord kDiagonalBackward = {
    .name = "diagonal_backward",
    .signature = "(g: Tensor, offset: int, axis1: int, axis2: int, shape: Shape) -> Tensor",
    .help = "Zeros with g on a diagonal: the gradient of diagonal.",
    .infer =
        [](Call& call, Result* results) {
          results[0].shape = call.attributes.dims(3);
          results[0].dtype = call.in[0].dtype;
        },
    .body =
        [](const Use& use, Tensor* out) {
          const Tensor& g = use.in[0].tensor;
          out[0] = zeros(use.attributes.dims(3), g.dtype());
          copy_into(diagonal_of(out[0], use.attributes), g);
        },
    .vjp = [](Vjp& v) { v.give(0, diagonal_of(v.g(), v.attributes())); },
    .add_into = add_to_diagonal};
constexpr OpRecord kDiag = {
    .name = "diag",
    .signature = "(x: Tensor, k: int = 0) -> Tensor",
    .help =
        "A copy of the k-th diagonal of a matrix, or zeros with a vector on that diagonal. Raises "
        "ValueError for other shapes.\n"
        "Shapes: x (m, n) gives (size of the diagonal,), x (n,) gives (n + abs(k), n + abs(k)).\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.diag.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor& x = use.in[0].tensor;
      if (x.rank() != 1 && x.rank() != 2)
        fail(ErrorKind::value, "diag: needs 1 or 2 dimensions, got ", x.shape());
      out[0] = x.rank() == 1 ? embedded(x, use.attributes[0], 0, 1, "diag")
                             : copy(diagonal(x, use.attributes[0], 0, 1));
    }};
constexpr OpRecord kDiagEmbed = {
    .name = "diag_embed",
    .signature = "(x: Tensor, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Tensor",
    .help =
        "Zeros with the last axis of x on a diagonal of the plane of two axes: its elements stand "
        "where the index along axis2 is `offset` above that along axis1.\n"
        "Raises ValueError for 0 dimensions and for one axis twice.\n"
        "Shapes: x (..., n); the result is (..., m, m) for the two axes, m = n + abs(offset).\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.diag_embed.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor& x = use.in[0].tensor;
      if (x.rank() == 0)
        fail(ErrorKind::value, "diag_embed: needs at least 1 dimension, got ", x.shape());
      out[0] = embedded(x, use.attributes[0], use.attributes[1], use.attributes[2], "diag_embed");
    }};
constexpr OpRecord kDiagflat = {
    .name = "diagflat",
    .signature = "(x: Tensor, offset: int = 0) -> Tensor",
    .help =
        "A matrix of zeros with all elements of x, in row-major order, on a diagonal.\n"
        "Shapes: x of n elements; the result is (n + abs(offset), n + abs(offset)).\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.diagflat.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      out[0] = embedded(reshape(use.in[0].tensor, {-1}), use.attributes[0], 0, 1, "diagflat");
    }};
constexpr OpRecord kTrace = {
    .name = "trace",
    .signature = "(x: Tensor, offset: Diagonal = 0) -> Tensor",
    .help =
        "The sum of a diagonal of a matrix, of whole numbers as int64. Raises ValueError for other "
        "shapes; for stacks of matrices, sum over diagonal(x, 0, -2, -1).\n"
        "Shapes: x (m, n); the result has no dimensions.\n"
        "Types: all. Result: the same type, of integers int64 or uint64, of bool int64.\n"
        "Source: PyTorch's torch.trace.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor& x = use.in[0].tensor;
      if (x.rank() != 2) fail(ErrorKind::value, "trace: needs 2 dimensions, got ", x.shape());
      out[0] = sum(diagonal(x, use.attributes[0], 0, 1), {}, false);
    }};

}  // namespace tw
