#include "collector/instrumentation/decoder/host_decoder.h"

#include "check.h"
#include "collector/instrumentation/decoder/record_buffer.h"

using namespace proton;
using buffers::end;
using buffers::Program;
using buffers::start;

namespace {

struct Seen final : BufferVisitor {
  std::vector<ScopeInstance> instances;
  std::vector<BlockHeader> programs;
  void begin_program(const BlockHeader &header) override { programs.push_back(header); }
  void instance(const BlockHeader &, const ScopeInstance &found) override {
    instances.push_back(found);
  }
};

struct Decoded {
  Seen seen;
  KernelTotals totals{};
};

Decoded decode_bytes(const std::vector<std::byte> &bytes, const BufferLayout &layout) {
  Decoded decoded;
  decode(bytes, layout, decoded.seen, decoded.totals);
  return decoded;
}

BufferLayout layout_of(uint32_t warps, uint32_t scopes = 4) {
  BufferLayout layout;
  layout.scratch_bytes = 1024;
  layout.warps = warps;
  layout.scopes = scopes;
  return layout;
}

Decoded decode_warp(std::vector<buffers::Record> records, uint32_t slots = 16,
                    BufferLayout layout = layout_of(1)) {
  Program program;
  program.segments = {std::move(records)};
  return decode_bytes(buffers::block(layout, program, slots), layout);
}

std::vector<std::byte> hex(const char *text) {
  std::vector<std::byte> bytes;
  for (; *text != 0; ++text) {
    if (*text == ' ')
      continue;
    const char digits[3] = {text[0], text[1], 0};
    bytes.push_back(static_cast<std::byte>(std::strtoul(digits, nullptr, 16)));
    ++text;
  }
  return bytes;
}

} // namespace

// Upstream's vector: SingleEvent of its CircularLayoutParserTest.
TEST(a_block_of_one_warp_with_a_count_above_its_capacity) {
  BufferLayout layout = layout_of(1, 5);
  layout.scratch_bytes = 60;
  Decoded decoded =
      decode_bytes(hex("efbeadde 01000000 03000000 10000000 efcdab8967452301 1032547698badcfe "
                       "0807060504030201 ff000000 0000000200100000 0000008200200000"),
                   layout);
  CHECK_EQ(decoded.totals.programs, 1);
  CHECK_EQ(decoded.seen.programs.at(0).program, 1);
  CHECK_EQ(decoded.seen.programs.at(0).processor, 3);
  CHECK_EQ(decoded.seen.programs.at(0).init_ns, 0x0123456789abcdefu);
  CHECK_EQ(decoded.seen.programs.at(0).pre_final_ns, 0xfedcba9876543210u);
  CHECK_EQ(decoded.seen.programs.at(0).post_final_ns, 0x0102030405060708u);
  CHECK_EQ(decoded.totals.records, 2);
  CHECK_EQ(decoded.totals.lost_records, 125);
  // 127 records in 2 slots: the newest stands in slot 0 and the oldest kept one, an end, in slot 1.
  CHECK_EQ(decoded.totals.unpaired_records, 2);
}

TEST(the_same_block_with_a_count_that_fits) {
  BufferLayout layout = layout_of(1, 5);
  layout.scratch_bytes = 60;
  Decoded decoded =
      decode_bytes(hex("efbeadde 01000000 03000000 10000000 efcdab8967452301 1032547698badcfe "
                       "0807060504030201 04000000 0000000200100000 0000008200200000"),
                   layout);
  CHECK_EQ(decoded.seen.instances.size(), 1);
  CHECK_EQ(decoded.seen.instances.at(0).scope, 4);
  CHECK_EQ(decoded.seen.instances.at(0).start_clock, 4096);
  CHECK_EQ(decoded.seen.instances.at(0).cycles, 4096);
}

// Upstream's vector: Decode of its DecoderTest.
TEST(a_record_has_eleven_high_bits_of_the_clock) {
  Decoded decoded = decode_warp({start(0, 0x1FFFFFFFE), end(0, 0x1FFFFFFFF)});
  CHECK_EQ(decoded.seen.instances.at(0).end_clock, 8589934591);
  CHECK_EQ(buffers::encoded(end(0, 0x1FFFFFFFF)), 0xFFFFFFFF80000001u);
}

TEST(overlapping_scopes_pair_by_their_id) {
  Decoded decoded =
      decode_warp({start(0, 1), start(1, 2), start(2, 4), end(1, 8), end(0, 16), end(2, 32)});
  CHECK_EQ(decoded.seen.instances.size(), 3);
  CHECK_EQ(decoded.seen.instances.at(0).cycles, 6);
  CHECK_EQ(decoded.seen.instances.at(1).cycles, 15);
  CHECK_EQ(decoded.seen.instances.at(2).cycles, 28);
  CHECK_EQ(decoded.totals.unpaired_records, 0);
}

