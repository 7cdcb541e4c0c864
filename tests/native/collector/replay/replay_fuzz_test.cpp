// Damaged and senseless recordings: refused with the one error, or replayed without harm.
#include <limits>
#include <random>

#include "calltree/context_tree.h"
#include "check.h"
#include "collector/replay/recording_bytes.h"
#include "collector/replay/replay_collector.h"
#include "context/thread/thread_state.h"
#include "scratch_folder.h"
#include "session/session_registry.h"
#include "support/error.h"
#include "sweeps.h"

using namespace proton;

namespace {

using Random = std::mt19937;

uint32_t below(uint32_t limit, Random &random) { return static_cast<uint32_t>(random() % limit); }

SessionRegistry &sessions() { return SessionRegistry::instance(); }

int64_t random_time(Random &random) {
  static const int64_t kTimes[] = {
      0,        1, -1, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(),
      1'000'000};
  return kTimes[random() % std::size(kTimes)];
}

// Well formed, but not in the order of a collector.
Recording senseless(Random &random) {
  Recording recording;
  recording.strings = {"", "scope", std::string("\xFF\0\"", 3), std::string(5000, 'x'), "CUDA"};
  auto text = [&] {
    auto index = static_cast<uint32_t>(random() % (recording.strings.size() + 1));
    return index == recording.strings.size() ? kNoText : index;
  };
  for (uint32_t i = 0; i < 200; ++i) {
    RecordedEvent event;
    event.kind = static_cast<RecordedKind>(1 + random() % 6);
    event.name = below(5, random);
    if (event.kind == RecordedKind::kKernel)
      event.name = text();
    event.device_kind = text();
    event.signature = text();
    event.device_index = static_cast<int32_t>(random());
    event.correlation_id = random() % 20;
    event.start_ns = random_time(random);
    event.end_ns = random_time(random);
    event.count = random();
    event.has_variant = below(3, random);
    event.grid[0] = below(UINT32_MAX, random);
    recording.events.push_back(event);
  }
  return recording;
}

void damage(std::string &bytes, Random &random) {
  if (random() % 4 == 0)
    bytes.resize(random() % (bytes.size() + 1));
  // Headers and the table of texts are near the front: most of the damage goes there.
  for (size_t n = 1 + random() % 6; n != 0 && !bytes.empty(); --n) {
    size_t range = random() % 2 == 0 ? std::min<size_t>(bytes.size(), 64) : bytes.size();
    bytes[random() % range] = static_cast<char>(random() % 3 == 0 ? 0xFF : random());
  }
  if (random() % 8 == 0)
    bytes.append(random() % 100, static_cast<char>(random()));
}

// Replays the file into a session and encodes it. Returns whether it was read.
bool replay(const std::string &path, bool manual) {
  try {
    ReplayCollector collector(Aggregator::instance(), path, manual);
    std::shared_ptr<Session> session = sessions().add(ContextSource::kShadow, false);
    session->activate();
    collector.start();
    if (manual)
      collector.launch(1000);
    collector.stop();
    CHECK(!session->encode(0, FileFormat::kProton).empty());
    session->remove();
    return true;
  } catch (const Error &error) {
    CHECK(error.code() == ErrorCode::kFormat);
    CHECK(std::string(error.what()).find(path) != std::string::npos);
    return false;
  }
}

} // namespace

TEST(recordings_with_damaged_bytes_are_refused_or_replayed) {
  ScratchFolder folder;
  Random random(11);
  int read = 0;
  const int rounds = how_many(400, 40);
  for (int round = 0; round < rounds; ++round) {
    std::string bytes = encode_recording(senseless(random));
    damage(bytes, random);
    std::ofstream(folder.file("r"), std::ios::binary) << bytes;
    read += replay(folder.file("r"), round % 2 == 0) ? 1 : 0;
  }
  CHECK(read > rounds / 40 && read < rounds - rounds / 40); // both ways were taken
  CHECK_EQ(this_thread().stack.depth(), 0);
}

TEST(events_in_no_sensible_order_are_replayed) {
  ScratchFolder folder;
  Random random(12);
  for (int round = 0; round < how_many(100, 10); ++round) {
    std::ofstream(folder.file("r"), std::ios::binary) << encode_recording(senseless(random));
    CHECK(replay(folder.file("r"), round % 2 == 0));
  }
  CHECK_EQ(this_thread().stack.depth(), 0);
  CHECK_EQ(ContextTree::instance().live_count(), 0);
}

TEST(random_bytes_are_refused) {
  ScratchFolder folder;
  Random random(13);
  for (int round = 0; round < how_many(300, 60); ++round) {
    std::string bytes = round % 2 == 0 ? "PBRECORD" : "";
    for (size_t size = random() % 300; bytes.size() < size;)
      bytes += static_cast<char>(random());
    std::ofstream(folder.file("r"), std::ios::binary) << bytes;
    CHECK(!replay(folder.file("r"), false));
  }
}

#ifndef __SANITIZE_THREAD__ // one thread: nothing to find, and ten times as slow
TEST(more_scopes_than_a_stack_holds_are_an_error_that_leaves_none_open) {
  ScratchFolder folder;
  Recording recording;
  recording.strings = {"scope"};
  RecordedEvent enter;
  enter.kind = RecordedKind::kScopeEnter;
  enter.name = 0;
  recording.events.assign(1'100'000, enter);
  std::ofstream(folder.file("r"), std::ios::binary) << encode_recording(recording);
  std::shared_ptr<Session> session = sessions().add(ContextSource::kShadow, false);
  session->activate();
  ReplayCollector collector(Aggregator::instance(), folder.file("r"), false);
  collector.start();
  CHECK_THROWS(collector.flush(), Error);
  CHECK_EQ(this_thread().stack.depth(), 0);
  session->remove();
}
#endif

TEST(a_folder_is_not_a_recording) {
  ScratchFolder folder;
  CHECK_THROWS(read_recording(folder.file("")), Error);
}
