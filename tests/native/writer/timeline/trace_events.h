// Events, and files that encoders make of them, for tests.
#pragma once

#include <string>
#include <vector>

#include "record/device.h"
#include "writer/timeline/trace_encoder.h"

namespace trace_sample {

using namespace proton;

inline constexpr int64_t kUnixOffsetNs = 1'790'000'000'000'000'000;

inline TraceFacts facts() {
  TraceFacts facts;
  facts.unix_offset_ns = kUnixOffsetNs;
  facts.start_ns = 1000;
  facts.process_id = 4711;
  facts.process_name = "train.py";
  facts.host = "gpu7";
  facts.rank = 3;
  facts.local_rank = 1;
  facts.world_size = 8;
  return facts;
}

inline int32_t gpu(int32_t index = 0) { return DeviceTable::instance().find_or_add("CUDA", index); }

inline TimelineEvent scope(uint32_t node, int64_t start_ns, int64_t end_ns, uint32_t thread = 0) {
  TimelineEvent event;
  event.node = node;
  event.start_ns = start_ns;
  event.end_ns = end_ns;
  event.track = thread;
  return event;
}

inline TimelineEvent launch(uint32_t node, int64_t start_ns, int64_t end_ns, uint64_t id,
                            uint32_t thread = 0) {
  TimelineEvent event = scope(node, start_ns, end_ns, thread);
  event.kind = EventKind::kLaunch;
  event.launch = id;
  return event;
}

inline TimelineEvent kernel(uint32_t node, int64_t start_ns, int64_t end_ns, uint64_t id = 0,
                            uint32_t stream = 7, int32_t device = gpu()) {
  TimelineEvent event = scope(node, start_ns, end_ns, stream);
  event.kind = EventKind::kKernel;
  event.device = device;
  event.launch = id;
  return event;
}

/// A scope, in which a kernel is launched.
inline EventBatch step_with_a_kernel() {
  EventBatch batch;
  batch.nodes = {{0, Name("step"), FrameKind::kScope}, {1, Name("add"), FrameKind::kKernel}};
  batch.threads = {{0, 4712, "MainThread"}};
  batch.events = {launch(2, 2100, 2200, 9), scope(1, 2000, 2300), kernel(2, 2400, 2900, 9)};
  return batch;
}

/// Batches, each flushed, in one file.
inline std::string encode(TraceFormat format, const std::vector<EventBatch> &batches,
                          const TraceFacts &of = facts(), const TraceEnd &end = {}) {
  auto encoder = make_trace_encoder(format);
  std::string out;
  encoder->begin(of, out);
  for (const EventBatch &batch : batches) {
    encoder->add(batch, out);
    encoder->flush(out);
  }
  encoder->end(end, out);
  return out;
}

} // namespace trace_sample
