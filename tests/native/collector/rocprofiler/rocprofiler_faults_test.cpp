// Every call of AMD's libraries fails in turn: a start says so, and later failures are counted. A
// process registers once with rocprofiler-sdk, so each case has a child of its own, and the parent
// starts nothing.
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "check.h"
#include "collector/rocprofiler/rocprofiler_session.h"

using namespace proton;

namespace {

/// Runs `part` in a child; true when it ended well and said yes.
template <typename Part> bool in_child(Part part) {
  pid_t child = fork();
  if (child == 0) {
    bool is_fine = false;
    try {
      is_fine = part();
    } catch (...) {
    }
    _exit(is_fine ? 0 : 1);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

std::string error_with(const std::string &fault) {
  HipOptions options = rocprofiler_options();
  options.copies = true;
  fake_amd_fail(fault.c_str());
  std::string error = error_of_starting<RocprofilerCollector>(options);
  fake_amd_fail(nullptr);
  return error;
}

/// A session in which a call fails from some launch on: it ends, and what is missing is counted.
bool survives(const std::string &fault) {
  RocprofilerSession session;
  fake_amd_launch("before", 7);
  fake_amd_fail(fault.c_str());
  fake_amd_capture_begin(7);
  fake_amd_launch("node", 7);
  uint32_t exec = fake_amd_graph_instantiate(fake_amd_capture_end(7));
  fake_amd_graph_launch(exec, 7);
  fake_amd_launch("after", 7);
  session.collector.flush();
  session.stop();
  fake_amd_fail(nullptr);
  RecordCounts counts = session.counts();
  return counts.records + session.lost() >= 3;
}

} // namespace

TEST(a_start_that_fails_says_which_call_failed_and_what_to_do) {
  for (const char *function :
       {"rocprofiler_force_configure", "rocprofiler_create_context", "rocprofiler_create_buffer",
        "rocprofiler_create_callback_thread", "rocprofiler_assign_callback_thread",
        "rocprofiler_configure_callback_tracing_service",
        "rocprofiler_configure_buffer_tracing_service",
        "rocprofiler_configure_external_correlation_id_request_service",
        "rocprofiler_query_available_agents", "rocprofiler_start_context"}) {
    bool is_told = in_child([&] {
      std::string error = error_with(std::string(function) + "=16");
      return holds(error, function) && holds(error, "16") && holds(error, "proton run");
    });
    CHECK_EQ(std::string(is_told ? "" : function), "");
  }
}

TEST(each_later_call_of_the_configuration_may_fail_too) {
  for (int call = 1; call <= 16; ++call) {
    bool is_told = in_child([&] {
      std::string error = error_with("*@" + std::to_string(call) + "=1");
      // What is not needed to begin may fail without an error.
      return error.empty() || holds(error, "failed");
    });
    CHECK_EQ(is_told ? 0 : call, 0);
  }
}

TEST(a_registration_that_failed_is_not_tried_again) {
  CHECK(in_child([] {
    std::string first = error_with("rocprofiler_create_buffer=29");
    std::string second = error_of_starting<RocprofilerCollector>(rocprofiler_options());
    return holds(second, "rocprofiler_create_buffer") && holds(second, "once per process");
  }));
}

TEST(a_start_after_hip_says_that_it_is_too_late) {
  CHECK(in_child([] {
    fake_amd_start_runtime();
    std::string error = error_of_starting<RocprofilerCollector>(rocprofiler_options());
    return holds(error, "proton run -b rocprofiler");
  }));
}

TEST(no_library_is_an_error_that_says_where_it_was_looked_for) {
  CHECK(in_child([] {
    HipOptions options = rocprofiler_options();
    options.candidates = {{"/nowhere/librocprofiler-sdk.so", "test", false}};
    std::string error = error_of_starting<RocprofilerCollector>(options);
    return holds(error, "/nowhere/librocprofiler-sdk.so") &&
           holds(error, "PROTON_BENCH_ROCPROFILER_LIB");
  }));
}

TEST(calls_that_fail_while_it_records_are_counted_losses_or_harmless) {
  for (const char *function :
       {"rocprofiler_flush_buffer", "rocprofiler_get_timestamp", "hipGetDeviceCount",
        "hipGetDevice", "hipSetDevice", "hipDeviceSynchronize", "hipStreamGetCaptureInfo_v2",
        "hipGraphGetNodes", "hipKernelNameRef", "hipGetDevicePropertiesR0600",
        "hipDeviceGetPCIBusId", "hipDeviceGetAttribute"}) {
    bool is_fine = in_child([&] { return survives(std::string(function) + "=999"); });
    CHECK_EQ(std::string(is_fine ? "" : function), "");
  }
}

TEST(a_child_that_was_forked_from_a_recording_process_says_what_to_do) {
  CHECK(in_child([] {
    RocprofilerSession session;
    fake_amd_launch("k", 7);
    bool is_told = in_child([] {
      std::string error = error_of_starting<RocprofilerCollector>(rocprofiler_options());
      fake_amd_launch("in the child", 7); // callbacks do nothing there
      return holds(error, "forked") && holds(error, "spawn");
    });
    session.stop();
    return is_told && session.tree() == "k=1 ";
  }));
}

TEST(records_that_a_library_hands_over_in_a_forked_child_are_left_aside) {
  CHECK(in_child([] {
    HipOptions options = rocprofiler_options();
    options.buffer_bytes = 65536;
    RocprofilerSession session(options);
    fake_amd_launch("k", 7);
    bool is_left = in_child([&] {
      for (int i = 0; i < 5000; ++i) // full buffers are handed over
        fake_amd_launch("in the child", 7);
      return session.counts().records == 0;
    });
    session.stop();
    return is_left && session.tree() == "k=1 ";
  }));
}
