#include "correlation/launch_table.h"

#include <map>
#include <vector>

#include "check.h"

using namespace proton;

namespace {

LaunchRecord launch(uint64_t id, EpochId epoch) {
  LaunchRecord record;
  record.correlation_id = id;
  record.at.epoch = epoch;
  return record;
}

} // namespace

TEST(a_launch_is_taken_once) {
  LaunchTable table;
  table.add(launch(5, 2));
  std::optional<LaunchRecord> found = table.take(5);
  CHECK(found.has_value());
  CHECK_EQ(found->at.epoch, 2);
  CHECK(!table.take(5).has_value());
}

TEST(an_unknown_launch_is_not_found) {
  LaunchTable table;
  CHECK(!table.take(1).has_value());
}

TEST(launches_of_ended_epochs_are_forgotten) {
  LaunchTable table;
  table.add(launch(1, 4));
  table.add(launch(2, 5));
  table.add(launch(3, 6));
  table.add(launch(4, 7));
  table.forget_except({5, 7});
  CHECK_EQ(table.size(), 2);
  CHECK(table.take(2).has_value());
  CHECK(table.take(4).has_value());
}

TEST(an_id_used_again_gives_back_the_launch_that_gets_no_record) {
  LaunchTable table;
  CHECK(!table.add(launch(1, 4)).has_value());
  std::optional<LaunchRecord> older = table.add(launch(1, 5));
  CHECK(older.has_value());
  CHECK_EQ(older->at.epoch, 4);
  CHECK_EQ(table.take(1)->at.epoch, 5);
}

TEST(ids_that_are_far_apart_find_room) {
  for (uint64_t step : {1u, 10u, 64u, 4096u, 1u << 24}) {
    LaunchTable table;
    for (uint64_t i = 1; i <= 20'000; ++i)
      table.add(launch(i * step, static_cast<EpochId>(i)));
    CHECK_EQ(table.size(), 20'000);
    for (uint64_t i = 20'000; i != 0; --i)
      if (std::optional<LaunchRecord> found = table.take(i * step); !found || found->at.epoch != i)
        CHECK_EQ(step, uint64_t{0});
    CHECK_EQ(table.size(), 0);
  }
}

TEST(any_order_of_adding_and_taking_gives_back_what_was_added) {
  LaunchTable table;
  std::map<uint64_t, EpochId> expected;
  uint64_t random = 1;
  for (EpochId round = 1; round <= 200'000; ++round) {
    random = random * 6364136223846793005ull + 1442695040888963407ull;
    uint64_t id = 1 + (random >> 33) % 3000 * ((random >> 20) % 2 == 0 ? 1 : 64);
    auto found = expected.find(id);
    if ((random >> 40) % 2 == 0) {
      std::optional<LaunchRecord> older = table.add(launch(id, round));
      CHECK_EQ(older.has_value(), found != expected.end());
      expected[id] = round;
    } else {
      std::optional<LaunchRecord> taken = table.take(id);
      CHECK_EQ(taken ? taken->at.epoch : 0, found == expected.end() ? 0 : found->second);
      expected.erase(id);
    }
    if (table.size() != expected.size())
      CHECK_EQ(table.size(), expected.size());
  }
}
