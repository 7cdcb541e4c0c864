// How a test controls the doubles of AMD's libraries: C functions of libamdhip64.so, found with
// dlsym or ctypes. Each behaves like the HIP call it stands for, on the calling thread: callbacks
// of the profiler libraries that want it, then records. Their numbers of streams, graphs and
// executable graphs are small integers; devices are HIP's ordinals. [any thread]
//
// The machine has GPUs of the driver's nodes 2, 3, ...; ROCR_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES
// and CUDA_VISIBLE_DEVICES say which of them HIP has, by numbers or by "GPU-<16 digits>".
// Environment, read when the library is loaded:
//   FAKE_AMD_GPUS  number of GPUs (2)
//   FAKE_AMD_FAIL  entry points that return a code: see fault_table.h. Names are those of the
//                  vendor, of any of the doubles; "*" counts the calls of all of them
//   FAKE_AMD_DISORDER  set: kernels of graphs run backwards, and records of a delivery come so
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct FakeAmdLaunch {
  const char *name = "kernel";
  uint64_t duration_ns = 1000;
  uint32_t device = 0;
  uint32_t stream = 7;
  uint32_t grid[3] = {1, 1, 1}; ///< workgroups
  uint32_t block[3] = {64, 1, 1};
  uint32_t shared_bytes = 0;
  uint32_t call = 0;          ///< FakeAmdCall
  uint32_t missing_items = 0; ///< that the last workgroup of x lacks
};

/// Which call launches.
enum FakeAmdCall : uint32_t {
  kFakeModuleLaunch = 0,
  kFakeLaunch = 1,
  kFakeExtModuleLaunch = 2,
  kFakeCooperative = 3,
  kFakeModuleCooperative = 4,
  kFakeLaunchExC = 5,
  kFakeDrvLaunchEx = 6,
  kFakeExtLaunch = 7,
};

// Launches; the answer is the correlation id.
uint64_t fake_amd_launch(const char *name, uint32_t stream);
uint64_t fake_amd_launch_as(const FakeAmdLaunch *launch);
uint64_t fake_amd_failing_launch(const char *name, int result);
/// `kind` is proton::hip::CopyKind.
uint64_t fake_amd_copy(int kind, uint64_t bytes, uint32_t stream);
uint64_t fake_amd_set(uint64_t bytes, uint32_t stream);
/// Nanoseconds for each of `count` launches of two kernels in turn.
double fake_amd_bench(uint64_t count);

/// ROCTX ranges, as the profiler libraries receive them; libroctx64.so has its own callback.
void fake_amd_range_push(const char *message);
void fake_amd_range_pop();
void fake_amd_mark(const char *message);

// Between capture_begin and capture_end launches on the stream become nodes instead of records.
void fake_amd_capture_begin(uint32_t stream);
uint32_t fake_amd_capture_end(uint32_t stream);
/// `joining` takes part in the capture of `captured`, as after waiting for an event of it.
void fake_amd_capture_join(uint32_t captured, uint32_t joining);
uint32_t fake_amd_graph_create();
void fake_amd_graph_add_kernel(uint32_t graph, const char *name);
void fake_amd_graph_add_child(uint32_t graph, uint32_t child);
uint32_t fake_amd_graph_clone(uint32_t graph);
uint32_t fake_amd_graph_instantiate(uint32_t graph);
/// Takes the kernels of `graph` over; both have as many nodes.
void fake_amd_graph_update(uint32_t graph_exec, uint32_t graph);
uint64_t fake_amd_graph_launch(uint32_t graph_exec, uint32_t stream);
void fake_amd_graph_destroy(uint32_t graph);
void fake_amd_graph_exec_destroy(uint32_t graph_exec);
/// From now on kernels of graphs run in the order of their nodes (0), or backwards (1), as
/// independent branches of a graph may.
void fake_amd_graph_order(int order);

// The devices and the libraries.
/// While a device (HIP's ordinal) is held its records are not complete: only hipDeviceSynchronize,
/// or release, completes them.
void fake_amd_hold(uint32_t device);
void fake_amd_release(uint32_t device);
void fake_amd_drop(uint64_t records);  ///< the next records are lost by the profiler library
void fake_amd_shuffle(int is_on);      ///< records of a delivery come in reverse order
void fake_amd_hide_kernels(int is_on); ///< rocprofiler-sdk does not report new kernels
void fake_amd_set_correlation(uint64_t next);
void fake_amd_set_clock(uint64_t next_ns); ///< start of the next record, and the libraries' clock
void fake_amd_fail(const char *faults);    ///< instead of FAKE_AMD_FAIL; null: none
uint64_t fake_amd_calls(const char *entry_point); ///< how often it was called; "*": all of them
/// Waits until full buffers of the profiler libraries are delivered.
void fake_amd_drain();
/// Starts HIP and ROCr, as the program's first use of the GPU does: tools are too late then.
void fake_amd_start_runtime();
/// Records that the profiler libraries hold and have not delivered.
uint64_t fake_amd_records_waiting();
/// Whether a HIP call is reported, by its name: "hipGraphLaunch".
int fake_amd_is_traced(const char *call);
}
