// Columns of a session's tree that only `.proton` files show.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "session/session.h"
#include "support/clock.h"

namespace proton {

/// The tree of a phase as it is now.
inline CallPathTree tree_of(Session &session, uint32_t phase = 0) {
  SessionCopy copied;
  session.try_copy(monotonic_ns() + 1'000'000'000, {}, copied);
  for (PhaseCopy &each : copied.phases)
    if (each.phase == phase)
      return std::move(each.tree);
  return {};
}

inline int64_t own_value(const CallPathTree &tree, const std::string &metric, NodeIndex node) {
  for (const MetricColumn &column : tree.metrics().columns())
    if (column.name == metric && column.has(node))
      return column.ints[node];
  return 0;
}

/// Over all rows.
inline int64_t own_sum(const CallPathTree &tree, const std::string &metric) {
  int64_t sum = 0;
  for (NodeIndex node = 0; node < tree.nodes().size(); ++node)
    sum += own_value(tree, metric, node);
  return sum;
}

/// Of each row with a value other than 0, by name: "name=value ".
inline std::string own_rows(const CallPathTree &tree, const std::string &metric) {
  std::set<std::string> rows;
  for (NodeIndex node = 0; node < tree.nodes().size(); ++node)
    if (int64_t value = own_value(tree, metric, node))
      rows.insert(std::string(tree.nodes()[node].name.text()) + "=" + std::to_string(value) + " ");
  std::string text;
  for (const std::string &row : rows)
    text += row;
  return text;
}

} // namespace proton
