// Recycles objects of one type, so that headers and autograd nodes cost a pointer swap instead of a
// heap call. Not thread-safe, like the reference counts of ref.h.
#pragma once
#include <new>

#include "core/base/optimizations.h"

namespace tw {

template <class T> class FreeList {
 public:
  static void* take() {
    if (Link* link = head_) {
      head_ = link->next;
      --kept_;
      return link;
    }
    return ::operator new(sizeof(T));
  }
  static void give(void* memory) noexcept {
    if (kept_ >= kLimit || is_off_for_all(Optimization::object_free_lists)) [[unlikely]]
      return ::operator delete(memory);
    ++kept_;
    head_ = new (memory) Link{head_};
  }

 private:
  struct Link {
    Link* next;
  };
  // Enough for the tape of a deep network, at about a megabyte a type. Beyond it memory goes back
  // to the C library, which takes several times as long for each of thousands that come at once.
  static constexpr int kLimit = 16384;
  static inline Link* head_ = nullptr;
  static inline int kept_ = 0;
};

}  // namespace tw
