// Words as shapes, and the limit of their number.
#include "core/runtime/op.h"

#include "core/base/error.h"

namespace tw {

Dims Words::dims(int i) const {
  Dims out;
  for (const Word extent : list(i)) out.push_back(extent);
  return out;
}

void WordList::fail_full() {
  fail(ErrorKind::value, "an op takes at most ", kCapacity, " numbers in its lists");
}

}  // namespace tw
