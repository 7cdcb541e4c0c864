#include "collector/cupti/activity/record_reader.h"

#include <ctime>

#include "driver/cupti/cupti_records.h"
#include "record/graph.h"
#include "support/clock.h"

namespace proton {
namespace {

extern "C" uint64_t proton_bench_monotonic_time() { return static_cast<uint64_t>(monotonic_ns()); }

extern "C" uint64_t proton_bench_real_time() { // CUPTI's own choice on Linux
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

bool read_clock(const void *library, uint64_t &time_ns) noexcept {
  const auto &cupti = static_cast<const CuptiLibrary *>(library)->functions();
  return cupti.get_timestamp(&time_ns) == cupti::kSuccess;
}

} // namespace

void Timebase::start(const CuptiLibrary &library, bool vendor_clock) {
  auto give_clock = library.functions().activity_register_timestamp_callback;
  converts_ =
      vendor_clock || !give_clock || give_clock(proton_bench_monotonic_time) != cupti::kSuccess;
  pairs_.start(read_clock, &library);
  observe();
}

void Timebase::stop(const CuptiLibrary &library) noexcept {
  pairs_.end();
  if (!converts_)
    library.functions().activity_register_timestamp_callback(proton_bench_real_time);
}

namespace {

using cupti::read;

void read_extent(const void *record, size_t offset, uint32_t (&extent)[3]) noexcept {
  for (size_t axis = 0; axis < 3; ++axis)
    extent[axis] = read<uint32_t>(record, offset + 4 * axis);
}

KernelShape shape_of(const void *record) noexcept {
  namespace at = cupti::kernel_offset;
  KernelShape shape;
  shape.name = read<const char *>(record, at::kName);
  shape.device = read<int32_t>(record, at::kDevice);
  read_extent(record, at::kGrid, shape.grid);
  read_extent(record, at::kBlock, shape.block);
  shape.shared_bytes =
      read<uint32_t>(record, at::kStaticShared) + read<uint32_t>(record, at::kDynamicShared);
  shape.registers = read<uint16_t>(record, at::kRegisters);
  shape.local_bytes = read<int32_t>(record, at::kLocalPerThread);
  return shape;
}

const char *copy_name(uint8_t kind) noexcept {
  static constexpr const char *kNames[] = {"<memcpy>",     "<memcpy H2D>", "<memcpy D2H>",
                                           "<memcpy H2A>", "<memcpy A2H>", "<memcpy A2A>",
                                           "<memcpy A2D>", "<memcpy D2A>", "<memcpy D2D>",
                                           "<memcpy H2H>", "<memcpy P2P>"};
  return kind < std::size(kNames) ? kNames[kind] : kNames[0];
}

/// Where the three kinds of copy records keep the same things.
struct CopyLayout {
  size_t bytes, start, end, device, stream, correlation, node;
};

CopyLayout copy_layout(int kind) noexcept {
  if (kind == cupti::kKindMemset) {
    namespace at = cupti::memset_offset;
    return {at::kBytes,  at::kStart,       at::kEnd,      at::kDevice,
            at::kStream, at::kCorrelation, at::kGraphNode};
  }
  if (kind == cupti::kKindMemcpyPeer) {
    namespace at = cupti::peer_offset;
    return {at::kBytes,  at::kStart,       at::kEnd,      at::kDevice,
            at::kStream, at::kCorrelation, at::kGraphNode};
  }
  namespace at = cupti::memcpy_offset;
  return {at::kBytes,  at::kStart,       at::kEnd,      at::kDevice,
          at::kStream, at::kCorrelation, at::kGraphNode};
}

/// Sets the begin and the end that the record names.
template <typename Record>
void set_times(Record &to, const Timebase &timebase, uint64_t start, uint64_t end) noexcept {
  to.start_ns = timebase.monotonic(start);
  to.end_ns = timebase.monotonic(end);
  if (start == 0 && end == 0) // CUPTI could not time it
    to.end_ns = to.start_ns - 1;
}

} // namespace

void ReaderTable::add(RecordReader &reader) {
  for (int kind : reader.kinds())
    readers_.at(static_cast<size_t>(kind)) = &reader;
}

void KernelReader::read(const void *record, RecordBatch &batch) noexcept {
  namespace at = cupti::kernel_offset;
  uint64_t id = context_.ids.widen(cupti::read<uint32_t>(record, at::kCorrelation));
  uint64_t start = cupti::read<uint64_t>(record, at::kStart);
  uint64_t end = cupti::read<uint64_t>(record, at::kEnd);
  try {
    const KnownKernel &known = kernels_.find(shape_of(record));
    context_.devices.note(known.shape.device, static_cast<int64_t>(end - start));
    KernelRecord &kernel = batch.next_kernel();
    kernel.identity = known.identity;
    kernel.correlation_id = id;
    kernel.is_own = known.is_own;
    kernel.may_lack_launch = !context_.launches.must_know(id);
    set_times(kernel, context_.timebase, start, end);
    kernel.name = known.name.c_str();
    kernel.variant = &known.variant;
    kernel.device_index = known.shape.device;
    kernel.stream = cupti::read<uint32_t>(record, at::kStream);
    kernel.graph_node = cupti::read<uint64_t>(record, at::kGraphNode);
  } catch (...) {
    batch.sink().dropped({"no memory for kernel records", 1, true});
  }
}

void GraphReader::read(const void *record, RecordBatch &batch) noexcept {
  namespace at = cupti::graph_trace_offset;
  KernelRecord &graph = batch.next_kernel();
  graph.correlation_id = context_.ids.widen(cupti::read<uint32_t>(record, at::kCorrelation));
  graph.may_lack_launch = !context_.launches.must_know(graph.correlation_id);
  set_times(graph, context_.timebase, cupti::read<uint64_t>(record, at::kStart),
            cupti::read<uint64_t>(record, at::kEnd));
  graph.name = "<graph>";
  graph.device_index = cupti::read<int32_t>(record, at::kDevice);
  graph.stream = cupti::read<uint32_t>(record, at::kStream);
  graph.graph_node = kWholeGraph;
  context_.devices.note(graph.device_index, 0);
}

void CopyReader::read(const void *record, RecordBatch &batch) noexcept {
  int kind = cupti::read<int>(record, cupti::record_offset::kKind);
  CopyLayout layout = copy_layout(kind);
  uint64_t id = context_.ids.widen(cupti::read<uint32_t>(record, layout.correlation));
  CopyRecord &copy = batch.next_copy();
  copy.correlation_id = id;
  set_times(copy, context_.timebase, cupti::read<uint64_t>(record, layout.start),
            cupti::read<uint64_t>(record, layout.end));
  copy.name = kind == cupti::kKindMemset
                  ? "<memset>"
                  : copy_name(cupti::read<uint8_t>(record, cupti::memcpy_offset::kCopyKind));
  copy.bytes = cupti::read<uint64_t>(record, layout.bytes);
  copy.device_index = cupti::read<int32_t>(record, layout.device);
  copy.stream = cupti::read<uint32_t>(record, layout.stream);
  copy.graph_node = cupti::read<uint64_t>(record, layout.node);
  context_.devices.note(copy.device_index, 0);
}

} // namespace proton
