// Beside other clients of CUPTI's second interface (V2): what is recorded, what is left alone, and
// what is refused.
#include <cstdlib>
#include <string>

#include "check.h"
#include "collector/cupti/control/cupti_session.h"

using namespace proton;

namespace {

constexpr const char *kOther = "CUPTI for XLA";

/// Call before the first start of the process: the library is asked for its version once.
CuptiOptions options_13_3(bool shared = false) {
  setenv("FAKE_CUPTI_VERSION", "130300", 1);
  setenv("FAKE_CUDA_VERSION", "13030", 1);
  CuptiOptions options = double_options();
  options.shared = shared;
  return options;
}

class OtherClient {
public:
  OtherClient() : result(fake_cupti_other_client(kOther)) {}
  ~OtherClient() { fake_cupti_other_client(nullptr); }
  OtherClient(const OtherClient &) = delete;
  OtherClient &operator=(const OtherClient &) = delete;
  const int result;
};

std::string recorded(const CuptiOptions &options) {
  CuptiSession session(options);
  {
    ScopeGuard scope("step");
    fake_cupti_launch("first", 7);
    fake_cupti_copy(cupti::kCopyHostToDevice, 64, 7);
  }
  session.collector.flush();
  fake_cupti_launch("second", 9);
  session.stop();
  return session.tree() + session.tree("time") + session.losses();
}

} // namespace

TEST(records_beside_another_client_are_those_of_an_only_one) {
  CuptiOptions options = options_13_3();
  options.copies = true;
  const std::string alone = recorded(options);
  const uint64_t before = fake_cupti_other_client_records();
  std::string beside;
  {
    OtherClient other;
    beside = recorded(options);
  }
  CHECK(holds(alone, "step/first=1"));
  CHECK_EQ(beside, alone);
  CHECK_EQ(fake_cupti_other_client_records() - before, 2u);
  CHECK_EQ(recorded(options), alone); // by V1 again
}

TEST(what_is_cupti_s_as_a_whole_is_left_alone) {
  CuptiOptions options = options_13_3();
  options.flush_period_ms = 100;
  OtherClient other;
  const char *kGlobal[] = {"cuptiActivityFlushPeriod", "cuptiActivityRegisterTimestampCallback",
                           "cuptiFinalize", "cuptiActivityEnable"};
  uint64_t calls = 0;
  for (const char *function : kGlobal)
    calls += fake_cupti_calls(function);
  CuptiSession session(options);
  fake_cupti_launch("k", 7);
  CHECK_EQ(*session.collector.facts().shared_with, kOther);
  session.stop();
  CHECK_EQ(session.collector.facts().clock, "vendor");
  for (const char *function : kGlobal)
    calls -= fake_cupti_calls(function);
  CHECK_EQ(calls, 0u);
  CHECK_EQ(fake_cupti_other_client_forced(), 0u);
}

TEST(a_shared_session_lets_other_clients_come_and_go) {
  for (bool leaves_first : {true, false}) {
    const uint64_t before = fake_cupti_other_client_records();
    CuptiSession session(options_13_3(true));
    CHECK_EQ(*session.collector.facts().shared_with, "");
    fake_cupti_launch("alone", 7);
    {
      OtherClient other;
      CHECK_EQ(other.result, 0);
      fake_cupti_launch("both", 7);
      if (!leaves_first)
        session.stop();
      fake_cupti_launch("theirs", 7);
    }
    if (leaves_first) {
      fake_cupti_launch("after", 7);
      session.stop();
    }
    CHECK_EQ(session.tree(), leaves_first ? "alone=1 both=1 theirs=1 after=1 " : "alone=1 both=1 ");
    CHECK_EQ(fake_cupti_other_client_records() - before, 2u);
  }
}

TEST(a_session_of_its_own_keeps_others_out) {
  CuptiSession session(options_13_3());
  CHECK(!session.collector.facts().shared_with);
  CHECK_EQ(OtherClient().result, cupti::kErrorMultipleSubscribers);
}

TEST(a_client_of_the_first_interface_is_named) {
  for (bool shared : {false, true}) {
    fake_cupti_other_subscriber("Kineto");
    const std::string error = error_of_start(options_13_3(shared));
    fake_cupti_other_subscriber(nullptr);
    CHECK(holds(error, shared ? "cuptiSubscribe_v2 of" : "cuptiSubscribe of"));
    CHECK(holds(error, "held by 'Kineto'"));
    CHECK_EQ(error_of_start(options_13_3(shared)), "");
  }
}

TEST(an_older_driver_is_not_asked_for_the_second_interface) {
  OtherClient other;
  for (bool shared : {false, true}) {
    const CuptiOptions options = options_13_3(shared);
    setenv("FAKE_CUDA_VERSION", "13000", 1);
    CHECK(holds(error_of_start(options), shared ? "the driver of 13.0" : "ERROR_39"));
  }
}

TEST(a_second_interface_that_is_refused_ends_as_before) {
  OtherClient other;
  for (bool shared : {false, true}) {
    fake_cupti_fail("cuptiSubscribe_v2=27");
    const std::string error = error_of_start(options_13_3(shared));
    fake_cupti_fail(nullptr);
    CHECK(holds(error, shared ? "ERROR_27" : "ERROR_39"));
  }
}

TEST(what_needs_cupti_for_itself_is_refused_beside_others) {
  for (int part = 0; part < 3; ++part) {
    CuptiOptions options = options_13_3();
    options.whole_graphs = part == 0;
    options.hardware_trace = part == 1;
    options.pc_sampling.mode = part == 2 ? PcSamplingMode::kContinuous : PcSamplingMode::kOff;
    {
      OtherClient other;
      CHECK(holds(error_of_start(options), "held by 'CUPTI for XLA'"));
    }
    options.shared = true;
    CHECK(holds(error_of_start(options), "needs CUPTI for itself"));
  }
}

TEST(a_start_beside_others_that_fails_leaves_nothing_on) {
  OtherClient other;
  for (const char *function :
       {"cuptiActivityRegisterCallbacks", "cuptiActivityEnable", "cuptiEnableCallback"}) {
    const bool is_v2 = std::string(function) != "cuptiEnableCallback";
    fake_cupti_fail((function + std::string(is_v2 ? "_v2=999" : "=999")).c_str());
    const std::string error = error_of_start(options_13_3());
    fake_cupti_fail(nullptr);
    CHECK(holds(error, function));
    CHECK_EQ(fake_cupti_is_kind_enabled(cupti::kKindConcurrentKernel), 0);
    CHECK_EQ(fake_cupti_is_enabled(cupti::kDomainDriver, cupti::kCuLaunchKernelEx), 0);
    CHECK_EQ(error_of_start(options_13_3()), "");
  }
}

TEST(records_that_cupti_drops_beside_others_are_counted) {
  OtherClient other;
  CuptiSession session(options_13_3());
  fake_cupti_launch("k", 7);
  fake_cupti_drop(3);
  session.stop();
  CHECK_EQ(session.lost("records dropped by CUPTI"), 3u);
}
