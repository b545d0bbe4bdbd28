// Intrusive reference counting. Counts are plain integers: headers (tensors, nodes) are touched by
// one thread at a time, the holder of Python's global lock; worker threads see raw pointers only.
#pragma once
#include <cstdint>
#include <utility>

namespace tw {

struct Counted {
  mutable std::uint32_t references = 0;
};

// T derives from Counted and has a static `void destroy(T*)`.
template <class T> class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* object) : object_(object) { retain(); }
  Ref(const Ref& other) : object_(other.object_) { retain(); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(const Ref& other) noexcept { return *this = Ref(other); }
  Ref& operator=(Ref&& other) noexcept {
    Ref before(adopt(std::exchange(object_, std::exchange(other.object_, nullptr))));
    return *this;
  }
  ~Ref() {
    if (object_) release();
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const Ref& other) const { return object_ == other.object_; }
  void reset() { Ref().swap(*this); }
  void swap(Ref& other) noexcept { std::swap(object_, other.object_); }
  // Gives up ownership without touching the count; `adopt` is the counterpart.
  T* leak() { return std::exchange(object_, nullptr); }
  static Ref adopt(T* object) {
    Ref ref;
    ref.object_ = object;
    return ref;
  }

 private:
  void retain() const {
    if (object_) ++object_->references;
  }
  [[gnu::noinline]] void release() {
    if (--object_->references == 0) T::destroy(object_);
  }
  T* object_ = nullptr;
};

}  // namespace tw
