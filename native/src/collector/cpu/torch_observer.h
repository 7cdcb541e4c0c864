// Observes torch operators through at::RecordFunction, found by symbol: no headers, no linking.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace proton {

/// The observer of the process. Call with the library loaded and from one thread at a time.
class TorchObserver {
public:
  static TorchObserver &instance();

  /// True when libtorch is loaded and has the symbols.
  bool find_symbols();
  /// What a probe found out of this libtorch's records of operators.
  struct Layout {
    bool reads_scope = false;       ///< it saw `tells_scope` on everything: observing is cheaper
    uint32_t node_offset = 0;       ///< of the number of a backward node, bytes; 0: unknown
    uint32_t fwd_thread_offset = 0; ///< of the number of the thread that made it; 0: unknown
  };
  /// Who wants to see operators, as flags.
  enum Client : uint8_t {
    kTimes = 1,
    kOpFrames = 2,
    kLayers = 4,
    kInputs = 8,
    kCollectives = 16,
  };
  /// Observes what the clients want together. False where libtorch is not loaded, or lacks the
  /// symbols.
  bool attach(Client client, const Layout &layout);
  void detach(Client client);
  bool installed() const { return installed_ != 0; }
  /// Has libtorch show the calling thread's operators to its observers, or not. Returns what it did
  /// before; empty, and nothing changes, where it lacks the symbols.
  std::optional<bool> enable_records(bool enabled);

  /// What a probe saw: an operator of one of torch's kinds.
  struct Seen {
    const char *kind = ""; ///< "operator", "backward" or "user"
    std::string name;
    bool tells_scope = false;    ///< the kind is read from the operator itself, too
    std::vector<uint64_t> words; ///< of a backward operator: its memory, from the first byte
    uint64_t thread = 0;         ///< as libtorch numbers it: where it was seen
    bool has_ended = false;
  };
  /// Called where an operator begins, with its name and the operator.
  using Visit = std::function<void(const char *, const void *)>;
  /// Observes into a list instead, to see whether this libtorch has the layouts of ours. If it has
  /// others, that may crash: probe in a separate process. `visit` must not throw. [symbols found]
  void begin_probe(Visit visit);
  std::vector<Seen> end_probe();

private:
  void keep(std::initializer_list<uint64_t> callbacks);
  void observe();
  void observe_operators(uint8_t clients);
  void stop();
  uint8_t clients_ = 0;
  Layout layout_;
  static constexpr uint32_t kCallbacks = 4;
  uint64_t callbacks_[kCallbacks] = {};
  uint32_t installed_ = 0;
};

/// Build id, in hexadecimal, of the loaded library whose file name starts with `file_name`; "" if
/// it is not loaded or has no build id. Read from memory: the file may have been replaced.
std::string loaded_build_id(const std::string &file_name);

} // namespace proton
