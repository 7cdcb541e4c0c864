// Copies: asked for by the first session of a process.
#include "check.h"
#include "collector/rocprofiler/rocprofiler_session.h"
#include "driver/hip/hip_abi.h"

using namespace proton;

namespace {

HipOptions with_copies(bool copies) {
  HipOptions options = rocprofiler_options();
  options.copies = copies;
  return options;
}

} // namespace

TEST(copies_and_sets_stand_below_their_scopes) {
  RocprofilerSession session(with_copies(true));
  {
    ScopeGuard scope("load");
    fake_amd_copy(hip::kCopyHostToDevice, 4096, 7);
    fake_amd_copy(hip::kCopyDeviceToHost, 100, 7);
    fake_amd_set(64, 7); // by a kernel of HIP's own, whose record does not tell the bytes
  }
  fake_amd_launch("k", 7);
  session.stop();
  CHECK_EQ(session.tree(), "load/<memcpy H2D>=1 load/<memcpy D2H>=1 load/<memset>=1 k=1 ");
  CHECK_EQ(session.tree("bytes"), "load/<memcpy H2D>=4096 load/<memcpy D2H>=100 load/<memset>=0 ");
  CHECK_EQ(session.lost(), 0);
  CHECK(session.counts().is_complete());
}

TEST(a_later_session_may_leave_them_out) {
  RocprofilerSession session(with_copies(false));
  fake_amd_copy(hip::kCopyHostToDevice, 4096, 7);
  fake_amd_set(64, 7);
  fake_amd_launch("k", 7);
  session.stop();
  CHECK_EQ(session.tree(), "k=1 ");
  CHECK_EQ(session.lost(), 0);
}
