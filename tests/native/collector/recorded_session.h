// A session of a collector of GPUs on doubles, and what it recorded.
#pragma once

#include <string>

#include "aggregate/consumer/aggregator.h"
#include "context/thread/host_range.h"
#include "session/session_registry.h"
#include "support/error.h"
#include "tree_value.h"
#include "writer/bytes/msgpack_reader.h"

namespace proton {

/// Text of the error that a start ends in; empty for none.
template <typename GpuCollector, typename Options>
std::string error_of_starting(const Options &options) {
  GpuCollector collector(Aggregator::instance(), options);
  try {
    collector.start();
  } catch (const Error &error) {
    return error.what();
  }
  collector.stop();
  return "";
}

inline bool holds(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos;
}

/// Started by the constructor and stopped by the destructor, if not before.
template <typename GpuCollector> class RecordedSession {
public:
  template <typename Options>
  explicit RecordedSession(Options options)
      : collector(Aggregator::instance(), std::move(options)) {
    collector.start();
    core = sessions().add(ContextSource::kShadow, false);
    core->activate();
  }
  ~RecordedSession() {
    if (is_running_)
      stop();
    core->remove();
  }

  static SessionRegistry &sessions() { return SessionRegistry::instance(); }
  void stop() {
    core->deactivate();
    collector.stop();
    is_running_ = false;
  }
  RecordCounts counts() const { return core->counts(); }
  /// Sum of all losses, whatever their reason.
  uint64_t lost() const {
    uint64_t sum = 0;
    for (const auto &[reason, count] : core->losses())
      sum += count;
    return sum;
  }
  /// "reason=count " of each.
  std::string losses() const {
    std::string text;
    for (const auto &[reason, count] : core->losses())
      text += reason + "=" + std::to_string(count) + " ";
    return text;
  }
  uint64_t lost(const std::string &reason) const {
    auto losses = core->losses();
    auto found = losses.find(reason);
    return found == losses.end() ? 0 : found->second;
  }
  /// Every node with its count, in pre-order: "outer/kernel=3 ".
  std::string tree(const char *metric = "count", uint32_t phase = 0) const {
    msgpack::Value root = tree_value(*core, phase);
    std::string text;
    for (const msgpack::Value &child : root["children"].items)
      describe(child, "", metric, text);
    return text;
  }

  GpuCollector collector;
  std::shared_ptr<Session> core;

private:
  static void describe(const msgpack::Value &node, const std::string &above, const char *metric,
                       std::string &text) {
    std::string path = above + node["frame"]["name"].text;
    if (node["metrics"].entries.contains(metric))
      text += path + "=" + std::to_string(node["metrics"][metric].integer) + " ";
    for (const msgpack::Value &child : node["children"].items)
      describe(child, path + "/", metric, text);
  }
  bool is_running_ = true;
};

/// A scope of the calling thread.
class ScopeGuard {
public:
  explicit ScopeGuard(const char *name) : now_(session_state()) {
    if (now_.active)
      open_scope(hashed(name), FrameKind::kScope, now_);
  }
  ~ScopeGuard() {
    if (now_.active)
      close_top(session_state());
  }
  ScopeGuard(const ScopeGuard &) = delete;
  ScopeGuard &operator=(const ScopeGuard &) = delete;

private:
  SessionState now_;
};

} // namespace proton
