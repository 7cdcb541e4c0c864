// How a test controls the double of libcupti: C functions of libcupti.so, found with dlsym or
// ctypes. Each behaves like the driver call it stands for, on the calling thread: callbacks that
// the subscriber enabled, then records of the kinds that are enabled. [any thread]
//
// Environment, read when the library is loaded:
//   FAKE_CUPTI_VERSION  what cuptiGetVersion answers (26); from 130500 on kernel records are longer
//   FAKE_CUPTI_FAIL     "cuptiActivityEnable=15,cuptiSubscribe=39": entry points that return a
//   code;
//                       "cuptiEnableCallback@3=1" fails the third call only
//   FAKE_CUPTI_CLOCK    "real": as fake_cupti_real_clock
//   FAKE_CUPTI_GPU      file: kernels and counters are those of all processes that have it
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct FakeLaunch {
  const char *name = "kernel";
  uint64_t duration_ns = 1000;
  uint32_t device = 0;
  uint32_t context = 1;
  uint32_t stream = 7;
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {32, 1, 1};
  uint32_t shared_bytes = 0;
  uint32_t registers = 16;
  uint32_t local_bytes = 0; // of a thread
  uint32_t cbid = 652;
};

// Launches; the answer is the correlation id.
uint32_t fake_cupti_launch(const char *name, uint32_t stream);
uint32_t fake_cupti_launch_as(const FakeLaunch *launch);
uint32_t fake_cupti_failing_launch(const char *name, int result);
/// `kind` is proton::cupti::CopyKind.
uint32_t fake_cupti_copy(int kind, uint64_t bytes, uint32_t stream);
uint32_t fake_cupti_set(uint64_t bytes, uint32_t stream);
/// Nanoseconds for each of `count` launches of two kernels in turn.
double fake_cupti_bench(uint64_t count);

void fake_cupti_nvtx_push(const char *message);
void fake_cupti_nvtx_pop();

// Graphs and executable graphs, by the ids that cuptiGetGraphId and cuptiGetGraphExecId answer.
// Between capture_begin and capture_end launches on the stream become nodes instead of records.
void fake_cupti_capture_begin(uint32_t stream); ///< in mode global
void fake_cupti_capture_begin_as(uint32_t stream, int mode);
uint32_t fake_cupti_capture_end(uint32_t stream);
/// A thread waited for the context: open captures, if there are any, fail (graph 0).
void fake_cupti_break_captures(int *were_open);
/// A thread in this mode made a call that is potentially unsafe: the same for captures that it may
/// not be made beside.
void fake_cupti_unsafe_call(int mode, int *is_refused);
uint64_t fake_cupti_broken_captures(); ///< how many came to nothing
/// `joining` takes part in the capture of `captured`, as after waiting for an event of it.
void fake_cupti_capture_join(uint32_t captured, uint32_t joining);
uint32_t fake_cupti_graph_create();
uint64_t fake_cupti_graph_add_kernel(uint32_t graph, const char *name, uint32_t stream);
void fake_cupti_graph_add_child(uint32_t graph, uint32_t child);
uint32_t fake_cupti_graph_clone(uint32_t graph);
uint32_t fake_cupti_graph_instantiate(uint32_t graph);
/// Takes the kernels of `graph` over; both have as many nodes.
void fake_cupti_graph_update(uint32_t graph_exec, uint32_t graph);
uint32_t fake_cupti_graph_launch(uint32_t graph_exec, uint32_t stream);
void fake_cupti_graph_destroy(uint32_t graph);
void fake_cupti_graph_exec_destroy(uint32_t graph_exec);

void fake_cupti_context_created(uint32_t context);
void fake_cupti_context_destroyed(uint32_t context);
/// A module whose cubin has this CRC.
void fake_cupti_module_loaded(uint32_t module, uint64_t crc, size_t bytes);
void fake_cupti_module_unloaded(uint32_t module);

