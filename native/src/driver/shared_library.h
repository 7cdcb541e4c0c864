// A vendor library opened at run time: the first of several candidates that loads.
#pragma once

#include <string>
#include <vector>

namespace proton {

/// Where a library may be, and how that place was found.
struct LibraryCandidate {
  std::string path;   ///< file, or a bare name for the system's search
  std::string origin; ///< e.g. "PROTON_BENCH_CUPTI_LIB", for messages
  bool only_if_loaded = false;
  bool is_global = false; ///< libraries that are loaded later find its symbols
};

/// Never closed: the library may run threads, and other code of the process may use it.
class SharedLibrary {
public:
  SharedLibrary() = default;
  /// Opens the first candidate that loads. Throws Error(kUnavailable) that says what was tried and
  /// why each one failed; `what` names the library, `advice` is what to do about it.
  static SharedLibrary open(const std::string &what,
                            const std::vector<LibraryCandidate> &candidates,
                            const std::string &advice);

  void *symbol(const char *name) const;
  /// Sets `function` to the symbol; false, and null, when the library lacks it.
  template <typename Function> bool resolve(const char *name, Function &function) const {
    function = reinterpret_cast<Function>(symbol(name));
    return function != nullptr;
  }
  /// The file that was loaded.
  const std::string &path() const { return path_; }
  const std::string &origin() const { return origin_; }
  explicit operator bool() const { return handle_ != nullptr; }

private:
  void *handle_ = nullptr;
  std::string path_;
  std::string origin_;
};

/// Base of the entry points of a library: each is a member of a derived class, which is looked up
/// where it is declared. Null in a table without a library.
class SymbolTable {
public:
  SymbolTable() = default;
  explicit SymbolTable(const SharedLibrary &library) : library_(&library) {}
  /// Throws Error(kUnavailable) that names the symbols which the library lacks, if it lacks any.
  void check(const SharedLibrary &library, const std::string &advice) const;

protected:
  /// Becomes a pointer to any type of function.
  struct Symbol {
    void *address;
    template <typename Function> operator Function *() const {
      return reinterpret_cast<Function *>(address);
    }
  };
  Symbol need(const char *name);
  Symbol find(const char *name) const { return {library_ ? library_->symbol(name) : nullptr}; }

private:
  const SharedLibrary *library_ = nullptr; ///< while the table is made
  std::string missing_;
};

} // namespace proton
