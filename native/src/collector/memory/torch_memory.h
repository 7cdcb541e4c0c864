// Memory that torch's allocators of devices give out, as they report it to torch's own profiler.
#pragma once

#include <string>

#include "record/record_sink.h"

namespace proton {

/// The watch of the process over torch's allocators. Each of them calls a function of libc10 for
/// every change, with what it counts itself; the watch takes the place of that function in the
/// allocator's library. The type of the function is in its symbol. One thread at a time uses it.
class TorchMemory {
public:
  static TorchMemory &instance();

  /// Whether torch was loaded with an allocator of a device.
  static bool is_loaded();
  /// Records changes from now on, to the newest sink. False: the library does not call that
  /// function, or it cannot be replaced.
  bool watch(RecordSink &sink);
  /// Records no more; reports go their way through the replacement.
  void unwatch();
};

} // namespace proton