// Samples of program counters in sampled contexts: their number follows from the duration of
// kernels and the period, over a few instructions and stall reasons.
void fake_cupti_pc_module(const char *kernel, uint64_t crc); ///< the kernel is of that module
void fake_cupti_pc_answer(size_t most_pcs);                  ///< of one answer; 0: as many as fit
void fake_cupti_pc_drop(uint32_t context, uint64_t samples); ///< the next ones are dropped
void fake_cupti_pc_driver_kernel(uint32_t context, uint64_t samples); ///< these have no PC
/// The buffers are full: nothing more comes until the context is disabled and enabled again.
void fake_cupti_pc_overrun(uint32_t context);
uint32_t fake_cupti_pc_period(uint32_t context); ///< as an exponent; 0: it is not sampled
/// How often sampling was switched while another thread was in a call of the driver.
uint64_t fake_cupti_pc_collisions();
uint64_t fake_cupti_pc_waiting(); ///< PCs that were not taken
/// Samples with a PC made so far: with a reason, or (1) the part of moments when nothing was
/// issued.
uint64_t fake_cupti_pc_made(int not_issued);

// Hardware counters: a sample's values follow from the names of the kernels that ran in it. They
// need a clock that runs.
/// Times are those of the host's clock from now on, as FAKE_CUPTI_CLOCK=real asks for at the load:
/// a kernel begins when it is launched, or when the one before it ends.
void fake_cupti_real_clock();
uint64_t fake_cupti_pm_bursts();                  ///< that were decoded
void fake_cupti_pm_buffer(uint64_t most_samples); ///< of the hardware's buffer; 0: enough
void fake_cupti_pm_lag(uint64_t ns);              ///< bursts end so much after they are stopped

// The device and the library.
/// While a context is held its records are not complete: only cuCtxSynchronize of the double of
/// libcuda, or release, completes them.
void fake_cupti_hold(uint32_t context);
void fake_cupti_release(uint32_t context);
void fake_cupti_drop(uint64_t records);             ///< lost by the next completed buffer
void fake_cupti_set_correlation(uint32_t next);     ///< id of the next call
void fake_cupti_set_clock(uint64_t next_ns);        ///< start of the next record
void fake_cupti_fail(const char *faults);           ///< instead of FAKE_CUPTI_FAIL; null: none
void fake_cupti_other_subscriber(const char *name); ///< another tool holds libcupti; null: none
/// Another profiler of this process begins (1) to give CUPTI its buffers, or ends (0).
void fake_cupti_other_profiler(int is_on);
uint64_t fake_cupti_other_profiler_buffers();         ///< its own that came back to it
uint64_t fake_cupti_other_profiler_foreign_buffers(); ///< those of others that came to it
/// Another subscriber of V2, which allows several and records kernels, begins; null: it ends.
/// Returns kErrorMultipleSubscribers if the present subscriber is in its way.
int fake_cupti_other_client(const char *name);
uint64_t fake_cupti_other_client_records();
uint64_t fake_cupti_other_client_forced();          ///< flushes that ended its records early
void fake_cupti_drain();                            ///< waits until full buffers are delivered
void fake_cupti_period_elapsed();                   ///< what the flush period does when it ends
uint64_t fake_cupti_calls(const char *entry_point); ///< how often it was called
int fake_cupti_is_enabled(int domain, uint32_t cbid);
int fake_cupti_is_kind_enabled(int kind);
uint64_t fake_cupti_buffers_outstanding();                ///< requested and not yet completed
int fake_cupti_attribute(int attribute, uint64_t *value); ///< 1 if it was set

// Replay of a recorded stream (stream_format.h, not gzipped). `on_mark` is called on the thread of
// each mark with its text; it may be null. Every thread of the stream is a thread of its own, and
// they take turns in the order of the recording. Returns 0, or -1 if the file is not a stream.
typedef void (*FakeMark)(const char *text);
int fake_cupti_replay(const char *path, FakeMark on_mark);
}
