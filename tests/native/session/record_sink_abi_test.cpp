// The C interface as a collector of a third party uses it, against the real aggregator.
#include "session/record_sink_abi.h"

#include <atomic>
#include <thread>
#include <vector>

#include "check.h"
#include "session/session_registry.h"
#include "tree_value.h"

using namespace proton;

namespace {

const pb_record_sink &sink() { return *record_sink_abi(); }

pb_kernel_record kernel(uint64_t id, const char *name, const pb_variant_record *variant = nullptr) {
  pb_kernel_record record{};
  record.correlation_id = id;
  record.start_ns = 100;
  record.end_ns = 130;
  record.name = name;
  record.variant = variant;
  record.device_kind = "ACME";
  record.device_index = 2;
  return record;
}

struct ActiveSession {
  std::shared_ptr<Session> core = SessionRegistry::instance().add(ContextSource::kShadow, false);
  ActiveSession() { core->activate(); }
  ~ActiveSession() { core->remove(); }
  std::string json() const { return tree_text(*core); }
};

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST(a_session_that_pauses_during_a_capture_loses_nothing) {
  ActiveSession session;
  std::atomic<bool> pauses{true};
  std::thread pausing([&] {
    while (pauses) {
      session.core->deactivate();
      session.core->activate();
    }
  });
  for (int buffer = 0; buffer < 200; ++buffer) {
    std::vector<pb_kernel_record> records;
    for (int i = 0; i < 500; ++i)
      if (uint64_t id = sink().capture(sink().self, nullptr))
        records.push_back(kernel(id, "k"));
    sink().complete_kernels(sink().self, records.data(), records.size());
  }
  pauses = false;
  pausing.join();
  CHECK_EQ(session.core->losses().size(), 0);
  CHECK(session.core->counts().is_complete());
}

TEST(the_sink_is_usable_and_lives_for_the_process) {
  CHECK(pb_record_sink_usable(&sink()));
  CHECK(record_sink_abi() == record_sink_abi());
}

TEST(nothing_is_captured_without_a_session) {
  pb_token token{};
  token.correlation_id = 9;
  CHECK_EQ(sink().capture(sink().self, &token), 0);
  CHECK_EQ(token.correlation_id, 0);
}

TEST(a_kernel_of_a_new_kind_of_device_is_recorded) {
  ActiveSession session;
  pb_token token{};
  uint64_t id = sink().capture(sink().self, &token);
  CHECK_EQ(token.correlation_id, id);
  pb_kernel_record record = kernel(id, "theirs");
  sink().complete_kernels(sink().self, &record, 1);
  CHECK(contains(session.json(), R"json("count":1,"device_id":"2","device_type":"ACME")json"));
  CHECK(contains(session.json(), R"json("time (ns)":30})json"));
}

TEST(buffers_may_be_reused_at_once) {
  ActiveSession session;
  std::string name = "first", signature = "i32";
  pb_variant_record variant{};
  variant.grid[0] = 5;
  variant.signature = signature.c_str();
  pb_kernel_record record = kernel(sink().capture(sink().self, nullptr), name.c_str(), &variant);
  sink().complete_kernels(sink().self, &record, 1);
  name = "xxxxx";
  signature = "xxx";
  variant = {};
  CHECK(contains(session.json(), R"("name":"first")"));
}

TEST(failed_and_lost_launches_complete_the_counts) {
  ActiveSession session;
  sink().failed(sink().self, sink().capture(sink().self, nullptr));
  sink().dropped(sink().self, "buffer full", 4);
  RecordCounts counts = session.core->counts();
  CHECK_EQ(counts.failed, 1);
  CHECK(counts.is_complete());
  CHECK_EQ(session.core->losses()["buffer full"], 4);
}
