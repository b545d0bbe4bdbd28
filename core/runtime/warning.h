// Warnings about silent slow paths, shown once each.
#pragma once
#include <string>

namespace tw {

// Passes `text` to the frontend the first time `key` is seen in this process. May raise, when the
// frontend turns warnings into errors.
void warn_once(const std::string& key, const std::string& text);
// Installed by the frontend; without one, warnings go to standard error.
void set_warning_sink(void (*sink)(const std::string& text));

}  // namespace tw
