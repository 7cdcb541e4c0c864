// Entries of the logs of a thread: each says which record it is.
#include <vector>

#include "check.h"
#include "record/record.h"
#include "record/record_log.h"

using namespace proton;

TEST(each_entry_of_launches_is_read_as_it_was_written) {
  RecordLog<LaunchEntry, true> log;
  LaunchRecord launch;
  launch.kind = LaunchKind::kGraph;
  launch.code = 0xabcdef;
  launch.correlation_id = 1;
  launch.awaits_return = launch.has_tick_time = true;
  CallReturn returned;
  returned.correlation_id = 2;
  returned.returned_tick_ns = -3;
  LaunchRetraction retraction;
  retraction.correlation_id = 4;
  KernelScopesNote scopes;
  scopes.correlation_id = 5;
  ThreadChange thread;
  thread.number = 6;
  log.append(launch);
  log.append(returned);
  log.append(retraction);
  log.append(scopes);
  log.append(thread);
  std::vector<LaunchEntry> read;
  log.consume([&](const LaunchEntry &entry) { read.push_back(entry); });
  CHECK_EQ(read.size(), 5);
  CHECK(read[0].kind() == LaunchEntryKind::kLaunch);
  CHECK(read[0].launch.kind == LaunchKind::kGraph);
  CHECK_EQ(read[0].launch.code, 0xabcdef);
  CHECK_EQ(read[0].launch.correlation_id, 1);
  CHECK(read[0].launch.awaits_return && read[0].launch.has_tick_time);
  CHECK(read[1].kind() == LaunchEntryKind::kReturn);
  CHECK_EQ(read[1].returned.correlation_id, 2);
  CHECK_EQ(read[1].returned.returned_tick_ns, -3);
  CHECK(read[2].kind() == LaunchEntryKind::kRetract);
  CHECK_EQ(read[2].retraction.correlation_id, 4);
  CHECK(read[3].kind() == LaunchEntryKind::kScopes);
  CHECK_EQ(read[3].scopes.correlation_id, 5);
  CHECK(read[4].kind() == LaunchEntryKind::kThread);
  CHECK_EQ(read[4].thread.number, 6);
}

TEST(each_entry_of_a_host_thread_is_read_as_it_was_written) {
  RecordLog<HostEntry> log;
  RangeRecord range;
  range.kind = RangeKind::kOp;
  range.self_ns = 1;
  ValueRecord value;
  value.held = HeldValue::kDouble;
  value.number = 0.5;
  value.scope_id = 2;
  LaunchValueRecord launch_value;
  launch_value.launch = 3;
  launch_value.integer = -4;
  NoLaunchValue none;
  none.launch = 5;
  log.append(range);
  log.append(value);
  log.append(launch_value);
  log.append(none);
  std::vector<HostEntry> read;
  log.consume([&](const HostEntry &entry) { read.push_back(entry); });
  CHECK_EQ(read.size(), 4);
  CHECK(read[0].kind() == HostEntryKind::kRange && read[0].range.kind == RangeKind::kOp);
  CHECK_EQ(read[0].range.self_ns, 1);
  CHECK(read[1].kind() == HostEntryKind::kValue && read[1].value.held == HeldValue::kDouble);
  CHECK_EQ(read[1].value.number, 0.5);
  CHECK_EQ(read[1].value.scope_id, 2);
  CHECK(read[2].kind() == HostEntryKind::kLaunchValue);
  CHECK_EQ(read[2].launch_value.launch, 3);
  CHECK_EQ(read[2].launch_value.integer, -4);
  CHECK(read[3].kind() == HostEntryKind::kNoValue);
  CHECK_EQ(read[3].no_value.launch, 5);
}
