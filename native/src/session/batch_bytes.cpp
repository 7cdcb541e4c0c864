#include "session/batch_bytes.h"

#include "calltree/scope_timeline.h"

namespace proton {

size_t batch_bytes(const EventBatch &batch) noexcept {
  size_t bytes =
      sizeof(EventBatch) + batch.nodes.size() * sizeof(EventNode) +
      batch.events.size() * sizeof(TimelineEvent) + batch.values.size() * sizeof(EventValues) +
      batch.threads.size() * sizeof(EventThread) + batch.counters.size() * sizeof(EventCounter);
  for (const EventValues &values : batch.values)
    for (const auto &[name, text] : values.values)
      bytes += sizeof(name) + sizeof(text) + text.size();
  for (const EventThread &thread : batch.threads)
    bytes += thread.name.size();
  for (const auto &launch : batch.kernel_scopes)
    bytes += sizeof(TimelineLaunch) + launch->programs.size() * sizeof(TimelineProgram) +
             launch->instances.size() * sizeof(TimelineScope);
  return bytes;
}

} // namespace proton
