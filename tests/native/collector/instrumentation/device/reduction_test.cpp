// The device's reduction, run on the host, agrees with the host decoder and an oracle.
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "check.h"
#include "collector/instrumentation/decoder/host_decoder.h"
#include "fakes/emulated_kernels.h"
#include "sweeps.h"

using namespace proton;

namespace {

using Random = std::mt19937_64;

struct Case {
  uint32_t programs, warps, slots, scopes, cost;
  bool has_short_clock;
  std::vector<uint32_t> warp_ids; ///< empty: all
  std::vector<std::byte> bytes;

  uint32_t segments() const {
    return warp_ids.empty() ? warps : static_cast<uint32_t>(warp_ids.size());
  }
  uint32_t stride() const { return (40 + 4 * warps + segments() * slots * 8 + 127) / 128 * 128; }
  BufferLayout layout() const { return {stride(), warps, warp_ids, scopes, has_short_clock, cost}; }
};

struct Totals {
  KernelTotals kernel{};
  std::vector<ScopeTotals> scopes;
};

template <typename T> void put(std::byte *at, T value) { std::memcpy(at, &value, sizeof value); }

uint64_t pick(Random &random, uint64_t below) { return random() % below; }

struct Writer {
  std::byte *segment;
  uint32_t slots;
  uint32_t written = 0;
  void add(bool is_end, uint32_t scope, uint64_t clock, bool is_event, bool is_short) {
    uint32_t tag = uint32_t{is_end} << 31 | scope << 23 | uint32_t{is_event} << 22;
    tag |= is_short ? 0 : static_cast<uint32_t>(clock >> 32) & 0x7ff;
    put(segment + size_t{written % slots} * 8, tag);
    put(segment + size_t{written % slots} * 8 + 4, static_cast<uint32_t>(clock));
    ++written;
  }
};

/// Mostly nested scopes, sometimes nonsense.
void write_segment(Random &random, const Case &made, Writer &writer) {
  uint64_t clock = pick(random, 3) == 0 ? (uint64_t{1} << 43) - pick(random, 3000) : random();
  uint64_t count = pick(random, 4) == 0 ? 0 : pick(random, made.slots * 3 + 1);
  bool is_nonsense = pick(random, 5) == 0;
  bool has_events = pick(random, 4) == 0;
  std::vector<uint32_t> open;
  for (uint64_t i = 0; i < count; ++i) {
    clock += pick(random, 10) == 0 ? pick(random, uint64_t{1} << 36) : pick(random, 3000);
    if (is_nonsense) {
      writer.add(pick(random, 2) != 0, static_cast<uint32_t>(pick(random, 256)), random(),
                 has_events && pick(random, 2) != 0, made.has_short_clock);
      continue;
    }
    bool is_event = has_events && pick(random, 3) == 0;
    if (!open.empty() && pick(random, 2) == 0) {
      writer.add(true, open.back(), clock, is_event, made.has_short_clock);
      open.pop_back();
    } else {
      open.push_back(static_cast<uint32_t>(pick(random, made.scopes)));
      writer.add(false, open.back(), clock, is_event, made.has_short_clock);
    }
  }
}

void write_program(Random &random, const Case &made, std::byte *block, uint32_t index) {
  uint64_t damage = pick(random, 12);
  put(block, damage == 0 ? 0u : damage == 1 ? 0x1234u : kBlockPreamble);
  put(block + kProgramAt, index);
  uint32_t capacity = made.segments() * made.slots * 8;
  put(block + kCapacityAt, damage == 2 ? capacity + 4 : damage == 3 ? 0xfffffff8u : capacity);
  put(block + kInitAt, random());
  std::byte *data = block + 40 + 4 * made.warps;
  for (uint32_t i = 0; i < made.segments(); ++i) {
    Writer writer{data + size_t{i} * made.slots * 8, made.slots};
    write_segment(random, made, writer);
    uint32_t warp = made.warp_ids.empty() ? i : made.warp_ids[i];
    put(block + 40 + 4 * warp, writer.written * 2 + (pick(random, 9) == 0 ? 1 : 0));
  }
}

Case make_case(Random &random) {
  Case made{};
  made.programs = static_cast<uint32_t>(pick(random, 40));
  made.warps = static_cast<uint32_t>(1 + pick(random, 3) * pick(random, 11));
  made.slots = uint32_t{1} << pick(random, 8);
  made.scopes = pick(random, 5) == 0 ? static_cast<uint32_t>(1 + pick(random, 256))
                                     : static_cast<uint32_t>(1 + pick(random, 6));
  made.cost = pick(random, 3) == 0 ? static_cast<uint32_t>(pick(random, 60)) : 0;
  made.has_short_clock = pick(random, 3) == 0;
  if (pick(random, 3) == 0) {
    for (uint32_t warp = 0; warp < made.warps; ++warp)
      if (pick(random, 2) == 0)
        made.warp_ids.push_back(warp);
  }
  made.bytes.resize(size_t{made.stride()} * made.programs);
  for (std::byte &byte : made.bytes)
    byte = static_cast<std::byte>(random());
  for (uint32_t i = 0; i < made.programs; ++i)
    write_program(random, made, made.bytes.data() + size_t{i} * made.stride(), i);
  return made;
}

ScopeTotals empty_scope() {
  ScopeTotals totals{};
  totals.min_cycles = ~uint64_t{0};
  return totals;
}

device::ReduceTask task_of(const Case &made, std::byte *buffer, std::vector<uint64_t> &totals) {
  device::ReduceTask task{};
  task.buffer = reinterpret_cast<unsigned char *>(buffer);
  totals.assign((sizeof(KernelTotals) + made.scopes * sizeof(ScopeTotals)) / 8, 0);
  task.totals = reinterpret_cast<unsigned char *>(totals.data());
  task.programs = made.programs;
  task.scratch_bytes = made.stride();
  task.warps = made.warps;
  task.segments = made.segments();
  task.scopes = made.scopes;
  task.record_cost = made.cost;
  task.clock_bits = made.has_short_clock ? kShortClockBits : kClockBits;
  for (uint32_t i = 0; i < task.segments; ++i)
    task.warp_ids[i] = static_cast<uint8_t>(made.warp_ids.empty() ? i : made.warp_ids[i]);
  return task;
}

/// Leaves `buffer` as the device does.
Totals reduce_on_device(const Case &made, std::vector<std::byte> &buffer, uint32_t processors) {
  std::vector<uint64_t> words;
  device::ReduceTask task = task_of(made, buffer.data(), words);
  device::ReduceShape shape = device::reduce_shape(task.scopes, task.segments, task.programs,
                                                   processors, kCycleBuckets * 4);
  task.local_buckets = shape.local_buckets;
  emulated::reduce(task, shape.blocks, shape.warps * 32, shape.shared_bytes);
  Totals totals;
  totals.scopes.resize(made.scopes);
  std::memcpy(&totals.kernel, words.data(), sizeof(KernelTotals));
  std::memcpy(totals.scopes.data(), words.data() + sizeof(KernelTotals) / 8,
              made.scopes * sizeof(ScopeTotals));
  for (ScopeTotals &scope : totals.scopes)
    scope.min_cycles = ~scope.min_cycles;
  return totals;
}

Totals reduce_on_host(const Case &made) {
  Totals totals;
  totals.scopes.assign(made.scopes, empty_scope());
  reduce(made.bytes, made.layout(), totals.kernel, totals.scopes);
  return totals;
}

bool same(const Totals &left, const Totals &right) {
  return std::memcmp(&left.kernel, &right.kernel, sizeof(KernelTotals)) == 0 &&
         left.scopes.size() == right.scopes.size() &&
         std::memcmp(left.scopes.data(), right.scopes.data(),
                     left.scopes.size() * sizeof(ScopeTotals)) == 0;
}

/// Sums of plain scopes without wrap, cost or nonsense, in the simplest code.
std::map<uint32_t, uint64_t> simple_sums(const Case &made) {
  std::map<uint32_t, uint64_t> sums;
  for (uint32_t i = 0; i < made.programs * made.warps; ++i) {
    const std::byte *block = made.bytes.data() + size_t{i / made.warps} * made.stride();
    const std::byte *data = block + 40 + 4 * made.warps + size_t{i % made.warps} * made.slots * 8;
    uint32_t words;
    std::memcpy(&words, block + 40 + 4 * (i % made.warps), 4);
    std::map<uint32_t, uint32_t> starts;
    for (uint32_t at = 0; at < words / 2; ++at) {
      uint32_t record[2];
      std::memcpy(record, data + size_t{at} * 8, 8);
      if (record[0] >> 31 != 0)
        sums[record[0] >> 23 & 255] += record[1] - starts[record[0] >> 23 & 255];
      else
        starts[record[0] >> 23 & 255] = record[1];
    }
  }
  return sums;
}

} // namespace

