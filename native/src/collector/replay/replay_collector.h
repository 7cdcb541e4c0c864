// Feeds a recorded stream to the sink: end-to-end runs without a GPU, and bug reports.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "collector/collector.h"
#include "collector/replay/recording.h"
#include "record/record_sink.h"

namespace proton {

/// Without `manual`, each flush after a start replays the whole stream with its scopes. With
/// `manual`, `launch` takes the next launches under the caller's own scopes, and their device
/// records come at the next flush, from another thread, as from a vendor library.
class ReplayCollector : public Collector {
public:
  /// Throws Error(kFormat) when the file is not a recording.
  ReplayCollector(RecordSink &sink, const std::string &path, bool manual);
  ~ReplayCollector() override;
  ReplayCollector(const ReplayCollector &) = delete;
  ReplayCollector &operator=(const ReplayCollector &) = delete;

  void start() override;
  void flush() override;
  void stop() override;

  /// Replays up to `count` launches; returns how many. [launching thread]
  uint32_t launch(uint32_t count);
  /// Launches not replayed since the last start.
  size_t remaining();

private:
  struct PendingKernel {
    size_t event;
    uint64_t correlation_id;
  };

  void play_all();
  void deliver(const std::vector<PendingKernel> &kernels) const;
  void finish_launch(size_t launch, uint64_t correlation_id);

  RecordSink &sink_;
  Recording recording_;
  bool manual_;
  std::mutex mutex_; ///< guards what follows; the sink is called without it
  bool started_ = false;
  bool played_ = false;
  size_t next_ = 0; ///< event at which the next launch is looked for
  std::vector<PendingKernel> pending_;
};

} // namespace proton
