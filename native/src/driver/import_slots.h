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
  /// Has the calls reach `replacement` from now on, for good: another tool that takes the place
  /// later calls it as what it found there. Threads may call meanwhile. False: a slot cannot be
  /// written.
  bool replace(Function replacement);

private:
  struct Slot {
    void **place = nullptr;
    bool is_read_only = false; ///< the loader made it so once it was filled
  };

  static bool write(const Slot &slot, void *value);

  const void *base_ = nullptr; ///< of the calling library
  std::string path_;
  std::string symbol_;
  std::vector<Slot> slots_;
};

} // namespace proton
