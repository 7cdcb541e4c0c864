// Memory of devices, from records of an allocator to the trees of sessions.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

#include "aggregate/consumer/timeline_session.h"
#include "check.h"
#include "context/thread/host_range.h"
#include "context/thread/steps.h"
#include "own_columns.h"
#include "record/device.h"
#include "session/session_registry.h"

using namespace proton;

namespace {

/// An allocator that is watched from now on.
struct Allocator {
  Allocator() { Aggregator::Held().forget_memory(); }
  ~Allocator() { Aggregator::Held().forget_memory(); }

  uint64_t allocate(int64_t bytes, const char *scope = nullptr) {
    OpenRange range = scope ? enter_scope_range(scope) : OpenRange();
    MemoryRecord record;
    record.at = capture_current();
    uint64_t address = next += 1024;
    report(record, MemoryChange::kAllocated, address, bytes);
    blocks[address] = bytes;
    exit_scope_range(range);
    return address;
  }
  void free(uint64_t address) {
    MemoryRecord record;
    record.at.epoch = session_state().active ? session_state().epoch : 0;
    report(record, MemoryChange::kFreed, address, -blocks.at(address));
    blocks.erase(address);
  }
  void report(MemoryRecord &record, MemoryChange change, uint64_t address, int64_t bytes) {
    total += bytes;
    peak = std::max(peak, total);
    record.device = DeviceTable::instance().find_or_add("CUDA", 0);
    record.change = change;
    record.address = address;
    record.bytes = std::abs(bytes);
    record.total_bytes = total;
    record.at_ns = session_state().wants_timeline ? TickClock::now_ns() : 0;
    Aggregator::instance().complete(record);
  }

  int64_t total = 0;
  int64_t peak = 0;
  uint64_t next = 1 << 20;
  std::map<uint64_t, int64_t> blocks;
};

struct ActiveSession {
  std::shared_ptr<Session> core = SessionRegistry::instance().add(ContextSource::kShadow, false);
  ActiveSession() { core->activate(); }
  ~ActiveSession() { core->remove(); }

  std::string rows(const char *metric, uint32_t phase = 0) const {
    return own_rows(tree_of(*core, phase), metric);
  }
};

} // namespace

TEST(memory_stands_where_it_was_allocated_wherever_it_is_freed) {
  Allocator allocator;
  ActiveSession session;
  uint64_t first = allocator.allocate(100, "a");
  allocator.allocate(20, "b");
  OpenRange elsewhere = enter_scope_range("c");
  allocator.free(first);
  exit_scope_range(elsewhere);
  CHECK_EQ(session.rows("peak_bytes"), "a=100 b=20 ");
  CHECK_EQ(session.rows("freed_bytes"), "a=100 ");
  CHECK_EQ(session.rows("kept_bytes"), "b=20 ");
}

TEST(what_the_allocator_held_before_has_a_row_of_its_own) {
  Allocator allocator;
  allocator.total = 5000; // before the watch
  ActiveSession session;
  allocator.allocate(100, "a");
  CHECK_EQ(session.rows("peak_bytes"), "<allocated while not recorded>=5000 a=100 ");
  CHECK(session.core->losses().empty());
}

TEST(a_phase_begins_with_what_is_alive_on_the_paths_that_allocated_it) {
  Allocator allocator;
  ActiveSession session;
  uint64_t first = allocator.allocate(100, "a");
  uint64_t second = allocator.allocate(50, "b");
  session.core->advance_phase();
  allocator.free(second);
  allocator.allocate(10, "c");
  allocator.free(first);
  CHECK_EQ(session.rows("peak_bytes", 1), "a=100 b=50 ");
  CHECK_EQ(session.rows("alloc_bytes", 1), "c=10 ");
  session.core->advance_phase(); // without a change of memory
  CHECK_EQ(session.rows("peak_bytes", 2), "c=10 ");
}

