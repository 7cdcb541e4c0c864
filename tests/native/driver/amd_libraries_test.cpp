// AMD's libraries are opened among candidates, say what they are, and every call that fails says
// what failed and what to do; on the doubles.
#include <cstdlib>
#include <string>
#include <vector>

#include "check.h"
#include "driver/hip/hip_driver.h"
#include "driver/hip/hsa_runtime.h"
#include "driver/rocprofiler/rocprofiler_library.h"
#include "driver/roctracer/roctracer_library.h"
#include "fake_amd/control.h"
#include "support/error.h"

using namespace proton;

namespace {

std::vector<LibraryCandidate> named(const char *variable) {
  const char *path = std::getenv(variable);
  CHECK(path != nullptr);
  return {{path, variable}};
}

template <typename Work> std::string error_of(Work work) {
  try {
    work();
  } catch (const Error &error) {
    CHECK(error.code() == ErrorCode::kUnavailable);
    return error.what();
  }
  return "";
}

bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST(the_first_candidate_that_loads_is_taken) {
  std::vector<LibraryCandidate> candidates = {{"/nowhere/libroctracer64.so", "first"}};
  candidates.push_back({"libroctracer_that_nobody_loaded.so", "second", true});
  candidates.push_back(named("PROTON_BENCH_ROCTRACER_LIB")[0]);
  RoctracerLibrary library = RoctracerLibrary::open(candidates);

  CHECK_EQ(library.origin(), std::string("PROTON_BENCH_ROCTRACER_LIB"));
  CHECK_EQ(library.version(), std::string("4.1"));
}

TEST(a_library_that_is_not_there_is_an_error_that_says_what_to_do) {
  const std::string none = "/nowhere/at-all.so";
  const struct {
    std::string text;
    const char *variable;
  } errors[] = {
      {error_of([&] { HipDriver::open({{none, "test"}}); }), "PROTON_BENCH_HIP_LIB"},
      {error_of([&] { HsaRuntime::open({{none, "test"}}); }), "PROTON_BENCH_HSA_LIB"},
      {error_of([&] { RoctracerLibrary::open({{none, "test"}}); }), "PROTON_BENCH_ROCTRACER_LIB"},
      {error_of([&] { RocprofilerLibrary::open({{none, "test"}}); }),
       "PROTON_BENCH_ROCPROFILER_LIB"},
      {error_of([&] { RoctxLibrary::open({{none, "test"}}); }), "PROTON_BENCH_ROCTX_LIB"},
  };
  for (const auto &error : errors) {
    CHECK(has(error.text, none));
    CHECK(has(error.text, error.variable));
  }
}

TEST(a_library_that_lacks_entry_points_is_an_error_that_names_them) {
  const std::vector<LibraryCandidate> other = {{"libm.so.6", "test"}};

  CHECK(has(error_of([&] { HipDriver::open(other); }), "lacks hipGetDeviceCount, "));
  CHECK(has(error_of([&] { HsaRuntime::open(other); }), "lacks hsa_init, "));
  CHECK(has(error_of([&] { RoctracerLibrary::open(other); }), "roctracer_open_pool_expl"));
  CHECK(has(error_of([&] { RocprofilerLibrary::open(other); }), "rocprofiler_force_configure"));
}

TEST(a_library_without_the_callback_of_roctx_only_says_no) {
  RoctxLibrary roctx = RoctxLibrary::open({{"libm.so.6", "test"}});

  CHECK(!roctx.set_callback(nullptr));
}

TEST(hip_describes_devices) {
  HipDriver hip = HipDriver::open(named("PROTON_BENCH_HIP_LIB"));
  const HipDeviceFacts second = hip.device(1);

  CHECK_EQ(hip.version(), std::string("7.1.25424"));
  CHECK_EQ(hip.device_count(), 2);
  CHECK_EQ(second.name, std::string("AMD Instinct MI300X"));
  CHECK_EQ(second.arch, std::string("gfx942"));
  CHECK_EQ(second.pci, std::string("0000:15:00.0"));
  CHECK_EQ(second.uuid, std::string("GPU-7a1c0000d0002222"));
  CHECK_EQ(second.compute_units, 304);
  CHECK_EQ(second.wave_size, 64);
  CHECK_EQ(hip.device(2).name, std::string());
}

TEST(the_gpus_of_rocr_have_the_places_of_those_of_hip) {
  HipDriver hip = HipDriver::open(named("PROTON_BENCH_HIP_LIB"));
  HsaRuntime hsa = HsaRuntime::open(named("PROTON_BENCH_HSA_LIB"));
  const std::vector<HsaGpu> gpus = hsa.gpus();

  CHECK_EQ(gpus.size(), 2U);
  for (size_t i = 0; i < gpus.size(); ++i) {
    const HipDeviceFacts facts = hip.device(static_cast<int>(i));
    CHECK_EQ(gpus[i].pci, facts.pci);
    CHECK_EQ(gpus[i].uuid, facts.uuid);
    CHECK_EQ(gpus[i].arch, facts.arch);
    CHECK_EQ(gpus[i].driver_node, 2 + i);
  }
}

TEST(waiting_for_devices_waits_for_each_and_keeps_the_threads_device) {
  HipDriver hip = HipDriver::open(named("PROTON_BENCH_HIP_LIB"));
  hip.functions().set_device(1);
  const uint64_t before = fake_amd_calls("hipDeviceSynchronize");
  int present = -1;

  CHECK_EQ(hip.synchronize(), static_cast<int>(hip::kSuccess));
  CHECK_EQ(fake_amd_calls("hipDeviceSynchronize") - before, 2U);
  hip.functions().get_device(&present);
  CHECK_EQ(present, 1);
}

TEST(every_failing_call_is_reported) {
  HipDriver hip = HipDriver::open(named("PROTON_BENCH_HIP_LIB"));
  HsaRuntime hsa = HsaRuntime::open(named("PROTON_BENCH_HSA_LIB"));
  const std::vector<LibraryCandidate> sdk = named("PROTON_BENCH_ROCPROFILER_LIB");

  fake_amd_fail("hipGetDeviceCount=100");
  CHECK(has(error_of([&] { hip.device_count(); }), "hipErrorFake100 (100)"));
  CHECK_EQ(hip.synchronize(), 100);
  for (const char *fault : {"hipGetDevice=3", "hipSetDevice=101", "hipDeviceSynchronize=700"}) {
    fake_amd_fail(fault);
    const bool is_told = hip.synchronize() != hip::kSuccess;
    CHECK_EQ(is_told, std::string(fault) != "hipGetDevice=3"); // the thread's device stays as is
  }
  fake_amd_fail("hipDeviceGetAttribute=1,hipDeviceGetName=1,hipDeviceGetPCIBusId=1,"
                "hipGetDevicePropertiesR0600=1,hipRuntimeGetVersion=1");
  CHECK_EQ(hip.device(0).name + hip.device(0).pci + hip.version(), std::string());
  fake_amd_fail("hsa_init=4104");
  CHECK(has(error_of([&] { hsa.gpus(); }), "hsa_init of "));
  CHECK(has(error_of([&] { hsa.gpus(); }), "(0x1008)"));
  fake_amd_fail("hsa_iterate_agents=4096");
  CHECK(has(error_of([&] { hsa.gpus(); }), "hsa_iterate_agents of "));
  fake_amd_fail("hsa_agent_get_info=4096");
  CHECK_EQ(hsa.gpus().size(), 0U);
  fake_amd_fail("rocprofiler_get_version=1");
  CHECK_EQ(RocprofilerLibrary::open(sdk).version(), std::string());
  fake_amd_fail(nullptr);
}

TEST(statuses_are_explained) {
  RoctracerLibrary tracer = RoctracerLibrary::open(named("PROTON_BENCH_ROCTRACER_LIB"));
  RocprofilerLibrary sdk = RocprofilerLibrary::open(named("PROTON_BENCH_ROCPROFILER_LIB"));

  CHECK_EQ(error_of([&] { tracer.check(roctracer::kSuccess, "roctracer_open_pool_expl"); }),
           std::string());
  const std::string taken = error_of([&] {
    tracer.check(roctracer::kErrorDefaultPoolAlreadyDefined, "roctracer_open_pool_expl");
  });
  CHECK(has(taken, "roctracer_open_pool_expl of "));
  CHECK(has(taken, "ROCTRACER_STATUS_ERROR_DEFAULT_POOL_ALREADY_DEFINED (-5)"));
  CHECK(has(taken, "end that one first"));
  CHECK_EQ(sdk.version(), std::string("1.2.1"));
  const std::string late = error_of(
      [&] { sdk.check(rocprofiler::kErrorConfigurationLocked, "rocprofiler_force_configure"); });
  CHECK(has(late, "(16)"));
  CHECK(has(late, "proton run -b rocprofiler"));
}