// Upstream's loop.bin has this form: 20 times the scope in segments for 8 records.
TEST(a_wrapped_segment_keeps_its_newest_records) {
  std::vector<buffers::Record> records;
  for (uint64_t i = 0; i < 20; ++i) {
    records.push_back(start(0, 100 * i));
    records.push_back(end(0, 100 * i + i));
  }
  Decoded decoded = decode_warp(records, 8);
  CHECK_EQ(decoded.seen.instances.size(), 4);
  CHECK_EQ(decoded.seen.instances.front().cycles, 16);
  CHECK_EQ(decoded.seen.instances.back().cycles, 19);
  CHECK_EQ(decoded.totals.lost_records, 32);
  CHECK_EQ(decoded.totals.lossy_warps, 1);
  CHECK_EQ(decoded.totals.lossy_programs, 1);
}

TEST(a_pair_across_the_seam_of_a_wrapped_segment_is_kept) {
  Decoded decoded =
      decode_warp({start(0, 1), end(0, 2), start(1, 10), start(0, 20), end(0, 27), end(1, 50)}, 4);
  CHECK_EQ(decoded.seen.instances.size(), 2);
  CHECK_EQ(decoded.seen.instances.at(1).cycles, 40);
  CHECK_EQ(decoded.totals.unpaired_records, 0);
}

TEST(clocks_that_turn_over_are_subtracted_modulo_their_width) {
  uint64_t last = (uint64_t{1} << 43) - 1;
  CHECK_EQ(decode_warp({start(0, last), end(0, 9)}).seen.instances.at(0).cycles, 10);
  BufferLayout short_clock = layout_of(1);
  short_clock.has_short_clock = true;
  Decoded decoded = decode_warp({start(0, 0xFFFFFFFF), end(0, 4)}, 16, short_clock);
  CHECK_EQ(decoded.seen.instances.at(0).cycles, 5);
}

TEST(a_start_after_a_start_makes_the_older_one_unpaired) {
  Decoded decoded = decode_warp({start(0, 1), start(0, 5), end(0, 7), end(0, 9), start(1, 1)});
  CHECK_EQ(decoded.seen.instances.size(), 1);
  CHECK_EQ(decoded.seen.instances.at(0).cycles, 2);
  CHECK_EQ(decoded.totals.unpaired_records, 3);
}

TEST(records_of_unknown_scopes_are_unpaired) {
  Decoded decoded = decode_warp({start(200, 1), end(200, 5)});
  CHECK_EQ(decoded.seen.instances.size(), 0);
  CHECK_EQ(decoded.totals.unpaired_records, 2);
}

TEST(selected_warps_have_the_segments_in_ascending_order) {
  const uint32_t selected[] = {1, 3};
  BufferLayout layout = layout_of(4);
  layout.warp_ids = selected;
  Program program;
  program.segments = {{start(0, 0), end(0, 5)}, {start(0, 0), end(0, 7)}};
  Decoded decoded = decode_bytes(buffers::block(layout, program, 8), layout);
  CHECK_EQ(decoded.seen.instances.size(), 2);
  CHECK_EQ(decoded.seen.instances.at(0).warp, 1);
  CHECK_EQ(decoded.seen.instances.at(0).cycles, 5);
  CHECK_EQ(decoded.seen.instances.at(1).warp, 3);
  CHECK_EQ(decoded.seen.instances.at(1).cycles, 7);
}

TEST(the_cost_of_records_is_deducted_and_never_below_zero) {
  BufferLayout layout = layout_of(1);
  layout.record_cost_cycles = 7;
  // Upstream's time shift of (33, 70) and (54, 100) gives (26, 49) and (40, 72).
  Decoded decoded = decode_warp({start(0, 33), start(1, 54), end(0, 70), end(1, 100)}, 16, layout);
  CHECK_EQ(decoded.seen.instances.at(0).cycles, 49 - 26);
  CHECK_EQ(decoded.seen.instances.at(1).cycles, 72 - 40);
  CHECK_EQ(decoded.seen.instances.at(1).shift_cycles, 7);
  CHECK_EQ(decode_warp({start(0, 1), end(0, 3)}, 16, layout).seen.instances.at(0).cycles, 0);
}

