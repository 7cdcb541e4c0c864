// The open captures that a thread has begun.
#pragma once

#include <cstdint>
#include <vector>

#include "context/thread/graph_capture.h"

namespace proton {

class GraphTable;

/// Owned by a LaunchThread; the graph table's mutex guards it.
class CaptureStack : public OpenCapture {
public:
  bool is_open() noexcept override;
  void add_metrics(uint32_t metrics) noexcept override;

private:
  friend class GraphTable;
  struct Begun {
    const void *stream;
    uint32_t graph;
  };
  GraphTable *table_ = nullptr;
  std::vector<Begun> begun_; ///< innermost last
};

} // namespace proton
