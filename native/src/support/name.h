// Interned, reference-counted names: one copy of each text in the process, freed with its last
// user.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace proton {

namespace detail {
struct NameEntry {
  std::string text;
  std::atomic<uint32_t> references{0};
};
} // namespace detail

/// Shared handle of an interned text; equal texts have equal pointers. Copying is one atomic add.
class Name {
public:
  Name() = default;
  explicit Name(std::string_view text); // [any thread] locks the table
  Name(const Name &other) : entry_(other.entry_) { retain(); }
  Name(Name &&other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  Name &operator=(Name other) noexcept {
    std::swap(entry_, other.entry_);
    return *this;
  }
  ~Name() { release(); }

  std::string_view text() const { return entry_ ? std::string_view(entry_->text) : ""; }
  const void *key() const { return entry_; }
  bool operator==(const Name &other) const { return entry_ == other.entry_; }

private:
  void retain() const {
    if (entry_)
      entry_->references.fetch_add(1, std::memory_order_relaxed);
  }
  void release() noexcept;
  detail::NameEntry *entry_ = nullptr;
};

/// Number of texts now alive; for tests that memory stays flat.
size_t live_name_count();

} // namespace proton
