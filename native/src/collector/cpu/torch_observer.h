// Observes torch operators through at::RecordFunction, found by symbol: no headers, no linking.
#pragma once

#include <cstdint>

namespace proton {

/// The observer of the process. Call with the library loaded and from one thread at a time.
class TorchObserver {
public:
  static TorchObserver &instance();

  /// True when libtorch is loaded and has the three symbols.
  bool find_symbols();
  void install();
  void remove();
  bool installed() const { return callback_ != 0; }
  /// While on, calls whose name is "aten::empty" are counted: one proves the layouts right.
  void self_test(bool on);
  uint64_t self_test_calls() const;

private:
  uint64_t callback_ = 0;
};

} // namespace proton
