// Timelines that no session has room for.
#include <vector>

#include "aggregate/consumer/aggregator.h"
#include "aggregate/tree/session_tree.h"
#include "check.h"
#include "record/timeline_record.h"

using namespace proton;

namespace {

constexpr const char *kNoRoom = "scopes inside kernels that the timeline had no room for";

/// Two sessions in an epoch, of which the first keeps a timeline. It ends with the test.
class TwoSessions {
public:
  TwoSessions() { epoch = Aggregator::Held().epochs().begin({{&with, 0}, {&without, 0}}); }
  ~TwoSessions() {
    Aggregator::Held held;
    held.epochs().drop(with);
    held.epochs().drop(without);
  }
  /// Hands over one program with so many instances.
  void complete(size_t instances, uint64_t left_out = 0) {
    const CycleScope scopes[] = {{"s", kNoScope}};
    std::vector<TimelineScope> all(instances);
    TimelineProgram program;
    program.count = static_cast<uint32_t>(instances);
    TimelineRecord record;
    record.at = {0, 0, epoch};
    record.kernel = "add";
    record.scopes = scopes;
    record.instances = all;
    record.programs = {&program, 1};
    record.left_out = left_out;
    aggregator.complete(record);
  }
  bool has_room() { return aggregator.has_timeline_room({0, 0, epoch}); }

  static constexpr size_t kTooMany = ScopeTimeline::kMaxBytes / sizeof(TimelineScope) + 1;

  Aggregator &aggregator = Aggregator::instance();
  EpochId epoch = 0;
  SessionTree with{ContextSource::kShadow, 1, false, true};
  SessionTree without{ContextSource::kShadow, 1, false};
};

} // namespace

TEST(a_timeline_has_room_until_a_launch_does_not_fit) {
  TwoSessions sessions;
  sessions.complete(1);
  CHECK(sessions.has_room());

  sessions.complete(TwoSessions::kTooMany);

  CHECK(!sessions.has_room());
  CHECK_EQ(sessions.with.losses().at(kNoRoom), TwoSessions::kTooMany);
}

TEST(there_is_no_room_where_no_session_keeps_a_timeline) {
  TwoSessions sessions;
  CHECK(!sessions.aggregator.has_timeline_room({0, 0, sessions.epoch + 1}));
  Aggregator::Held().epochs().drop(sessions.with);
  CHECK(!sessions.has_room());
}

TEST(instances_that_were_not_decoded_are_lost_to_those_who_keep_timelines) {
  TwoSessions sessions;
  sessions.complete(0, 8);

  CHECK_EQ(sessions.with.losses().at(kNoRoom), 8);
  CHECK(sessions.without.losses().empty());
  CHECK_EQ(sessions.with.timeline(0).launches().size(), 0);
}
