#include "core/problems/index_errors.h"

#include "core/base/error.h"

namespace tw {

namespace {

constexpr const char* kAlongUsers[] = {
#define TW_USER(name) #name,
    TW_ALONG_USERS(TW_USER, TW_USER)
#undef TW_USER
};
// What an index is to a user.
const char* shown(Indexing user) {
  switch (user) {
    case Indexing::index: return "index: ";
    case Indexing::one_hot: return "one_hot: index ";
    case Indexing::nll_loss: return "nll_loss: target ";
    case Indexing::cross_entropy: return "cross_entropy: target ";
    case Indexing::max_unpool: return "max_unpool: index ";
  }
  __builtin_unreachable();
}

}  // namespace

void fail_along(AlongUser user, std::int64_t index, std::int64_t axis, std::int64_t size) {
  if (user == AlongUser::masked_scatter)
    fail(ErrorKind::value, "masked_scatter: the mask selects more elements than source has");
  fail(ErrorKind::index, kAlongUsers[static_cast<int>(user)], ": index ", index,
       " is out of range for axis ", axis, " with size ", size);
}

void fail_index(Indexing user, const std::string& index, std::int64_t axis, std::int64_t extent) {
  if (axis == kNone)
    fail(ErrorKind::index, shown(user), index, " is out of range for ", extent,
         user == Indexing::max_unpool ? " elements of a channel" : " classes");
  fail(ErrorKind::index, shown(user), index, " is out of range for axis ", axis, " with size ",
       extent);
}

}  // namespace tw
