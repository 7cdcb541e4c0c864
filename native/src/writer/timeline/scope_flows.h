// Arrows as upstream draws them: from the scope of a launch to the work that ran.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

namespace proton {

/// Joins launches with the innermost scope around their call, and with their work. Scopes, launches
/// and work come in any order; `settle` draws the arrows whose three parts are known.
class ScopeFlows {
public:
  struct Arrow {
    uint64_t scope = 0; ///< number; arrows that leave one scope share it
    int64_t from_row = 0;
    int64_t from_ns = 0;
    int64_t to_row = 0;
    int64_t to_ns = 0;
  };

  void add_launch(uint64_t launch, int64_t thread, int64_t at_ns) {
    launches_.push_back({launch, thread, at_ns});
  }
  void add_scope(uint64_t scope, int64_t row, int64_t thread, int64_t start_ns, int64_t end_ns) {
    scopes_.push_back({scope, row, thread, start_ns, end_ns});
  }
  /// Call for each row by ascending time.
  void add_work(uint64_t launch, int64_t row, int64_t start_ns, bool is_of_graph) {
    work_.push_back({launch, row, start_ns, is_of_graph});
  }
  /// Work outside of any scope has no arrow, nor have nodes of a graph that follow another one on a
  /// row.
  std::vector<Arrow> settle();

private:
  /// Launches that wait for the end of a scope, or for their work; the oldest are dropped.
  static constexpr size_t kMaxWaiting = size_t{1} << 19;

  struct Launch {
    uint64_t launch = 0;
    int64_t thread = 0;
    int64_t at_ns = 0;
  };
  struct Scope {
    uint64_t number = 0;
    int64_t row = 0;
    int64_t thread = 0;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
  };
  struct Work {
    uint64_t launch = 0;
    int64_t row = 0;
    int64_t start_ns = 0;
    bool is_of_graph = false;
  };

  void claim();
  void trim();

  std::vector<Launch> launches_;
  std::vector<Scope> scopes_;
  std::vector<Work> work_;
  std::unordered_map<int64_t, std::multimap<int64_t, uint64_t>> waiting_; ///< by thread, by time
  std::unordered_map<uint64_t, Scope> claimed_;                           ///< by launch
  std::deque<Launch> oldest_;
  std::unordered_map<int64_t, uint64_t> newest_; ///< scope of each row's last arrow, plus 1
};

} // namespace proton
