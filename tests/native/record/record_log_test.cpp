#include "record/record_log.h"

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"

namespace {

struct Number {
  uint64_t value = 0;
};
using Log = proton::RecordLog<Number>;

using MarkedLog = proton::RecordLog<Number, true>;

/// Value and mark of each record.
std::vector<std::pair<uint64_t, uint32_t>> drain_marked(MarkedLog &log) {
  std::vector<std::pair<uint64_t, uint32_t>> read;
  log.consume(
      [&](const Number &number, auto take_mark) { read.emplace_back(number.value, take_mark()); });
  return read;
}

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

TEST(a_reader_may_take_a_part) {
  Log log;
  for (uint32_t i = 0; i < 2 * Log::kChunkRecords; ++i)
    log.append({i});
  std::vector<uint64_t> values;
  log.fix_end();
  log.append({0}); // beyond the end
  for (uint64_t most : {uint64_t{1}, uint64_t{Log::kChunkRecords}, uint64_t{0}, ~uint64_t{0}}) {
    bool takes_all = most == ~uint64_t{0};
    bool took_all =
        log.consume([&](const Number &number) { values.push_back(number.value); }, most);
    CHECK_EQ(took_all, takes_all);
  }
  CHECK_EQ(values.size(), 2 * Log::kChunkRecords);
  for (uint32_t i = 0; i < values.size(); ++i)
    CHECK_EQ(values[i], i);
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

TEST(a_record_is_read_with_its_mark) {
  MarkedLog log;
  log.append({1});
  uint64_t first = log.newest();
  log.append({2});
  CHECK(log.mark(log.newest(), 20));
  CHECK(log.mark(first, 10));
  log.append({3});
  using Read = std::vector<std::pair<uint64_t, uint32_t>>;
  CHECK((drain_marked(log) == Read{{1, 10}, {2, 20}, {3, 0}}));
}

TEST(a_record_that_was_read_takes_no_mark) {
  MarkedLog log;
  log.append({1});
  CHECK_EQ(drain_marked(log).size(), 1);
  CHECK(!log.mark(log.newest(), 10));
}

TEST(a_record_of_a_chunk_that_is_full_takes_a_mark_until_the_next_is_begun) {
  MarkedLog log;
  for (uint32_t i = 0; i < MarkedLog::kChunkRecords; ++i)
    log.append({i});
  uint64_t last = log.newest();
  CHECK(log.mark(last, 10));
  CHECK_EQ(drain_marked(log).back().second, 10);
  log.append({7}); // the reader may give the chunk away now
  CHECK(!log.mark(last, 10));
  CHECK_EQ(drain_marked(log).at(0).second, 0);
}

TEST(chunks_that_go_round_have_no_old_marks) {
  MarkedLog log;
  for (uint32_t i = 0; i < 4 * MarkedLog::kChunkRecords; ++i) {
    log.append({i});
    CHECK(i % 3 != 0 || log.mark(log.newest(), i + 1));
    if (i % 100 == 0)
      for (auto [value, mark] : drain_marked(log))
        CHECK_EQ(mark, value % 3 == 0 ? value + 1 : 0);
  }
}

TEST(a_mark_reaches_the_reader_or_the_writer_knows_that_it_did_not) {
  constexpr uint64_t kCount = 200'000;
  MarkedLog log;
  std::atomic<bool> is_over{false};
  uint64_t refused = 0, marked = 0, records = 0;
  std::thread writer([&] {
    for (uint64_t i = 0; i < kCount; ++i) {
      log.append({i});
      refused += log.mark(log.newest(), 1) ? 0 : 1;
    }
    is_over.store(true);
  });
  for (bool is_last = false; !is_last;) {
    is_last = is_over.load();
    for (auto [value, mark] : drain_marked(log)) {
      CHECK_EQ(value, records++);
      marked += mark;
    }
  }
  writer.join();
  CHECK_EQ(records, kCount);
  CHECK_EQ(marked + refused, kCount);
}
