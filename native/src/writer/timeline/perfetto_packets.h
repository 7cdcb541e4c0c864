// Packets of one sequence of a Perfetto file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "writer/bytes/proto_bytes.h"
#include "writer/timeline/perfetto_fields.h"
#include "writer/timeline/perfetto_strings.h"

namespace proton {

/// Times are steps from packet to packet, so that they are short; the first packet says from when.
/// They stand at the end of packets, which compress better so.
class PerfettoPackets {
public:
  /// Begins the sequence. `start_ns` is unix time.
  void begin(uint32_t sequence, int64_t start_ns);
  /// Events that name no track stand on this one from now on.
  void stand_on(uint64_t track);
  /// An event with encoded fields of a TrackEvent in three parts.
  void event(int64_t unix_ns, std::string_view head, std::string_view what, std::string_view more);
  /// Those that are new, before the packets that name them.
  void strings(PerfettoStrings &strings);
  /// A packet with one field, a message, that is encoded already.
  void message(uint32_t field, std::string_view fields);

  size_t size() const { return raw_.size(); }
  const std::string &bytes() const { return raw_; }
  void clear() { raw_.clear(); }
  int64_t newest_ns() const { return newest_ns_; } ///< unix time

private:
  void defaults(uint64_t track);

  std::string raw_;
  ProtoBytes proto_{raw_};
  std::string sequence_;  ///< the field
  uint64_t clock_ns_ = 0; ///< time of the newest packet that has one
  int64_t newest_ns_ = 0;
  uint64_t track_ = 0; ///< of events that name none
};

} // namespace proton
