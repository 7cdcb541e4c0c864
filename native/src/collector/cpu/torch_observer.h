// Observes torch operators through at::RecordFunction, found by symbol: no headers, no linking.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace proton {

/// The observer of the process. Call with the library loaded and from one thread at a time.
class TorchObserver {
public:
  static TorchObserver &instance();

  /// True when libtorch is loaded and has the symbols.
  bool find_symbols();
  /// Once `find_symbols` was true. `reads_scope`: a probe saw `tells_scope` on everything, which
  /// makes observing cheaper.
  void install(bool reads_scope);
  void remove();
  bool installed() const { return installed_ != 0; }

  /// What a probe saw: an operator of one of torch's kinds.
  struct Seen {
    const char *kind = ""; ///< "operator", "backward" or "user"
    std::string name;
    bool tells_scope = false; ///< the kind is read from the operator itself, too
    bool has_ended = false;
  };
  /// Observes into a list instead, to see whether this libtorch has the layouts of ours. If it has
  /// others, that may crash: probe in a separate process. [symbols found]
  void begin_probe();
  std::vector<Seen> end_probe();

private:
  struct Callback;
  void add(std::initializer_list<Callback> kinds);
  static constexpr uint32_t kCallbacks = 3;
  uint64_t callbacks_[kCallbacks] = {};
  uint32_t installed_ = 0;
};

/// Build id, in hexadecimal, of the loaded library whose file name starts with `file_name`; "" if
/// it is not loaded or has no build id. Read from memory: the file may have been replaced.
std::string loaded_build_id(const std::string &file_name);

} // namespace proton
