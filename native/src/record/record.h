// Records: each is one fact from one source. Plain data, int64 nanoseconds of CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace proton {

using ContextId = uint32_t; ///< node of the process-wide context tree; 0 is its root
using EpochId = uint32_t;   ///< names the set of active sessions and the phase of each; 0 is none

/// Threads of the program have numbers from 0, in the order in which they are first seen.
inline constexpr uint32_t kNoThread = 0xffffffffu;

/// What a frame of a call path stands for. The numbers are those of FrameKind in Python.
enum class FrameKind : uint8_t {
  kUnknown = 0,
  kRoot = 1,
  kScope = 2,
  kOp = 3,
  kKernel = 4,
  kState = 5,
  kPython = 6,
  kCopy = 7,
  kGraph = 8,
  kLine = 9,
  kTest = 10,
  kLayer = 11,
  kContextOp = 0xff, ///< a kOp that only sessions with operators in their paths show
};

/// Where a thread stood when something happened.
struct Capture {
  ContextId shadow = 0; ///< scopes, states and ops
  ContextId python = 0; ///< Python frames; 0 unless a session asks for them
  EpochId epoch = 0;    ///< 0: no session was active
};

enum class LaunchKind : uint8_t {
  kKernel, ///< a device record will come
  kCopy,   ///< a copy or set: a device record may come, or none (from host to host)
  kCopies, ///< a batch of copies: records come until it is settled
  kGraph,  ///< a graph: records of its nodes will come, as many as its layout says
};

/// What an entry in a thread's log of launches says; the first member of each.
enum class LaunchEntryKind : uint8_t {
  kLaunch,  ///< LaunchRecord
  kReturn,  ///< CallReturn
  kRetract, ///< LaunchRetraction
  kScopes,  ///< KernelScopesNote
  kThread,  ///< ThreadChange
};

/// A launch call was entered. [launching thread]
struct LaunchRecord {
  LaunchEntryKind entry : 3 = LaunchEntryKind::kLaunch;
  LaunchKind kind : 3 = LaunchKind::kKernel;
  bool awaits_return : 1 = false; ///< a CallReturn follows
  bool has_tick_time : 1 = false; ///< `called_ns` is of TickClock, as until it is consumed
  uint32_t code : 24 = 0; ///< from intern_code; of a graph the number of its layout; 0: unknown
  Capture at;
  uint64_t correlation_id = 0; ///< not 0
  int64_t called_ns = 0;       ///< when the call was entered; 0: unknown
};

/// The call of an earlier launch of the same thread returned.
struct CallReturn {
  LaunchEntryKind entry : 3 = LaunchEntryKind::kReturn;
  uint64_t correlation_id = 0;
  int64_t returned_tick_ns = 0; ///< of TickClock
};

/// Takes an earlier launch of the same thread back: no record will come.
struct LaunchRetraction {
  LaunchEntryKind entry : 3 = LaunchEntryKind::kRetract;
  uint64_t correlation_id = 0;
};

/// An earlier launch of the same thread has scopes inside, whose records come by themselves.
struct KernelScopesNote {
  LaunchEntryKind entry : 3 = LaunchEntryKind::kScopes;
  uint64_t correlation_id = 0;
};

/// What follows in the log is of another thread, which has the log now.
struct ThreadChange {
  LaunchEntryKind entry : 3 = LaunchEntryKind::kThread;
  uint32_t number = kNoThread;
};

/// What a thread notes of its launches, in the order in which it made them.
union LaunchEntry {
  LaunchRecord launch;
  CallReturn returned;
  LaunchRetraction retraction;
  KernelScopesNote scopes;
  ThreadChange thread;

