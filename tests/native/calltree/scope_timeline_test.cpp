#include "calltree/scope_timeline.h"

#include "check.h"

using namespace proton;

namespace {

struct Launch {
  std::vector<CycleScope> scopes{{"s", kNoScope}};
  std::vector<TimelineScope> instances{TimelineScope{}};
  std::vector<TimelineProgram> programs{TimelineProgram{}};

  TimelineRecord record() {
    programs[0].count = static_cast<uint32_t>(instances.size());
    TimelineRecord record;
    record.scopes = scopes;
    record.instances = instances;
    record.programs = programs;
    return record;
  }
};

} // namespace

TEST(launches_of_one_kernel_share_the_names_of_its_scopes) {
  ScopeTimeline timeline;
  Launch launch, other;
  other.scopes[0].name = nullptr;
  CHECK(timeline.add(1, 0, launch.record()));
  CHECK(timeline.add(1, 0, launch.record()));
  CHECK(timeline.add(1, 0, other.record()));
  CHECK(timeline.launches()[0]->scope_names == timeline.launches()[1]->scope_names);
  CHECK_EQ(timeline.launches()[2]->scope_names->at(0).text(), "scope_0");
}

TEST(a_launch_without_room_is_refused_and_the_earlier_ones_stay) {
  ScopeTimeline timeline(4096);
  Launch launch, large;
  large.instances.resize(1000);
  CHECK(timeline.add(1, 0, launch.record()));
  CHECK(!timeline.add(1, 0, large.record()));
  CHECK_EQ(timeline.launches().size(), 1);
}

TEST(a_full_timeline_takes_no_smaller_launch_either) {
  ScopeTimeline timeline(4096);
  Launch launch, large;
  large.instances.resize(1000);
  CHECK(!timeline.is_full());
  CHECK(!timeline.add(1, 0, large.record()));
  CHECK(timeline.is_full());
  CHECK(!timeline.add(1, 0, launch.record()));
}

TEST(a_launch_that_was_not_decoded_is_refused) {
  ScopeTimeline timeline;
  TimelineRecord record;
  record.left_out = 8;
  CHECK(!timeline.add(1, 0, record));
  CHECK(!timeline.is_full());
}

TEST(records_that_contradict_themselves_are_refused) {
  ScopeTimeline timeline;
  Launch launch;
  TimelineRecord record = launch.record();
  launch.programs[0].first = 1;
  CHECK(!timeline.add(1, 0, record));
  launch.programs[0].first = 0;
  launch.instances[0].scope = 1;
  CHECK(!timeline.add(1, 0, record));
}