TEST(what_happens_in_a_pause_is_known_after_it) {
  Allocator allocator;
  ActiveSession session;
  uint64_t first = allocator.allocate(100, "a");
  session.core->deactivate();
  allocator.free(first);
  allocator.allocate(70);
  session.core->activate();
  allocator.allocate(5, "b");
  CHECK_EQ(session.rows("kept_bytes"), "<allocated while not recorded>=70 b=5 ");
  CHECK_EQ(session.rows("peak_bytes"), "a=100 ");
}

TEST(what_is_alive_when_a_phase_begins_is_no_change_of_it) {
  Allocator allocator;
  ActiveSession session;
  allocator.allocate(100, "a");
  session.core->advance_if_recorded();
  CHECK_EQ(session.core->current_phase(), 1);
  session.core->advance_if_recorded();
  CHECK_EQ(session.core->current_phase(), 1);
}

TEST(upstreams_shape_has_no_rows_that_only_allocate) {
  Allocator allocator;
  auto core = SessionRegistry::instance().add(ContextSource::kShadow, false, false, true);
  core->activate();
  allocator.allocate(100);
  CHECK_EQ(own_rows(tree_of(*core), "peak_bytes"), "");
  CHECK_EQ(core->row_count(0), 1);
  core->remove();
}

TEST(a_missed_change_is_counted_and_sums_stay_those_of_the_allocator) {
  Allocator allocator;
  ActiveSession session;
  uint64_t first = allocator.allocate(100, "a");
  allocator.total += 7; // of which no record tells
  allocator.allocate(20, "b");
  CHECK_EQ(session.rows("peak_bytes"), "<allocated while not recorded>=7 a=100 b=20 ");
  CHECK_EQ(session.core->losses().at("changes of device memory that were not recorded"), 1);
  allocator.total -= 100; // it was freed unseen, and its address is given out again
  allocator.next = first - 1024;
  allocator.allocate(30, "c");
  CHECK_EQ(session.rows("kept_bytes"), "<allocated while not recorded>=7 b=20 c=30 ");
}

TEST(timelines_have_what_is_allocated_at_each_change_worth_a_reading) {
  Allocator allocator;
  TimelineSession session;
  for (int i = 0; i < 4; ++i)
    allocator.allocate(1 << 20, "a");
  allocator.allocate(1, "a"); // less than shows
  allocator.free(allocator.blocks.begin()->first);
  std::vector<double> readings;
  for (const EventCounter &counter : session.events().counters) {
    CHECK_EQ(counter.name.text(), "allocated memory (bytes)");
    CHECK_EQ(counter.device, DeviceTable::instance().find_or_add("CUDA", 0));
    readings.push_back(counter.value);
  }
  const double block = 1 << 20;
  CHECK_EQ(readings.size(), 5);
  CHECK_EQ(readings[3], 4 * block);
  CHECK_EQ(readings[4], 3 * block + 1);
}

TEST(sums_over_rows_are_the_peak_of_the_allocator_for_any_program) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 20; ++round) {
    Allocator allocator;
    allocator.total = allocator.peak = static_cast<int64_t>(random() % 2 * 1000);
    ActiveSession session;
    for (int i = 0; i < 400; ++i) {
      if (allocator.blocks.empty() || random() % 5 < 3)
        allocator.allocate(static_cast<int64_t>(random() % 999 + 1), random() % 2 == 0 ? "a" : "b");
      else
        allocator.free(std::next(allocator.blocks.begin(),
                                 static_cast<std::ptrdiff_t>(random() % allocator.blocks.size()))
                           ->first);
    }
    CHECK_EQ(own_sum(tree_of(*session.core), "peak_bytes"), allocator.peak);
    CHECK(session.core->losses().empty());
  }
}

TEST(contexts_of_living_blocks_outlive_the_phase_that_made_them) {
  Allocator allocator;
  ActiveSession session;
  allocator.allocate(100, "only here");
  for (uint32_t phase = 1; phase < 4; ++phase) {
    session.core->advance_phase();
    session.core->clear_phase(phase - 1, false);
    for (int i = 0; i < 50; ++i)
      allocator.free(allocator.allocate(1, ("other" + std::to_string(i)).c_str()));
  }
  CHECK_EQ(session.rows("kept_bytes", 3), "only here=100 ");
}