TEST(asynchronous_events_pair_across_warps_and_prefer_their_own) {
  BufferLayout layout = layout_of(2);
  Program program;
  program.segments = {{{0, false, 10, true}, {0, true, 40, true}, {1, false, 50, true}},
                      {{0, false, 20, true}, {0, true, 90, true}, {1, true, 80, true}}};
  Decoded decoded = decode_bytes(buffers::block(layout, program, 8), layout);
  CHECK_EQ(decoded.seen.instances.size(), 3);
  CHECK_EQ(decoded.seen.instances.at(0).warp, 0);
  CHECK_EQ(decoded.seen.instances.at(0).cycles, 30);
  CHECK_EQ(decoded.seen.instances.at(1).warp, 0);
  CHECK_EQ(decoded.seen.instances.at(1).end_warp, 1);
  CHECK_EQ(decoded.seen.instances.at(1).cycles, 30);
  CHECK_EQ(decoded.seen.instances.at(2).end_warp, 1);
  CHECK_EQ(decoded.seen.instances.at(2).cycles, 70);
  CHECK(decoded.seen.instances.at(0).is_async);
}

TEST(asynchronous_events_without_a_partner_are_unpaired) {
  BufferLayout layout = layout_of(1);
  Program program;
  program.segments = {{{0, true, 5, true}, {0, false, 10, true}, {0, false, 20, true}}};
  Decoded decoded = decode_bytes(buffers::block(layout, program, 8), layout);
  CHECK_EQ(decoded.seen.instances.size(), 0);
  CHECK_EQ(decoded.totals.unpaired_records, 3);
}

TEST(skipped_and_corrupt_programs_are_counted_and_the_others_read) {
  BufferLayout layout = layout_of(1);
  Program program;
  program.segments = {{start(0, 1), end(0, 3)}};
  std::vector<std::byte> good = buffers::block(layout, program, 8);
  std::vector<std::byte> skipped(layout.scratch_bytes);
  std::vector<std::byte> foreign = good, uneven = good, huge = good;
  buffers::put(foreign, kPreambleAt, uint32_t{0x12345678});
  buffers::put(uneven, kCapacityAt, uint32_t{13});
  buffers::put(huge, kCapacityAt, uint32_t{0xFFFFFFF8});
  std::vector<std::byte> bytes;
  for (const auto *block : {&good, &skipped, &foreign, &uneven, &huge, &good})
    bytes.insert(bytes.end(), block->begin(), block->end());
  bytes.resize(bytes.size() + 9); // of a truncated block
  Decoded decoded = decode_bytes(bytes, layout);
  CHECK_EQ(decoded.totals.programs, 2);
  CHECK_EQ(decoded.totals.skipped_programs, 1);
  CHECK_EQ(decoded.totals.corrupt_programs, 4);
  CHECK_EQ(decoded.seen.instances.size(), 2);
}

TEST(layouts_that_no_buffer_has_are_refused) {
  const uint32_t outside[] = {4}, unsorted[] = {2, 1};
  BufferLayout layout = layout_of(4);
  CHECK_EQ(layout.fault(), "");
  layout.warp_ids = outside;
  CHECK(layout.fault().find("warp 4") != std::string::npos);
  layout.warp_ids = unsorted;
  CHECK(layout.fault() != "");
  CHECK(layout_of(0).fault() != "");
  CHECK(layout_of(1, 257).fault() != "");
  BufferLayout small = layout_of(4);
  small.scratch_bytes = 55;
  CHECK(small.fault() != "");
  CHECK_EQ(decode_bytes(std::vector<std::byte>(512), small).totals.skipped_programs, 0);
}

TEST(the_reduction_sums_what_decoding_visits) {
  BufferLayout layout = layout_of(1, 2);
  Program program;
  program.segments = {{start(0, 0), end(0, 5), start(0, 10), end(0, 110), start(1, 0), end(1, 0)}};
  std::vector<std::byte> bytes = buffers::block(layout, program, 8);
  KernelTotals totals{};
  std::vector<ScopeTotals> scopes(2, empty_scope_totals());
  reduce(bytes, layout, totals, scopes);
  reduce(bytes, layout, totals, scopes);
  CHECK_EQ(totals.launches, 2);
  CHECK_EQ(totals.records, 12);
  CHECK_EQ(scopes[0].count, 4);
  CHECK_EQ(scopes[0].cycles, 210);
  CHECK_EQ(scopes[0].min_cycles, 5);
  CHECK_EQ(scopes[0].max_cycles, 100);
  CHECK_EQ(scopes[0].buckets[cycle_bucket(100)], 2);
  CHECK_EQ(scopes[1].min_cycles, 0);
}

TEST(buckets_hold_every_clock_and_know_their_least_value) {
  for (uint32_t bucket = 0; bucket < kCycleBuckets; ++bucket) {
    CHECK_EQ(cycle_bucket(cycle_bucket_floor(bucket)), bucket);
    if (bucket + 1 < kCycleBuckets)
      CHECK_EQ(cycle_bucket(cycle_bucket_floor(bucket + 1) - 1), bucket);
  }
  CHECK_EQ(cycle_bucket(clock_mask(false)), kCycleBuckets - 1);
  CHECK_EQ(cycle_bucket(~uint64_t{0}), kCycleBuckets - 1);
}
