// What kernels wrote into a buffer: every block is counted, every record is paired or counted. The
// first 16 bytes are its layout.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "collector/instrumentation/decoder/host_decoder.h"

using namespace proton;

namespace {

struct Head {
  uint32_t scratch_bytes = 0;
  uint32_t warps = 0;
  uint32_t scopes = 0;
  uint32_t flags = 0; ///< bit 0: short clock; the others: which warps write, none for all
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Head head;
  if (size < sizeof head)
    return 0;
  std::memcpy(&head, data, sizeof head);
  std::vector<uint32_t> warp_ids;
  for (uint32_t bit = 1; bit < 32; ++bit)
    if ((head.flags >> bit & 1) != 0)
      warp_ids.push_back(bit - 1);
  BufferLayout layout;
  layout.scratch_bytes = head.scratch_bytes;
  layout.warps = head.warps;
  layout.scopes = head.scopes;
  layout.warp_ids = warp_ids;
  layout.has_short_clock = (head.flags & 1) != 0;
  if (!layout.fault().empty())
    return 0;
  auto first = reinterpret_cast<const std::byte *>(data) + sizeof head;
  std::vector<std::byte> bytes(first, first + (size - sizeof head));
  KernelTotals totals{}, again{};
  std::vector<ScopeTotals> scopes(layout.scopes, empty_scope_totals());
  reduce(bytes, layout, totals, scopes);
  TimelineRows rows(layout.has_short_clock);
  decode(bytes, layout, rows, again);
  uint64_t pairs = 0;
  for (const ScopeTotals &scope : scopes)
    pairs += scope.count;
  if (rows.instances.size() != pairs || 2 * pairs + totals.unpaired_records != totals.records ||
      again.records != totals.records || again.lost_records != totals.lost_records)
    std::abort();
  return 0;
}
