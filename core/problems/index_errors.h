// Who indexes, and how each device tells of an index that is out of range.
#pragma once
#include <cstdint>
#include <string>

#include "core/runtime/op.h"

namespace tw {

// Ops whose index says for each element where it lies along one axis. `first` is the first one.
#define TW_ALONG_USERS(first, user)                                                        \
  first(gather) user(take_along_axis) user(scatter) user(scatter_add) user(scatter_reduce) \
      user(index_select) user(index_add) user(index_copy) user(index_fill) user(masked_scatter)
enum class AlongUser : std::uint8_t {
#define TW_USER(name) name,
  TW_ALONG_USERS(TW_USER, TW_USER)
#undef TW_USER
};
// Raises IndexError; ValueError of a mask, whose elements are counted.
[[noreturn, gnu::cold]] void fail_along(AlongUser user, std::int64_t index, std::int64_t axis,
                                        std::int64_t size);

// Those whose indices are places along an axis, or classes, or places in a channel.
#define TW_INDEX_USERS(first, user) \
  first(index) user(one_hot) user(nll_loss) user(cross_entropy) user(max_unpool)
enum class Indexing : std::uint8_t {
#define TW_USER(name) name,
  TW_INDEX_USERS(TW_USER, TW_USER)
#undef TW_USER
};
// `axis`: kNone where there is none.
[[noreturn, gnu::cold]] void fail_index(Indexing user, const std::string& index, std::int64_t axis,
                                        std::int64_t extent);

// The attribute `user` of a signature.
#define TW_FIRST_USER(name) "'" #name "'"
#define TW_OTHER_USER(name) " | '" #name "'"
#define TW_ALONG_USER "user: " TW_ALONG_USERS(TW_FIRST_USER, TW_OTHER_USER)
#define TW_INDEX_USER "user: " TW_INDEX_USERS(TW_FIRST_USER, TW_OTHER_USER)

}  // namespace tw
