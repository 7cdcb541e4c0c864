// Driver calls that manage memory, as operators that are open meanwhile.
#include <string>

#include "check.h"
#include "collector/cupti/callbacks/callbacks.h"
#include "collector/cupti/control/cupti_session.h"
#include "context/thread/host_range.h"
#include "driver/own_work.h"

using namespace proton;

namespace {

/// Calls back as the library does.
void call(uint32_t cbid, cupti::Site site) {
  static MemoryCalls calls;
  cupti::CallbackData data{};
  data.site = site;
  calls.handle(cupti::kDomainDriver, cbid, &data);
}

/// The names of the frames that are open on this thread.
std::string open_frames() {
  std::string text;
  for (const NamedFrame &frame : current_path())
    text += std::string(frame.name.text()) + " ";
  return text;
}

constexpr uint32_t kAlloc = 243, kFree = 245;

} // namespace

TEST(a_call_is_open_until_it_ends) {
  CuptiSession session;
  ScopeGuard scope("step");
  call(kAlloc, cupti::kEnter);
  CHECK_EQ(open_frames(), "step cuMemAlloc ");
  call(kAlloc, cupti::kExit);
  CHECK_EQ(open_frames(), "step ");
}

TEST(a_call_whose_end_is_not_reported_ends_with_the_next) {
  CuptiSession session;
  call(kAlloc, cupti::kEnter);
  call(kFree, cupti::kEnter);
  CHECK_EQ(open_frames(), "cuMemFree ");
  call(kFree, cupti::kExit);
  CHECK_EQ(open_frames(), "");
  call(kFree, cupti::kExit); // began before the session
  CHECK_EQ(open_frames(), "");
}

TEST(memory_of_the_profiler_is_not_of_the_target) {
  CuptiSession session;
  OwnWork own;
  call(kAlloc, cupti::kEnter);
  CHECK_EQ(open_frames(), "");
  call(kAlloc, cupti::kExit);
}

TEST(calls_without_a_session_open_nothing) {
  call(kAlloc, cupti::kEnter);
  CHECK_EQ(open_frames(), "");
  call(kAlloc, cupti::kExit);
}

TEST(each_number_has_one_name_and_one_listener) {
  for (const cupti::MemoryCall &one : cupti::kMemoryCalls) {
    size_t equal = 0;
    for (const cupti::MemoryCall &other : cupti::kMemoryCalls)
      equal += one.cbid == other.cbid;
    CHECK_EQ(equal, 1u);
    for (uint32_t copy : cupti::kCopyCalls)
      CHECK(copy != one.cbid);
  }
}
