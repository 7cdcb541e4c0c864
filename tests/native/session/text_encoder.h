// A format for tests: one line per thing, so that a file shows what was encoded and in which order.
#pragma once

#include <memory>
#include <semaphore>
#include <string>

#include "session/trace_stream.h"

/// Lines "begin", "node NAME", "event START-END" and "end PROFILE"; the tail is "tail".
class TextEncoder : public proton::TraceEncoder {
public:
  void begin(const proton::TraceFacts &facts, std::string &out) override {
    out += "begin " + std::to_string(facts.process_id) + '\n';
  }
  void add(const proton::EventBatch &batch, std::string &out) override {
    for (const proton::EventNode &node : batch.nodes)
      out += "node " + std::string(node.name.text()) + '\n';
    for (const proton::TimelineEvent &event : batch.events)
      out += "event " + std::to_string(event.start_ns) + '\n';
  }
  void flush(std::string &) override {}
  std::string_view tail() const override { return "tail"; }
  void end(const proton::TraceEnd &end, std::string &out) override {
    out.append("end ").append(end.profile ? end.profile() : "").append("\n");
  }
};

/// Encodes nothing until it is let go on.
class SlowEncoder : public TextEncoder {
public:
  explicit SlowEncoder(std::shared_ptr<std::counting_semaphore<>> gate) : gate_(std::move(gate)) {}
  void add(const proton::EventBatch &batch, std::string &out) override {
    gate_->acquire();
    TextEncoder::add(batch, out);
  }

private:
  std::shared_ptr<std::counting_semaphore<>> gate_;
};

inline proton::EventBatch batch_of(std::initializer_list<int64_t> starts, const char *node = "") {
  proton::EventBatch batch;
  if (*node)
    batch.nodes.push_back({0, proton::Name(node), proton::FrameKind::kScope});
  for (int64_t start : starts) {
    proton::TimelineEvent event;
    event.start_ns = start;
    batch.events.push_back(event);
  }
  return batch;
}