TEST(the_device_reduces_to_what_the_host_does) {
  Random random(20);
  for (int round = 0; round < how_many(1500, 400); ++round) {
    Case made = make_case(random);
    std::vector<std::byte> buffer = made.bytes;
    uint32_t processors = static_cast<uint32_t>(1 + pick(random, 40));
    bool is_same = same(reduce_on_device(made, buffer, processors), reduce_on_host(made));
    if (!is_same)
      CHECK_EQ(round, -1);
  }
}

TEST(plain_scopes_sum_up_to_their_durations) {
  Random random(21);
  Case made{33, 4, 64, 3, 0, false, {}, {}};
  made.bytes.resize(size_t{made.stride()} * made.programs);
  for (uint32_t i = 0; i < made.programs; ++i) {
    std::byte *block = made.bytes.data() + size_t{i} * made.stride();
    put(block, kBlockPreamble);
    put(block + kCapacityAt, made.warps * made.slots * 8);
    for (uint32_t warp = 0; warp < made.warps; ++warp) {
      Writer writer{block + 40 + 4 * made.warps + size_t{warp} * made.slots * 8, made.slots};
      uint64_t clock = pick(random, 100000);
      for (uint32_t pair = 0; pair < pick(random, 16) * 2; ++pair) {
        writer.add(false, pair % 3, clock += pick(random, 500), false, false);
        writer.add(true, pair % 3, clock += pick(random, 500), false, false);
      }
      put(block + 40 + 4 * warp, writer.written * 2);
    }
  }

  std::vector<std::byte> buffer = made.bytes;
  Totals totals = reduce_on_device(made, buffer, 132);

  std::map<uint32_t, uint64_t> expected = simple_sums(made);
  for (uint32_t scope = 0; scope < 3; ++scope)
    CHECK_EQ(totals.scopes[scope].cycles, expected[scope]);
  CHECK_EQ(totals.kernel.launches, 1);
  CHECK_EQ(totals.kernel.unpaired_records, 0);
}

