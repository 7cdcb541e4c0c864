#include "correlation/launch_table.h"

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

TEST(an_id_used_again_gives_back_the_launch_that_nobody_will_answer) {
  LaunchTable table;
  CHECK(!table.add(launch(1, 4)).has_value());
  std::optional<LaunchRecord> older = table.add(launch(1, 5));
  CHECK(older.has_value());
  CHECK_EQ(older->at.epoch, 4);
  CHECK_EQ(table.take(1)->at.epoch, 5);
}
