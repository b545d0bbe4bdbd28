#include "core/ops/sequence/key_value_cache.h"

#include <cmath>

#include "core/autograd/grad_mode.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/problems/key_value_cache.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/copy/in_place.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/copy/read.h"
#include "core/ops/engine/records.h"
#include "core/ops/shape/view.h"
#include "core/runtime/device.h"

namespace tw {

namespace {

constexpr char kName[] = "KeyValueCache";
constexpr int kRows = 2;  // the axis

// ---- checks ----

void check_rows(const char* what, const Tensor& x, const Tensor& room) {
  if (x.rank() == 4 && x.size(0) == room.size(0) && x.size(1) == room.size(1) &&
      x.size(3) == room.size(3))
    return;
  fail(ErrorKind::value, kName, ": ", what, " has shape ", x.shape(), "; expected (", room.size(0),
       ", ", room.size(1), ", rows, ", room.size(3), ")");
}

void check_filled(const Tensor& filled) {
  if (filled.count() == 1 && filled.dtype() == DType::int64) return;
  fail(ErrorKind::type, kName, ": filled must be an int64 tensor of one element, got ",
       describe(filled));
}

// That rows of keys and values fit each other and the memory. How many a tensor says are filled is
// known to what runs.
void check_appended(const KeyValueRows& cache, const Tensor& key, const Tensor& value) {
  check_rows("key", key, cache.keys);
  check_rows("value", value, cache.values);
  const std::int64_t rows = key.size(kRows), room = cache.keys.size(kRows);
  if (value.size(kRows) != rows)
    fail(ErrorKind::value, kName, ": ", rows, " rows of keys, but ", value.size(kRows),
         " of values");
  if (cache.filled.is_tensor())
    check_filled(cache.filled.tensor);
  else
    check_cache_room(cache.filled.scalar.i, rows, room);
}

void check_query(const KeyValueRows& cache, const Tensor& query, const Tensor& key) {
  if (query.rank() != 4 || key.rank() != 4 || query.size(kRows) != key.size(kRows))
    fail(ErrorKind::value, kName, ": query ", query.shape(), " and key ", key.shape(),
         " have other rows");
  const std::int64_t heads = cache.keys.size(1);
  if (query.size(0) != cache.keys.size(0) || query.size(3) != cache.keys.size(3) || heads == 0 ||
      query.size(1) % heads)
    fail(ErrorKind::value, kName, ": query ", query.shape(), " does not fit keys ",
         cache.keys.shape(), "; its heads may be a multiple of theirs");
}

// ---- in terms of other ops ----

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

std::int64_t number_of(const Operand& filled, std::int64_t rows, std::int64_t room) {
  if (!filled.is_tensor()) return filled.scalar.i;
  const HostValues value(filled.tensor, "KeyValueCache reads how many rows are filled");
  const std::int64_t number = *value.as<std::int64_t>();
  check_cache_room(number, rows, room);
  return number;
}

// Operands: query, key, value, keys, values, filled. Attributes: scale.
void attend_in_ops(const Use& use, Tensor* out) {
  const Tensor &query = use.in[0].tensor, &keys = use.in[3].tensor, &values = use.in[4].tensor;
  const std::int64_t rows = query.size(kRows);
  const std::int64_t filled = number_of(use.in[5], rows, keys.size(kRows)), past = filled + rows;
  write_rows(keys, filled, use.in[1].tensor);
  write_rows(values, filled, use.in[2].tensor);
  const bool several = rows > 1, follows = filled > 0;
  const Operand mask =
      several && follows ? Operand(mask_behind(filled, rows, query.device())) : Operand::none();
  out[0] = apply(kScaledDotProductAttention,
                 {query, rows_of(keys, 0, past), rows_of(values, 0, past), mask},
                 AttributeList(4)
                     .set(0, attribute_of(0.0))
                     .set(1, several && !follows)
                     .set(2, use.attributes[0])
                     .set(3, query.size(1) != keys.size(1)));
}

void infer(Call& call, Result* results) {
  const Meta &query = call.in[0], &values = call.in[4];
  results[0].shape = *query.shape;
  results[0].shape[3] = values.size(3);
  results[0].dtype = query.dtype;
  call.type = DType::int64;
}

// As if the memory were half filled.
Estimate estimate(const Call& call) {
  const Meta &query = call.in[0], &keys = call.in[3], &values = call.in[4];
  const double item = static_cast<double>(size_of(query.dtype));
  const double pairs = static_cast<double>(query.size(0) * query.size(1) * query.size(2)) *
                       static_cast<double>(keys.size(2)) / 2;
  return {2 * pairs * static_cast<double>(query.size(3) + values.size(3)),
          item * static_cast<double>(keys.count + values.count) / 2};
}

}  // namespace

void append_rows(const KeyValueRows& cache, const Tensor& key, const Tensor& value) {
  check_appended(cache, key, value);
  const std::int64_t filled = number_of(cache.filled, key.size(kRows), cache.keys.size(kRows));
  const GradModeGuard off(false);
  write_rows(cache.keys, filled, key);
  write_rows(cache.values, filled, value);
}

Tensor attend_with_cache(const KeyValueRows& cache, const Tensor& query, const Tensor& key,
                         const Tensor& value, std::optional<double> scale) {
  check_query(cache, query, key);
  check_appended(cache, key, value);
  const GradModeGuard off(false);
  const InPlaceChange to_keys(kName, cache.keys, key), to_values(kName, cache.values, value);
  const Operand operands[] = {query,      to_keys.before(key), to_values.before(value),
                              cache.keys, cache.values,        cache.filled};
  const AttributeList attributes = AttributeList(1).set(0, scale ? attribute_of(*scale) : kNone);
  Tensor y;
  if (modes.autocast) {  // attention in the type that autocast asks for
    attend_in_ops({kAttendWithCache, operands, 6, attributes}, &y);
    return y;
  }
  to_keys.begin();
  to_values.begin();
  apply(kAttendWithCache, operands, 6, attributes, &y);
  return y;
}

constexpr OpRecord kAttendWithCache = {
    .name = "attend_with_cache",
    .signature =
        "(query: Tensor, key: Tensor, value: Tensor, keys: Tensor!, values: Tensor!, "
        "filled: Operand, scale: float | None) -> Tensor",
    .help = "Rows of key and value written behind the filled ones, and attention of query to all.",
    .flags = kConstant,
    .infer = infer,
    .estimate = estimate,
    .body = attend_in_ops};

}  // namespace tw
