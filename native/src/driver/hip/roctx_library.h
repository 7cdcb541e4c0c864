// libroctx64 opened at run time: the source of ranges where no profiler library reports them.
#pragma once

#include <string>
#include <vector>

#include "driver/hip/roctx_abi.h"
#include "driver/shared_library.h"

namespace proton {

class RoctxLibrary {
public:
  /// Throws Error(kUnavailable) where none of the candidates loads.
  static RoctxLibrary open(const std::vector<LibraryCandidate> &candidates);

  const std::string &path() const { return library_.path(); }
  const std::string &origin() const { return library_.origin(); }
  /// Has the callback called before every operation; null removes it. The library keeps one
  /// callback only. Returns false on failure.
  bool set_callback(roctx::TracerCallback callback) const noexcept;

private:
  SharedLibrary library_;
  roctx::function::RegisterTracerCallback register_callback_ = nullptr;
};

} // namespace proton
