// Which storages were made since a moment, by whatever thread: a recording must not take what came
// to be meanwhile for something that was there before.
#pragma once
#include <unordered_set>

namespace tw {

struct Storage;

// Notes every storage that is made while it lives. The frontend's lock guards it, as it does all
// references.
class Births {
 public:
  Births() : next_(first_) { first_ = this; }
  ~Births();
  Births(const Births&) = delete;
  Births& operator=(const Births&) = delete;

  // An address that was given away twice belongs to the later one, which is new as well.
  bool has(const Storage& storage) const { return made_.contains(&storage); }
  static bool asked() { return first_; }
  static void note(const Storage& storage);

 private:
  static inline Births* first_ = nullptr;  // of all that live
  Births* next_;
  std::unordered_set<const Storage*> made_;
};

}  // namespace tw
