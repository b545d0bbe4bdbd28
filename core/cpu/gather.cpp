// Moving rows by index, on raw pointers.
#include "core/cpu/gather.h"

#include <cstring>

#include "core/base/error.h"
#include "core/cpu/convert.h"
#include "core/runtime/thread_pool.h"

namespace tw {

namespace {

// Bytes a thread moves at a time: large enough to hide the hand-over.
constexpr std::int64_t kGrainBytes = 1 << 18;

template <class T> void gather_items(std::int64_t begin, std::int64_t end, const void* x,
                                     const std::int64_t* offsets, void* y) {
  for (std::int64_t i = begin; i < end; ++i)
    static_cast<T*>(y)[i] = static_cast<const T*>(x)[offsets[i]];
}

void gather_range(std::size_t item, std::int64_t row_count, std::int64_t begin, std::int64_t end,
                  const void* x, const std::int64_t* offsets, void* y) {
  if (row_count == 1 && item == 4) return gather_items<std::uint32_t>(begin, end, x, offsets, y);
  if (row_count == 1 && item == 8) return gather_items<std::uint64_t>(begin, end, x, offsets, y);
  const std::size_t row_bytes = static_cast<std::size_t>(row_count) * item;
  for (std::int64_t i = begin; i < end; ++i)
    std::memcpy(static_cast<char*>(y) + i * static_cast<std::int64_t>(row_bytes),
                static_cast<const char*>(x) + offsets[i] * static_cast<std::int64_t>(item),
                row_bytes);
}

}  // namespace

void gather_rows(DType dtype, std::int64_t rows, std::int64_t row_count, const void* x,
                 const std::int64_t* offsets, void* y) {
  const std::size_t item = size_of(dtype);
  const std::int64_t row_bytes = row_count * static_cast<std::int64_t>(item);
  const std::int64_t grain = kGrainBytes / (row_bytes + 1) + 1;
  parallel_ranges(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    gather_range(item, row_count, begin, end, x, offsets, y);
  });
}

void scatter_rows(DType dtype, std::int64_t rows, std::int64_t row_count, const void* x,
                  const std::int64_t* offsets, void* y) {
  const std::int64_t item = static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t row_bytes = row_count * item;
  for (std::int64_t i = 0; i < rows; ++i)
    std::memcpy(static_cast<char*>(y) + offsets[i] * item,
                static_cast<const char*>(x) + i * row_bytes, static_cast<std::size_t>(row_bytes));
}

void scatter_add_rows(DType dtype, std::int64_t rows, std::int64_t row_count, const void* x,
                      const std::int64_t* offsets, void* y) {
  visit(dtype, [&](auto sample) {
    using T = decltype(sample);
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      for (std::int64_t i = 0; i < rows; ++i) {
        T* to = static_cast<T*>(y) + offsets[i];
        const T* from = static_cast<const T*>(x) + i * row_count;
        for (std::int64_t j = 0; j < row_count; ++j) to[j] = static_cast<T>(to[j] + from[j]);
      }
    } else {
      fail(ErrorKind::type, "scatter_add: no kernel for ", name_of(dtype));
    }
  });
}

}  // namespace tw
