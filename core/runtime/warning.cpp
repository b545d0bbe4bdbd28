// Warnings about silent slow paths, shown once each.
#include "core/runtime/warning.h"

#include <cstdio>
#include <mutex>
#include <set>

#include "core/base/fork.h"

namespace tw {

namespace {

void print(const std::string& text) { std::fprintf(stderr, "tilewright: %s\n", text.c_str()); }

void (*sink)(const std::string&) = print;

std::mutex mutex;  // guards what was shown
const AtFork guarded(ForkOrder::warnings, [] { mutex.lock(); }, [] { mutex.unlock(); });

}  // namespace

void warn_once(const std::string& key, const std::string& text) {
  static std::set<std::string> seen;
  {
    const std::lock_guard lock(mutex);
    if (!seen.insert(key).second) return;
  }
  sink(text);
}

void set_warning_sink(void (*new_sink)(const std::string&)) { sink = new_sink; }

}  // namespace tw
