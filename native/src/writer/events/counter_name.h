// What the name of a counter says: "SM clock (MHz)" has the unit "MHz".
#pragma once

#include <string_view>
#include <utility>

namespace proton {

/// The unit is empty if the name has none; the quantity is then the whole name.
inline std::pair<std::string_view, std::string_view> quantity_and_unit(std::string_view name) {
  size_t open = name.rfind(" (");
  if (open == std::string_view::npos || !name.ends_with(')'))
    return {name, {}};
  return {name.substr(0, open), name.substr(open + 2, name.size() - open - 3)};
}

} // namespace proton
