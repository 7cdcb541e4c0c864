// Holds a written tree against the names of its kernels, which spell where each was launched.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stress {

/// Whether every kernel below `node` stands where its name says: its path is what its name spells,
/// less the frames that the session did not see. Followers stand below "lead" frames only, and the
/// first scope of each thread below any of these.
class PathCheck {
public:
  template <typename Node> void visit(const Node &node) {
    const std::string &name = node["frame"]["name"].text;
    bool is_kernel = name.starts_with("k:") || name.starts_with("follow:");
    if (is_kernel) {
      ++kernels;
      if (!(name.starts_with("k:") ? is_spelt_by(name) : follows()))
        misplaced.push_back(shown() + name);
    }
    if (name != "ROOT")
      path_.push_back(name);
    for (const Node &child : node["children"].items)
      visit(child);
    if (name != "ROOT")
      path_.pop_back();
  }

  uint64_t kernels = 0;
  std::vector<std::string> misplaced;

private:
  bool is_spelt_by(std::string_view name) const {
    size_t from = 2;
    for (const std::string &frame : path_) {
      if (from == 2 && frame.starts_with("lead"))
        continue; // the thread's first scope was opened below the starting thread's
      size_t found = name.find(frame + "/", from);
      if (found == std::string_view::npos)
        return false;
      from = found + frame.size();
    }
    return true;
  }
  bool follows() const {
    for (const std::string &frame : path_)
      if (!frame.starts_with("lead") && frame != "follow.op")
        return false;
    return true;
  }
  std::string shown() const {
    std::string text;
    for (const std::string &frame : path_)
      text += frame + "/";
    return text;
  }
  std::vector<std::string> path_;
};

} // namespace stress