  LaunchEntry() : launch{} {}
  LaunchEntry(const LaunchRecord &record) : launch(record) {}
  LaunchEntry(const CallReturn &record) : returned(record) {}
  LaunchEntry(const LaunchRetraction &record) : retraction(record) {}
  LaunchEntry(const KernelScopesNote &record) : scopes(record) {}
  LaunchEntry(const ThreadChange &record) : thread(record) {}
  /// All begin with it.
  LaunchEntryKind kind() const { return launch.entry; }
};
static_assert(sizeof(LaunchRecord) == 32 && sizeof(LaunchEntry) == 32,
              "a program makes hundreds of thousands per second");

/// What an entry in a thread's log of ranges and values says; the first member of each.
enum class HostEntryKind : uint8_t {
  kRange,       ///< RangeRecord
  kValue,       ///< ValueRecord
  kLaunchValue, ///< LaunchValueRecord
  kNoValue,     ///< NoLaunchValue
  kCount,       ///< CountRecord
};

enum class RangeKind : uint8_t { kScope, kOp, kKernel, kSeen };

/// A range of host time ended: a scope, a torch operator or an interpreted kernel. kSeen only says
/// that a scope was open in the epoch, so that it is in the tree even when nothing ran inside.
struct RangeRecord {
  HostEntryKind entry = HostEntryKind::kRange;
  RangeKind kind = RangeKind::kScope;
  Capture at;                  ///< `shadow` is the range's own node
  int32_t variant = -1;        ///< index into the launching collector's variants; -1 none
  uint32_t thread = kNoThread; ///< number of the thread on which it began
  int64_t end_ns = 0;          ///< of TickClock; 0: unknown
  int64_t duration_ns = 0;
  int64_t self_ns = 0; ///< duration less that of nested ranges of the same collector
};

/// What a thread counted inside of such a range, without that of ranges inside.
struct CountRecord {
  HostEntryKind entry = HostEntryKind::kCount;
  RangeKind kind = RangeKind::kScope;
  Capture at; ///< as in the record of the range
  int32_t variant = -1;
  uint32_t metric = 0; ///< number of a MetricName
  int64_t count = 0;
};

struct LargeValue; ///< one that is not a number

/// Which of its members the union in the next records holds.
enum class HeldValue : uint8_t { kInt, kDouble, kLarge };

/// The program gave a value at a place.
struct ValueRecord {
  HostEntryKind entry = HostEntryKind::kValue;
  HeldValue held = HeldValue::kInt;
  uint32_t metric = 0; ///< number of a MetricName
  Capture at;
  uint32_t thread = kNoThread; ///< number of the thread that gave it
  uint64_t scope_id = 0;       ///< of the scope whose event shows it; 0: none
  int64_t at_ns = 0;           ///< of TickClock; 0 without a scope
  union {
    int64_t integer = 0;
    double number;
    LargeValue *large; ///< owned by the record
  };
};

/// The program gave a value at the place of an earlier launch, which is then taken back.
struct LaunchValueRecord {
  HostEntryKind entry = HostEntryKind::kLaunchValue;
  HeldValue held = HeldValue::kInt;
  uint32_t metric = 0; ///< number of a MetricName
  uint64_t launch = 0; ///< its correlation id
  union {
    int64_t integer = 0;
    double number;
    LargeValue *large; ///< owned by the record
  };
};

/// An earlier launch is taken back, because it gave no value after all.
struct NoLaunchValue {
  HostEntryKind entry = HostEntryKind::kNoValue;
  uint64_t launch = 0; ///< its correlation id
};

/// What a host thread did, in the order in which it did it.
union HostEntry {
  RangeRecord range;
  CountRecord count;
  ValueRecord value;
  LaunchValueRecord launch_value;
  NoLaunchValue no_value;

  HostEntry() : range{} {}
  HostEntry(const RangeRecord &record) : range(record) {}
  HostEntry(const CountRecord &record) : count(record) {}
  HostEntry(const ValueRecord &record) : value(record) {}
  HostEntry(const LaunchValueRecord &record) : launch_value(record) {}
  HostEntry(const NoLaunchValue &record) : no_value(record) {}
  /// All begin with it.
  HostEntryKind kind() const { return range.entry; }
};
static_assert(sizeof(HostEntry) == 48);

