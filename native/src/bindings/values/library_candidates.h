// Places of a vendor's library, as Python lists them.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "driver/shared_library.h"

namespace proton {

/// Path, origin, and whether the library counts only if it is loaded already.
using ListedCandidate = std::tuple<std::string, std::string, bool>;

inline std::vector<LibraryCandidate> make_candidates(const std::vector<ListedCandidate> &listed) {
  std::vector<LibraryCandidate> candidates;
  for (const auto &[path, origin, only_if_loaded] : listed)
    candidates.push_back({path, origin, only_if_loaded});
  return candidates;
}

} // namespace proton
