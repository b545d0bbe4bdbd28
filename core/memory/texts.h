// Texts that stay for as long as the process: what events name. There are few of them: places in a
// program, paths of modules, types and shapes. The same text is always the same object.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tw {

const char* lasting(std::string_view text);

// What a text follows from, as words: it is found again by them without being made.
class TextKey {
 public:
  void add(std::uint64_t word) {
    if (count_ < kCapacity) words_[count_] = word;
    ++count_;
  }
  void add(const void* at) { add(reinterpret_cast<std::uintptr_t>(at)); }
  void add_bytes(const void* bytes, std::size_t size) {
    const std::size_t words = (size + 7) / 8;
    if (static_cast<std::size_t>(count_) + words <= kCapacity) {
      words_[count_ + static_cast<int>(words) - 1] = 0;
      std::memcpy(words_ + count_, bytes, size);
    }
    count_ += static_cast<int>(words);
  }
  template <class Extents> void add_extents(const Extents& extents) {
    add(static_cast<std::uint64_t>(extents.rank()));
    for (const std::int64_t extent : extents) add(static_cast<std::uint64_t>(extent));
  }
  // Null where this thread has not kept it, or the key is too long to be kept.
  const char* find() const;
  const char* keep(std::string_view text) const;

 private:
  struct Entry;
  static constexpr int kCapacity = 64;
  static constexpr int kEntries = 256;
  Entry* place() const;
  int count_ = 0;
  std::uint64_t words_[kCapacity];
};

// `make()` gives the text; called where the key's is not known.
template <class Make> const char* text_of(const TextKey& key, Make&& make) {
  const char* const known = key.find();
  return known ? known : key.keep(make());
}

}  // namespace tw
