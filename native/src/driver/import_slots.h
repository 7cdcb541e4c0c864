// Calls between libraries of the target: each goes through a slot of the calling library, which
// the loader fills with the address of the function.
#pragma once

#include <string>
#include <vector>

namespace proton {

/// The slots of one loaded library for one function that another library has. Found by names in the
/// library's own tables of the loader: no layout of the target's objects is relied on.
class ImportSlots {
public:
  using Function = void (*)();

  /// Empty where no library is loaded whose file name starts with `file_name`, or where it calls no
  /// function of that symbol.
  static ImportSlots find(const std::string &file_name, const char *symbol);

  bool is_empty() const { return slots_.empty(); }
  /// What the calls reach now. Null where the loader cannot tell.
  Function target() const;
  /// Has the calls reach `replacement` from now on; threads may call meanwhile. False where a slot
  /// cannot be written: those before are put back.
  bool replace(Function replacement);
  /// Puts the earlier targets back. Where another tool took a slot since, it may still call the
  /// replacement, which then stays.
  void restore();
  /// Whether calls may reach the replacement.
  bool is_replaced() const { return replacement_ != nullptr; }

private:
  struct Slot {
    void **place = nullptr;
    bool is_read_only = false; ///< the loader made it so once it was filled
    void *before = nullptr;
  };

  static bool write(const Slot &slot, void *value);

  const void *base_ = nullptr; ///< of the calling library
  std::string path_;
  std::string symbol_;
  std::vector<Slot> slots_;
  Function replacement_ = nullptr;
};

} // namespace proton
