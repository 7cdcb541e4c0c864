// Strings that a Perfetto file holds once and names by number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "support/name.h"
#include "writer/events/event_nodes.h"

namespace proton {

/// Numbers count from 1 in each kind. Those that are new since `take_new` must stand in the file
/// before the packet that uses them.
class PerfettoStrings {
public:
  explicit PerfettoStrings(const EventNodes &nodes) : nodes_(nodes) {}

  uint32_t event_name(const Name &name);
  /// Of the call that launched what is so called.
  uint32_t launch_name(const Name &name);
  uint32_t annotation_name(const Name &name);
  uint32_t annotation_name(std::string_view name) { return annotation_name(Name(name)); }
  /// The call path of a node, as a value of annotations.
  uint32_t call_stack(uint32_t node);
  void add_category(uint32_t iid, std::string_view name);

  bool has_new() const { return !new_.empty(); }
  /// The fields of an InternedData.
  std::string take_new();

private:
  struct NameHash {
    size_t operator()(const Name &name) const noexcept {
      return std::hash<const void *>()(name.key());
    }
  };
  using Numbers = std::unordered_map<Name, uint32_t, NameHash>;

  uint32_t intern(Numbers &numbers, uint32_t field, const Name &name);
  void add(uint32_t field, uint32_t iid, std::string_view text);

  const EventNodes &nodes_;
  Numbers event_names_;
  Numbers launch_names_;
  Numbers annotation_names_;
  uint32_t event_name_count_ = 0;                      ///< of events and launches
  std::unordered_map<uint32_t, uint32_t> call_stacks_; ///< by node
  std::string new_;
};

} // namespace proton
