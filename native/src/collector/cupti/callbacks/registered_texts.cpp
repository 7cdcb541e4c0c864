#include "collector/cupti/callbacks/registered_texts.h"

#include <utility>

namespace proton {

void RegisteredTexts::add(const void *handle, std::string text) {
  std::lock_guard lock(mutex_);
  if (texts_.size() < kMost || texts_.contains(handle))
    texts_.insert_or_assign(handle, std::move(text));
}

std::string RegisteredTexts::find(const void *handle) const {
  std::lock_guard lock(mutex_);
  auto found = texts_.find(handle);
  return found == texts_.end() ? std::string() : found->second;
}

} // namespace proton