/// What distinguishes launches of one kernel on one call path.
struct VariantRecord {
  uint64_t code_hash = 0; ///< 0: unknown
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t shared_bytes = 0;
  const char *signature = nullptr; ///< argument signature; null: unknown
  uint32_t registers = 0;          ///< of a thread; 0: unknown
  int32_t local_bytes = -1;        ///< local memory of a thread, for spilled registers; -1: unknown
  const char *raw_name = nullptr;  ///< as the device's tools know the kernel; null: as it is shown
  const char *config = nullptr;    ///< what an autotuner chose for the code; null: nothing known
};

/// A kernel ran on a device. Pointers are valid only while the record is handed over.
struct KernelRecord {
  /// Records with one identity have one name, variant and device, for as long as the process
  /// lives; so what was found out about the first serves the others. 0: unknown.
  uint64_t identity = 0;
  uint64_t correlation_id = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  const char *name = nullptr; ///< null: the launch's own op names it
  const VariantRecord *variant = nullptr;
  const char *device_kind = "CUDA"; ///< "CUDA", "HIP" or "CPU"
  int32_t device_index = 0;
  uint32_t stream = 0;
  bool may_lack_launch = false; ///< its launch may have begun before the collector listened
  bool is_own = false;          ///< the profiler's: not part of what the target did
  uint64_t graph_node = 0;      ///< the node of a graph that it was; 0: launched by itself
};

/// False where the times are any bytes: of a file, or of a broken collector.
template <typename Record> bool has_duration(const Record &record) noexcept {
  int64_t duration_ns = 0;
  bool overflows = __builtin_sub_overflow(record.end_ns, record.start_ns, &duration_ns);
  return !overflows && duration_ns >= 0;
}

/// A copy or a setting of memory ran on a device.
struct CopyRecord {
  uint64_t correlation_id = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  const char *name = nullptr; ///< e.g. "<memcpy H2D>"
  uint64_t bytes = 0;
  const char *device_kind = "CUDA";
  int32_t device_index = 0;
  uint32_t stream = 0;
  uint64_t graph_node = 0; ///< as in KernelRecord
};

/// No more records of launches with these ids will come.
struct SettledRecord {
  uint64_t first_id = 0;
  uint64_t last_id = 0;
  bool gives_kernels_up = false; ///< records of kernels will not come either, not only of copies
  uint64_t known_lost = 0;       ///< so many of the kernels were counted as dropped before
};

/// A thread of the program was seen at a place, which stands for a span of its time.
struct HostSample {
  Capture at;           ///< `shadow`: what it had open itself; 0: nothing. Both are set at times
  bool is_main = false; ///< of the thread whose time is that of the run
  int64_t start_ns = 0; ///< the end of its sample before
  int64_t end_ns = 0;
};

enum class MemoryChange : uint8_t { kAllocated, kFreed, kOutOfMemory };

/// The program's allocator gave memory of a device to the program, or took it back.
struct MemoryRecord {
  Capture at;          ///< of what is freed only the epoch is set
  uint32_t step = 0;   ///< how many steps the program had begun; the sink's
  int32_t device = -1; ///< index into the DeviceTable
  MemoryChange change = MemoryChange::kAllocated;
  uint64_t address = 0;
  int64_t bytes = 0;       ///< as the allocator counts them; where there were none: asked for
  int64_t total_bytes = 0; ///< that it has given out on the device after that
  int64_t at_ns = 0;       ///< of TickClock; 0: no session wants to know
};

/// Records were lost.
struct DroppedRecord {
  const char *reason = nullptr; ///< static text, becomes a key of the profile's `dropped` map
  uint64_t count = 0;
  /// Of work that was launched earlier: where no session listens now, the sessions that listened
  /// last count it.
  bool is_late = false;
};

// Samples of program counters of a kernel, by line of its source and by what its warps waited for.

