#include "session/signal_facts.h"

#include "check.h"
#include "writer/bytes/msgpack_bytes.h"

using namespace proton;

namespace {

std::string map_of(size_t entries) {
  MsgpackBytes bytes;
  bytes.map(entries);
  for (size_t i = 0; i < entries; ++i) {
    bytes.text("key" + std::to_string(i));
    bytes.count(i);
  }
  return bytes.take();
}

// The map's head and everything up to the added facts.
std::string front(size_t added_to, size_t entries) {
  MsgpackBytes head;
  head.map(entries);
  std::string before = map_of(added_to);
  size_t skipped = added_to < 16 ? 1 : added_to < 65536 ? 3 : 5;
  return head.take() + before.substr(skipped);
}

bool starts_with(const std::string &text, const std::string &start) {
  return text.compare(0, start.size(), start) == 0;
}

} // namespace

TEST(facts_are_added_to_maps_of_every_size) {
  for (size_t entries : {0, 1, 13, 14, 15, 16, 17, 70000}) {
    std::string added = with_signal_facts(map_of(entries), "SIGTERM");
    CHECK(starts_with(added, front(entries, entries + 2)));
    CHECK(added.find("SIGTERM") != std::string::npos);
    CHECK(added.find("end_time_ns") != std::string::npos);
  }
}

TEST(no_provenance_becomes_a_map_of_the_facts) {
  CHECK(starts_with(with_signal_facts("", "SIGHUP"), front(0, 2)));
}

TEST(what_is_no_map_comes_back_as_it_was) {
  CHECK_EQ(with_signal_facts("\x93", "SIGTERM"), "\x93");
  CHECK_EQ(with_signal_facts("\xDF", "SIGTERM"), "\xDF"); // cut short
}
