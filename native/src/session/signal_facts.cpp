#include "session/signal_facts.h"

#include <cstdint>
#include <ctime>
#include <optional>

#include "writer/bytes/msgpack_bytes.h"

namespace proton {
namespace {

constexpr uint8_t kFixMap = 0x80, kFixMapMask = 0xF0, kMap16 = 0xDE, kMap32 = 0xDF;

struct MapHead {
  size_t entries = 0;
  size_t bytes = 0;
};

std::optional<MapHead> read_head(const std::string &encoded) {
  if (encoded.empty())
    return MapHead{};
  auto lead = static_cast<uint8_t>(encoded[0]);
  if ((lead & kFixMapMask) == kFixMap)
    return MapHead{static_cast<size_t>(lead & 0x0F), 1};
  size_t width = lead == kMap16 ? 2 : lead == kMap32 ? 4 : 0;
  if (width == 0 || encoded.size() < 1 + width)
    return std::nullopt;
  size_t entries = 0;
  for (size_t i = 1; i <= width; ++i)
    entries = entries << 8 | static_cast<uint8_t>(encoded[i]);
  return MapHead{entries, 1 + width};
}

int64_t realtime_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

} // namespace

std::string with_signal_facts(const std::string &provenance, const std::string &signal) {
  std::optional<MapHead> head = read_head(provenance);
  if (!head)
    return provenance;
  MsgpackBytes out;
  out.map(head->entries + (signal.empty() ? 1 : 2));
  out.encoded(std::string_view(provenance).substr(head->bytes));
  if (!signal.empty()) {
    out.text("signal");
    out.text(signal);
  }
  out.text("end_time_ns");
  out.integer(realtime_ns());
  return out.take();
}

} // namespace proton
