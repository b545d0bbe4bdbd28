#include "core/ops/key_value_cache.h"

#include "core/autograd/mode.h"
#include "core/base/error.h"
#include "core/ops/apply.h"
#include "core/ops/copy.h"
#include "core/ops/create.h"
#include "core/ops/pointwise.h"
#include "core/ops/records.h"
#include "core/ops/view.h"
#include "core/runtime/device.h"

namespace tw {

namespace {

constexpr char kName[] = "KeyValueCache";
constexpr int kRows = 2;  // the axis

void check_rows(const char* what, const Tensor& x, const Tensor& room) {
  if (x.rank() == 4 && x.size(0) == room.size(0) && x.size(1) == room.size(1) &&
      x.size(3) == room.size(3))
    return;
  fail(ErrorKind::value, kName, ": ", what, " has shape ", x.shape(), "; expected (", room.size(0),
       ", ", room.size(1), ", rows, ", room.size(3), ")");
}

Tensor rows_of(const Tensor& room, std::int64_t first, std::int64_t count) {
  Range ranges[4];
  for (int axis = 0; axis < 4; ++axis) ranges[axis] = {0, 1, room.size(axis)};
  ranges[kRows] = {first, 1, count};
  return slice(room, ranges);
}

void write_rows(const Tensor& room, std::int64_t first, const Tensor& x) {
  Tensor rows = rows_of(room, first, x.size(kRows));
  assign(rows, x);
}

// Where query i of those behind `filled` rows attends: keys up to its own.
Tensor mask_behind(std::int64_t filled, std::int64_t rows, const Device* device) {
  const DeviceGuard there(device);
  const Scalar past(filled + rows);
  const Tensor own = expand_dims(arange(Scalar(filled), past, 1, DType::int64), 1);
  return arange(0, past, 1, DType::int64) <= own;
}

}  // namespace

void append_rows(const KeyValueRows& cache, const Tensor& key, const Tensor& value) {
  check_rows("key", key, cache.keys);
  check_rows("value", value, cache.values);
  const std::int64_t rows = key.size(kRows), room = cache.keys.size(kRows);
  if (value.size(kRows) != rows)
    fail(ErrorKind::value, kName, ": ", rows, " rows of keys, but ", value.size(kRows),
         " of values");
  if (cache.filled + rows > room)
    fail(ErrorKind::value, kName, ": ", rows, " rows do not fit: ", cache.filled, " of ", room,
         " are filled; make it longer, or call reset()");
  const GradModeGuard off(false);
  write_rows(cache.keys, cache.filled, key);
  write_rows(cache.values, cache.filled, value);
}

Tensor attend_with_cache(const KeyValueRows& cache, const Tensor& query, const Tensor& key,
                         const Tensor& value, std::optional<double> scale) {
  if (query.rank() != 4 || key.rank() != 4 || query.size(kRows) != key.size(kRows))
    fail(ErrorKind::value, kName, ": query ", query.shape(), " and key ", key.shape(),
         " have other rows");
  append_rows(cache, key, value);
  const GradModeGuard off(false);
  const std::int64_t rows = query.size(kRows), past = cache.filled + rows;
  const bool several = rows > 1, follows = cache.filled > 0;
  const Operand mask = several && follows ? Operand(mask_behind(cache.filled, rows, query.device()))
                                          : Operand::none();
  return apply(kScaledDotProductAttention,
               {query, rows_of(cache.keys, 0, past), rows_of(cache.values, 0, past), mask},
               WordList(4)
                   .set(0, word_of(0.0))
                   .set(1, several && !follows)
                   .set(2, scale ? word_of(*scale) : kNone)
                   .set(3, query.size(1) != key.size(1)));
}

}  // namespace tw
