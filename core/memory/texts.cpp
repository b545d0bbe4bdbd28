#include "core/memory/texts.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "core/base/fork.h"

namespace tw {

namespace {

struct Texts {
  std::mutex mutex;
  std::unordered_set<std::string> all;
};
// Never destroyed: threads may outlive the end of the program.
Texts& texts() {
  static Texts* const instance = new Texts;
  return *instance;
}
const AtFork guarded(
    ForkOrder::texts, [] { texts().mutex.lock(); }, [] { texts().mutex.unlock(); });

}  // namespace

const char* lasting(std::string_view text) {
  if (text.empty()) return "";
  Texts& known = texts();
  const std::lock_guard lock(known.mutex);
  return known.all.emplace(text).first->c_str();
}

struct TextKey::Entry {
  TextKey key;
  const char* text = nullptr;
};

TextKey::Entry* TextKey::place() const {
  if (count_ > kCapacity) return nullptr;
  static thread_local std::unique_ptr<Entry[]> entries;
  if (!entries) entries.reset(new Entry[kEntries]);
  std::uint64_t hash = 0;
  for (int i = 0; i < count_; ++i) hash = (hash ^ words_[i]) * 0x9e3779b97f4a7c15u;
  return &entries[hash >> 56];
}

const char* TextKey::find() const {
  const Entry* const entry = place();
  if (!entry || !entry->text || entry->key.count_ != count_) return nullptr;
  return std::equal(words_, words_ + count_, entry->key.words_) ? entry->text : nullptr;
}

const char* TextKey::keep(std::string_view text) const {
  const char* const kept = lasting(text);
  if (Entry* const entry = place()) {
    entry->key.count_ = count_;
    std::copy(words_, words_ + count_, entry->key.words_);
    entry->text = kept;
  }
  return kept;
}

}  // namespace tw
