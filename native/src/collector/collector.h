// A native source of records. A process has one of each kind; sessions share it.
#pragma once

namespace proton {

class Collector {
public:
  virtual ~Collector() = default;
  /// Begins to emit records. Throws Error(kUnavailable) when the source does not work here.
  virtual void start() = 0;
  /// Returns when every record of work that has ended is handed over.
  virtual void flush() = 0;
  /// Stops emitting and releases the source; `start` may follow.
  virtual void stop() = 0;
};

} // namespace proton
