#include "aggregate/consumer/epoch_table.h"

#include "check.h"
#include "context/thread/current.h"

using namespace proton;

namespace {

struct TwoSessions {
  SessionTree first{ContextSource::kShadow, 1, false};
  SessionTree second{ContextSource::kShadow, 2, false};
  EpochTable epochs;
};

uint64_t lost(const SessionTree &session, const char *reason) {
  auto found = session.losses().find(reason);
  return found == session.losses().end() ? 0 : found->second;
}

} // namespace

TEST(an_epoch_of_the_same_members_goes_on) {
  TwoSessions sessions;
  EpochTable &epochs = sessions.epochs;
  EpochId one = epochs.begin({{&sessions.first, 0}});
  CHECK_EQ(epochs.begin({{&sessions.first, 0}}), one);
  EpochId two = epochs.begin({{&sessions.first, 0}, {&sessions.second, 0}});
  CHECK(two > one);
  CHECK(epochs.begin({{&sessions.first, 1}, {&sessions.second, 0}}) > two);
  CHECK(epochs.begin({{&sessions.first, 0}}) > two); // only the newest goes on
}

TEST(a_loss_counts_for_the_sessions_of_its_epoch) {
  TwoSessions sessions;
  EpochId id = sessions.epochs.begin({{&sessions.first, 0}});
  sessions.epochs.begin({{&sessions.second, 0}});
  sessions.epochs.lose("a", 3, sessions.epochs.find(id));
  CHECK_EQ(lost(sessions.first, "a"), 3);
  CHECK_EQ(lost(sessions.second, "a"), 0);
}

TEST(a_loss_without_an_epoch_counts_for_the_active_sessions) {
  TwoSessions sessions;
  sessions.epochs.begin({{&sessions.first, 0}});
  SessionState now;
  now.epoch = sessions.epochs.begin({{&sessions.second, 0}});
  sessions.epochs.lose("while no session is active", 1, nullptr);
  now.active = true;
  publish_session_state(now);
  sessions.epochs.lose("a", 2, nullptr);
  publish_session_state({});
  CHECK_EQ(sessions.first.losses().size(), 0);
  CHECK_EQ(lost(sessions.second, "a"), 2);
  CHECK_EQ(sessions.second.losses().size(), 1);
}

TEST(a_phase_that_is_dropped_leaves_its_counts_and_nothing_outstanding) {
  TwoSessions sessions;
  EpochTable &epochs = sessions.epochs;
  EpochId id = epochs.begin({{&sessions.first, 0}, {&sessions.second, 4}});
  epochs.find(id)->counts.launches = 5;
  epochs.find(id)->counts.records = 3;
  CHECK(!epochs.is_complete(sessions.first, 0));
  CHECK(epochs.is_complete(sessions.first, 1));
  RecordCounts dropped = epochs.drop(sessions.first, 0);
  CHECK_EQ(dropped.launches, 5);
  CHECK_EQ(dropped.cleared, 2);
  CHECK(epochs.is_complete(sessions.first, 0));
  CHECK(!epochs.is_complete(sessions.second, 4));
  CHECK_EQ(epochs.counts_of(sessions.first).launches, 0);
  CHECK_EQ(epochs.counts_of(sessions.second).launches, 5);
}

TEST(epochs_that_no_session_wants_are_forgotten) {
  TwoSessions sessions;
  EpochTable &epochs = sessions.epochs;
  EpochId one = epochs.begin({{&sessions.first, 0}});
  EpochId two = epochs.begin({{&sessions.first, 1}, {&sessions.second, 0}});
  epochs.drop(sessions.first);
  CHECK((epochs.trim() == std::vector<EpochId>{two}));
  CHECK(epochs.find(one) == nullptr);
  CHECK(epochs.last() == epochs.find(two));
  CHECK_EQ(epochs.newest_id(), two);
}

TEST(each_session_is_listed_once_with_its_newest_phase) {
  TwoSessions sessions;
  sessions.epochs.begin({{&sessions.first, 0}, {&sessions.second, 0}});
  sessions.epochs.begin({{&sessions.first, 1}});
  std::vector<EpochMember> expected{{&sessions.first, 1}, {&sessions.second, 0}};
  CHECK((sessions.epochs.sessions() == expected));
}