TEST(a_buffer_that_was_reduced_holds_no_program_any_more) {
  Random random(22);
  for (int round = 0; round < how_many(100, 30); ++round) {
    Case made = make_case(random);
    std::vector<std::byte> buffer = made.bytes;
    reduce_on_device(made, buffer, 4);

    Totals again = reduce_on_device(made, buffer, 4);

    CHECK_EQ(again.kernel.skipped_programs, made.programs);
    CHECK_EQ(again.kernel.records, 0);
  }
}

TEST(device_and_host_agree_on_buckets) {
  Random random(23);
  for (uint64_t value = 0; value < 5000; ++value)
    CHECK_EQ(device::bucket_of(value), cycle_bucket(value));
  for (int i = 0; i < 100'000; ++i) {
    uint64_t value = random() >> pick(random, 64);
    CHECK_EQ(device::bucket_of(value), cycle_bucket(value));
  }
}

TEST(harvested_totals_start_anew) {
  std::vector<uint64_t> totals = {1, 2, 3}, to(3);

  emulated::harvest({totals.data(), to.data(), 3});

  CHECK((to == std::vector<uint64_t>{1, 2, 3}));
  CHECK((totals == std::vector<uint64_t>{0, 0, 0}));
}

TEST(the_shared_memory_of_a_block_is_what_every_device_has) {
  for (uint32_t scopes = 1; scopes <= kMaxScopes; ++scopes) {
    device::ReduceShape shape = device::reduce_shape(scopes, 8, 256, 132, kCycleBuckets * 4);
    CHECK(shape.shared_bytes <= device::kSharedLimit);
    CHECK(shape.blocks >= 1 && shape.blocks <= 264);
  }
}
