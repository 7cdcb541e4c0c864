// Random bytes and damaged buffers: every block is counted, every record is paired or counted.
#include "check.h"
#include "collector/instrumentation/decoder/host_decoder.h"
#include "collector/instrumentation/decoder/record_buffer.h"

#include <cstdlib>
#include <random>

using namespace proton;

namespace {

using Random = std::mt19937_64;

uint32_t below(Random &random, uint32_t limit) { return static_cast<uint32_t>(random() % limit); }

struct Layouts {
  std::vector<uint32_t> warp_ids;
  BufferLayout layout;

  explicit Layouts(Random &random) {
    layout.warps = 1 + below(random, 8);
    if (below(random, 2) == 0)
      for (uint32_t warp = 0; warp < layout.warps; ++warp)
        if (below(random, 2) == 0)
          warp_ids.push_back(warp);
    layout.warp_ids = warp_ids;
    layout.scopes = below(random, 3) == 0 ? kMaxScopes : below(random, 8);
    layout.has_short_clock = below(random, 2) == 0;
    layout.record_cost_cycles = below(random, 2) * 20;
    layout.scratch_bytes = layout.data_at() + below(random, 40) * 8;
  }
};

std::vector<std::byte> noise(Random &random, size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::byte &byte : bytes)
    byte = static_cast<std::byte>(random());
  return bytes;
}

// A block as a kernel leaves it, then some of its bytes and fields replaced.
std::vector<std::byte> damaged_block(Random &random, const BufferLayout &layout) {
  std::vector<std::byte> block = noise(random, layout.scratch_bytes);
  buffers::put(block, kPreambleAt, kBlockPreamble);
  uint32_t room = (layout.scratch_bytes - layout.data_at()) / (8 * layout.segments());
  buffers::put(block, kCapacityAt, below(random, room + 1) * 8 * layout.segments());
  for (uint32_t warp = 0; warp < layout.warps; ++warp) {
    bool is_absurd = below(random, 8) == 0;
    auto words = is_absurd ? static_cast<uint32_t>(random()) : below(random, 4 * room + 4);
    buffers::put(block, kBlockHeaderBytes + size_t{4} * warp, words);
  }
  switch (below(random, 6)) {
  case 0:
    buffers::put(block, kPreambleAt, below(random, 2));
    break;
  case 1:
    buffers::put(block, kCapacityAt, static_cast<uint32_t>(random()));
    break;
  default:
    break;
  }
  return block;
}

uint64_t blocks(const KernelTotals &totals) {
  return totals.programs + totals.skipped_programs + totals.corrupt_programs;
}

// Exactly as long as its content, so that a sanitizer sees a byte read behind it.
void read_all(const std::vector<std::byte> &bytes, const BufferLayout &layout) {
  KernelTotals totals{}, again{};
  std::vector<ScopeTotals> scopes(layout.scopes, empty_scope_totals());
  reduce(bytes, layout, totals, scopes);
  TimelineRows rows(layout.has_short_clock);
  decode(bytes, layout, rows, again);
  uint64_t pairs = 0;
  for (const ScopeTotals &scope : scopes)
    pairs += scope.count;
  CHECK_EQ(blocks(totals), (bytes.size() + layout.scratch_bytes - 1) / layout.scratch_bytes);
  CHECK_EQ(2 * pairs + totals.unpaired_records, totals.records);
  CHECK_EQ(rows.instances.size(), pairs);
  CHECK_EQ(rows.programs.size(), totals.programs);
  CHECK_EQ(again.records, totals.records);
  CHECK_EQ(again.lost_records, totals.lost_records);
}

int rounds() {
  const char *factor = std::getenv("PROTON_BENCH_STRESS");
  return 1500 * (factor ? std::max(std::atoi(factor), 1) : 1);
}

} // namespace

TEST(random_bytes_are_read_without_harm) {
  Random random(1);
  for (int round = 0; round < rounds(); ++round) {
    Layouts layouts(random);
    if (layouts.layout.fault().empty())
      read_all(noise(random, below(random, 2000)), layouts.layout);
  }
}

TEST(damaged_buffers_are_read_without_harm) {
  Random random(2);
  for (int round = 0; round < rounds(); ++round) {
    Layouts layouts(random);
    const BufferLayout &layout = layouts.layout;
    CHECK_EQ(layout.fault(), "");
    std::vector<std::byte> bytes;
    for (uint32_t program = below(random, 4); program > 0; --program) {
      std::vector<std::byte> block = damaged_block(random, layout);
      bytes.insert(bytes.end(), block.begin(), block.end());
    }
    bytes.resize(bytes.size() - below(random, static_cast<uint32_t>(bytes.size() / 8 + 1)));
    bytes.shrink_to_fit();
    read_all(bytes, layout);
  }
}

TEST(absurd_layouts_read_nothing) {
  Random random(3);
  for (int round = 0; round < rounds(); ++round) {
    BufferLayout layout;
    layout.scratch_bytes = static_cast<uint32_t>(random());
    layout.warps = below(random, 3) == 0 ? static_cast<uint32_t>(random()) : below(random, 1030);
    layout.scopes = below(random, 300);
    std::vector<std::byte> bytes = noise(random, 100);
    if (layout.fault().empty()) {
      read_all(bytes, layout);
      continue;
    }
    KernelTotals totals{};
    std::vector<ScopeTotals> scopes(layout.scopes, empty_scope_totals());
    reduce(bytes, layout, totals, scopes);
    CHECK_EQ(blocks(totals), 0);
  }
}
