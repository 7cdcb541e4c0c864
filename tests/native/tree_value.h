// The tree of a session as nested values, in which variants of one kernel are one node.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "record/device.h"
#include "session/session.h"
#include "support/clock.h"
#include "writer/bytes/msgpack_reader.h"

namespace proton {

inline msgpack::Value plain_value(const std::string &text) {
  msgpack::Value value;
  value.type = msgpack::Value::Type::kText;
  value.text = text;
  return value;
}

inline msgpack::Value plain_value(int64_t number) {
  msgpack::Value value;
  value.type = msgpack::Value::Type::kInt;
  value.integer = number;
  return value;
}

inline msgpack::Value plain_value(double number) {
  msgpack::Value value;
  value.type = msgpack::Value::Type::kReal;
  value.real = number;
  return value;
}

template <typename Number> msgpack::Value plain_value(const std::vector<Number> &numbers) {
  msgpack::Value value;
  value.type = msgpack::Value::Type::kArray;
  for (Number number : numbers)
    value.items.push_back(plain_value(number));
  return value;
}

/// Keys of a node: "frame" with "name", "metrics", and "children". Our own columns are left out.
class TreeValue {
public:
  explicit TreeValue(const CallPathTree &tree) : tree_(tree), members_(tree.nodes().size()) {
    std::map<std::tuple<NodeIndex, std::string, FrameKind, int32_t>, NodeIndex> heads;
    std::vector<NodeIndex> head_of(tree.nodes().size(), kRootNode);
    for (NodeIndex index = 0; index < tree.nodes().size(); ++index) {
      const TreeNode &node = tree.nodes()[index];
      if (index != kRootNode) {
        NodeIndex parent = head_of[node.parent];
        std::tuple key(parent, std::string(node.name.text()), node.kind, node.device);
        auto [found, is_new] = heads.try_emplace(key, index);
        head_of[index] = found->second;
        if (is_new)
          children_[parent].push_back(index);
      }
      members_[head_of[index]].push_back(index);
    }
  }

  msgpack::Value root() const { return node(kRootNode); }

private:
  msgpack::Value node(NodeIndex head) const {
    msgpack::Value value;
    value.entries["frame"].entries["name"] =
        plain_value(std::string(tree_.nodes()[head].name.text()));
    value.entries["metrics"].entries = metrics(head);
    std::vector<msgpack::Value> &below = value.entries["children"].items;
    if (auto found = children_.find(head); found != children_.end())
      for (NodeIndex child : found->second)
        below.push_back(node(child));
    return value;
  }

  std::map<std::string, msgpack::Value> metrics(NodeIndex head) const {
    std::map<std::string, msgpack::Value> values;
    std::vector<Device> devices = DeviceTable::instance().list();
    int32_t device = tree_.nodes()[head].device;
    if (device >= 0 && static_cast<size_t>(device) < devices.size()) {
      const Device &its = devices[static_cast<size_t>(device)];
      values["device_id"] = plain_value(std::to_string(its.index));
      values["device_type"] = plain_value(its.kind);
    }
    for (const MetricColumn &column : tree_.metrics().columns()) {
      std::optional<MetricValue> total;
      for (NodeIndex member : members_[head]) {
        if (column.is_own || !column.has(member))
          continue;
        if (total)
          add_value(*total, column.aggregation, column.value(member), column.name);
        else
          total = column.value(member);
      }
      if (total)
        values[column.name] =
            std::visit([](const auto &each) { return plain_value(each); }, *total);
    }
    return values;
  }

  const CallPathTree &tree_;
  std::map<NodeIndex, std::vector<NodeIndex>> children_; ///< of heads, in order
  std::vector<std::vector<NodeIndex>> members_;          ///< by head
};

/// The root. Throws Error(kSession) where there is no such phase.
inline msgpack::Value tree_value(Session &session, uint32_t phase = 0) {
  session.row_count(phase);
  SessionCopy copy;
  session.try_copy(monotonic_ns() + 10'000'000'000, {}, copy);
  for (const PhaseCopy &each : copy.phases)
    if (each.phase == phase)
      return TreeValue(each.tree).root();
  return TreeValue(CallPathTree()).root();
}

/// In pre-order {"name":"k","count":1,"device_id":"0"}, metrics by name.
inline std::string tree_text(const msgpack::Value &node) {
  std::string text = "{\"name\":\"" + node["frame"]["name"].text + "\"";
  for (const auto &[name, value] : node["metrics"].entries) {
    bool is_text = value.type == msgpack::Value::Type::kText;
    bool is_real = value.type == msgpack::Value::Type::kReal;
    text += ",\"" + name + "\":";
    text += is_text   ? "\"" + value.text + "\""
            : is_real ? std::to_string(value.real)
                      : std::to_string(value.integer);
  }
  text += "}";
  for (const msgpack::Value &child : node["children"].items)
    text += tree_text(child);
  return text;
}

inline std::string tree_text(Session &session, uint32_t phase = 0) {
  return tree_text(tree_value(session, phase));
}

} // namespace proton
