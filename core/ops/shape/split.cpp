// One tensor as several.
#include "core/ops/shape/split.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

// The parts between neighbouring places, each from the place before it or empty.
std::vector<Tensor> between(const Tensor& x, int axis, const std::vector<std::int64_t>& places) {
  std::vector<Range> ranges;
  for (const std::int64_t extent : x.shape()) ranges.push_back({0, 1, extent});
  std::vector<Tensor> out;
  out.reserve(places.size() - 1);
  for (std::size_t i = 0; i + 1 < places.size(); ++i) {
    const std::int64_t count = std::max<std::int64_t>(0, places[i + 1] - places[i]);
    ranges[static_cast<std::size_t>(axis)] = {places[i], 1, count};
    out.push_back(slice(x, ranges));
  }
  return out;
}

// Parts of one extent, of which the last may be smaller; at least one.
std::vector<Tensor> alike(const Tensor& x, int axis, std::int64_t extent) {
  const std::int64_t end = x.size(axis);
  std::vector<std::int64_t> places;
  if (extent > 0) places.reserve(static_cast<std::size_t>(end / extent) + 2);
  places.push_back(0);
  while (end - places.back() > extent) places.push_back(places.back() + extent);
  places.push_back(end);
  return between(x, axis, places);
}

// The same number of places for each of `count` parts, the first of them with one more.
std::vector<std::int64_t> even_places(std::int64_t extent, std::int64_t count) {
  std::vector<std::int64_t> places;
  places.reserve(static_cast<std::size_t>(count) + 1);  // raises before one is made
  places.push_back(0);
  for (std::int64_t i = 0; i < count; ++i)
    places.push_back(places.back() + extent / count + (i < extent % count));
  return places;
}

std::vector<Tensor> split_by_places(const Tensor& x, const Parts& parts, int axis, const char* op) {
  const std::int64_t extent = x.size(axis);
  if (parts.one) {
    const std::int64_t count = parts.numbers[0];
    if (count < 1) fail(ErrorKind::value, op, ": needs at least 1 part, got ", count);
    return between(x, axis, even_places(extent, count));
  }
  std::vector<std::int64_t> places = {0};
  for (const std::int64_t place : parts.numbers)
    places.push_back(std::clamp<std::int64_t>(place < 0 ? place + extent : place, 0, extent));
  places.push_back(extent);
  return between(x, axis, places);
}

std::vector<Tensor> split_evenly(const Tensor& x, const Parts& parts, int least_rank, int axis,
                                 const char* op) {
  if (x.rank() < least_rank)
    fail(ErrorKind::value, op, ": needs at least ", least_rank, " dimension",
         least_rank == 1 ? "" : "s", ", got ", x.shape());
  if (parts.one && parts.numbers[0] > 0 && x.size(axis) % parts.numbers[0])
    fail(ErrorKind::value, op, ": axis ", axis, " of ", x.shape(), " is no multiple of ",
         parts.numbers[0], " parts; use tensor_split");
  return split_by_places(x, parts, axis, op);
}

}  // namespace

std::vector<Tensor> split(const Tensor& x, const Parts& extents, std::int64_t given_axis) {
  const int axis = normalize_axis(given_axis, x.rank(), "split");
  const std::int64_t whole = x.size(axis);
  if (extents.one) {
    const std::int64_t extent = extents.numbers[0];
    if (extent < 0 || (extent == 0 && whole > 0))
      fail(ErrorKind::value, "split: parts of extent ", extent, " of an axis of ", whole);
    return alike(x, axis, extent);
  }
  std::vector<std::int64_t> places = {0};
  for (const std::int64_t extent : extents.numbers) {
    if (extent < 0) fail(ErrorKind::value, "split: a part's extent is negative: ", extent);
    if (extent > whole - places.back())
      fail(ErrorKind::value, "split: the parts' extents add up to more than ", whole,
           ", the extent of axis ", axis);
    places.push_back(places.back() + extent);
  }
  if (places.back() != whole)
    fail(ErrorKind::value, "split: the parts' extents add up to ", places.back(), ", not to ",
         whole, ", the extent of axis ", axis);
  return between(x, axis, places);
}

std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t given_axis) {
  const int axis = normalize_axis(given_axis, x.rank(), "chunk");
  if (chunks < 1) fail(ErrorKind::value, "chunk: needs at least 1 chunk, got ", chunks);
  const std::int64_t extent = x.size(axis);
  if (extent == 0) return between(x, axis, even_places(0, chunks));
  return alike(x, axis, extent / chunks + (extent % chunks != 0));
}

std::vector<Tensor> tensor_split(const Tensor& x, const Parts& parts, std::int64_t axis) {
  return split_by_places(x, parts, normalize_axis(axis, x.rank(), "tensor_split"), "tensor_split");
}

std::vector<Tensor> hsplit(const Tensor& x, const Parts& parts) {
  return split_evenly(x, parts, 1, x.rank() > 1, "hsplit");
}
std::vector<Tensor> vsplit(const Tensor& x, const Parts& parts) {
  return split_evenly(x, parts, 2, 0, "vsplit");
}
std::vector<Tensor> dsplit(const Tensor& x, const Parts& parts) {
  return split_evenly(x, parts, 3, 2, "dsplit");
}

}  // namespace tw