/// Reasons that every sampled node has a metric of: upstream's, by its names. `selected` is not
/// a stall: these warps issued.
inline constexpr const char *kStallMetrics[] = {"stalled_branch_resolving",
                                                "stalled_no_instruction",
                                                "stalled_short_scoreboard",
                                                "stalled_wait",
                                                "stalled_long_scoreboard",
                                                "stalled_tex_throttle",
                                                "stalled_barrier",
                                                "stalled_membar",
                                                "stalled_imc_miss",
                                                "stalled_mio_throttle",
                                                "stalled_math_pipe_throttle",
                                                "stalled_drain",
                                                "stalled_lg_throttle",
                                                "stalled_not_selected",
                                                "stalled_misc",
                                                "stalled_dispatch_stall",
                                                "stalled_sleeping",
                                                "stalled_selected"};

/// Samples with one reason. Both texts live as long as the process.
struct StallCount {
  const char *metric = nullptr;            ///< e.g. "stalled_wait"
  const char *not_issued_metric = nullptr; ///< e.g. "not_issued_wait"
  uint64_t samples = 0;
  uint64_t not_issued = 0; ///< of these, at moments when nothing was issued
};

struct PcLine {
  const char *place = nullptr; ///< "folder/file:line@function"; null: no line is known
  std::span<const StallCount> stalls;
};

/// Pointers are valid only while the record is handed over.
struct PcSampleRecord {
  const char *kernel = nullptr;   ///< as it is shown
  const char *raw_name = nullptr; ///< as the device's tools know it
  std::span<const PcLine> lines;
  Capture at; ///< where it was launched; epoch 0: that is not known
};

// What hardware counters of a device said during a short time.

/// Samples one after the other, each of the whole device between two times.
struct CounterBurst {
  const char *device_kind = "CUDA"; ///< these two name the device
  int32_t device_index = 0;
  std::shared_ptr<const std::vector<std::string>> metrics; ///< m of them, by their vendor's names
  std::vector<int64_t> start_ns;                           ///< n of them, ascending
  std::vector<int64_t> end_ns;                             ///< n of them
  std::vector<double> counts;                              ///< n rows of m values
};

// Graphs: work that is captured once and launched many times.

/// Where something was captured, and which sessions saw it. Counted: each holder gives it back.
using CaptureId = uint32_t; ///< 0: no session saw it
/// What an executable graph runs, as of one moment. 24 bits; 0: unknown.
using LayoutId = uint32_t;

/// Node of a record that stands for the whole launch of a graph.
inline constexpr uint64_t kWholeGraph = ~uint64_t{0};

struct GraphNode {
  uint64_t id = 0;
  CaptureId at = 0;
  bool is_kernel = false; ///< each launch makes a kernel record of it
};

struct GraphLayout {
  std::vector<GraphNode> nodes;
  std::vector<CaptureId> metrics; ///< of values that were added under capture
  bool is_known = true;           ///< false: it was made before a session listened
  /// Nothing else in it makes kernel records: a launch is over with that of its last kernel.
  bool is_exact = true;
  bool is_whole = false; ///< each launch makes one record, that of kWholeGraph
};

/// Graphs as a collector reports them. [any thread] locks
class GraphSink {
public:
  virtual ~GraphSink() = default;
  /// Keeps where the calling thread captured something.
  virtual CaptureId captured(const Capture &at) noexcept = 0;
  virtual void keep(std::span<const CaptureId> captures) noexcept = 0;
  virtual void give_back(std::span<const CaptureId> captures) noexcept = 0;
  /// A layout that launches may name from now on; it keeps its captures itself.
  virtual LayoutId add(GraphLayout layout) noexcept = 0;
  /// It is launched no more; launches that are under way are still joined with it.
  virtual void retire(LayoutId layout) noexcept = 0;
  /// Whether graphs leave values in host memory when they are launched.
  virtual bool has_device_values() noexcept = 0;
  /// What they left by now is of launches that no session saw.
  virtual void skip_device_values() noexcept = 0;
};

} // namespace proton
