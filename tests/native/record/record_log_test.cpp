#include "record/record_log.h"

#include <thread>
#include <vector>

#include "check.h"

namespace {

struct Number {
  uint64_t value = 0;
};
using Log = proton::RecordLog<Number>;

std::vector<uint64_t> drain(Log &log) {
  std::vector<uint64_t> values;
  log.consume([&](const Number &number) { values.push_back(number.value); });
  return values;
}

} // namespace

TEST(an_empty_log_hands_over_nothing) {
  Log log;
  CHECK_EQ(drain(log).size(), 0);
}

TEST(records_come_once_and_in_order) {
  Log log;
  log.append({1});
  log.append({2});
  CHECK((drain(log) == std::vector<uint64_t>{1, 2}));
  log.append({3});
  CHECK((drain(log) == std::vector<uint64_t>{3}));
  CHECK_EQ(drain(log).size(), 0);
}

TEST(a_filled_chunk_is_reported_once) {
  Log log;
  int reports = 0;
  for (uint32_t i = 0; i < 3 * Log::kChunkRecords; ++i)
    reports += log.append({i}) ? 1 : 0;
  CHECK_EQ(reports, 3);
  CHECK_EQ(drain(log).size(), 3 * Log::kChunkRecords);
  CHECK_EQ(log.lost.load(), 0);
}

TEST(a_log_drained_at_the_end_of_a_chunk_goes_on) {
  Log log;
  for (uint32_t i = 0; i < Log::kChunkRecords; ++i)
    log.append({i});
  CHECK_EQ(drain(log).size(), Log::kChunkRecords);
  log.append({7});
  CHECK((drain(log) == std::vector<uint64_t>{7}));
}

TEST(what_is_appended_while_the_log_is_read_waits_for_the_next_time) {
  constexpr uint64_t kCount = 3 * Log::kChunkRecords + 5;
  Log log;
  for (uint64_t i = 0; i < kCount; ++i)
    log.append({i});
  uint64_t seen = 0;
  log.consume([&](const Number &number) {
    seen += number.value == seen ? 1 : 0;
    log.append({kCount + number.value});
  });
  CHECK_EQ(seen, kCount);
  std::vector<uint64_t> later = drain(log);
  CHECK_EQ(later.size(), kCount);
  CHECK_EQ(later.front(), kCount);
  CHECK_EQ(later.back(), 2 * kCount - 1);
}

TEST(a_reader_beside_the_writer_loses_nothing) {
  constexpr uint64_t kCount = 200'000;
  Log log;
  std::thread writer([&] {
    for (uint64_t i = 0; i < kCount; ++i)
      log.append({i});
  });
  uint64_t expected = 0;
  bool is_in_order = true;
  while (expected < kCount) {
    log.consume([&](const Number &number) { is_in_order &= number.value == expected++; });
    std::this_thread::yield();
  }
  writer.join();
  CHECK(is_in_order);
  CHECK_EQ(expected, kCount);
}

TEST(a_chunk_that_was_read_is_written_again) {
  Log log;
  for (uint64_t round = 0; round < 5; ++round) {
    for (uint64_t i = 0; i < 2 * Log::kChunkRecords; ++i)
      log.append({round * 10'000 + i});
    std::vector<uint64_t> values = drain(log);
    CHECK_EQ(values.size(), 2 * Log::kChunkRecords);
    CHECK_EQ(values.front(), round * 10'000);
    CHECK_EQ(values.back(), round * 10'000 + 2 * Log::kChunkRecords - 1);
  }
}
