#include "collector/cupti/activity/activity_stream.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <new>

#include "driver/cupti/cupti_records.h"
#include "record/record.h"
#include "support/clock.h"

namespace proton {
namespace {

extern "C" uint64_t proton_bench_monotonic_time() { return static_cast<uint64_t>(monotonic_ns()); }

// CUPTI's own choice on Linux
extern "C" uint64_t proton_bench_real_time() { return static_cast<uint64_t>(unix_ns()); }

} // namespace

bool Timebase::read_clock(const void *timebase, uint64_t &time_ns) noexcept {
  const auto &self = *static_cast<const Timebase *>(timebase);
  const CuptiFunctions &cupti = self.library_->functions();
  return (self.shared_ ? cupti.get_timestamp_v2(self.shared_, &time_ns)
                       : cupti.get_timestamp(&time_ns)) == cupti::kSuccess;
}

void Timebase::start(const CuptiLibrary &library, bool vendor_clock) {
  library_ = &library;
  auto give_clock = library.functions().activity_register_timestamp_callback;
  converts_ = vendor_clock || shared_ || !give_clock ||
              give_clock(proton_bench_monotonic_time) != cupti::kSuccess;
  pairs_.start(read_clock, this);
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

namespace {

constexpr std::align_val_t kAlignment{64}; // CUPTI wants 8

void free_buffer(uint8_t *buffer) noexcept { ::operator delete(buffer, kAlignment); }

} // namespace

void BufferPool::prepare(size_t bytes) noexcept {
  if (bytes != this->bytes())
    trim();
  {
    std::lock_guard lock(mutex_);
    bytes_ = bytes;
  }
  make_ready();
}

void BufferPool::make_ready() noexcept {
  try {
    std::lock_guard lock(mutex_);
    free_.reserve(kMaxFree);
    const size_t count = std::min(kMaxFree, kReadyBytes / bytes_);
    while (free_.size() < count) {
      auto *buffer = static_cast<uint8_t *>(::operator new(bytes_, kAlignment));
      std::memset(buffer, 0, bytes_); // has its pages mapped
      free_.push_back(buffer);
    }
  } catch (...) { // no memory: a later `acquire` reports it
  }
}

size_t BufferPool::bytes() const noexcept {
  std::lock_guard lock(mutex_);
  return bytes_;
}

uint8_t *BufferPool::acquire(size_t &bytes) noexcept {
  uint8_t *buffer = nullptr;
  try {
    std::lock_guard lock(mutex_);
    bytes = bytes_;
    if (!free_.empty()) {
      buffer = free_.back();
      free_.pop_back();
    } else {
      buffer = static_cast<uint8_t *>(::operator new(bytes, kAlignment));
    }
    out_.push_back(buffer);
    return buffer;
  } catch (...) { // no memory
    if (buffer)
      free_buffer(buffer);
    bytes = 0;
    return nullptr;
  }
}

bool BufferPool::release(uint8_t *buffer, size_t bytes) noexcept {
  if (!buffer)
    return true;
  try {
    std::lock_guard lock(mutex_);
    auto found = std::find(out_.begin(), out_.end(), buffer);
    if (found == out_.end())
      return false;
    out_.erase(found);
    if (bytes == bytes_ && free_.size() < kMaxFree) {
      free_.push_back(buffer);
      return true;
    }
  } catch (...) { // no memory to keep it
  }
  free_buffer(buffer);
  return true;
}

size_t BufferPool::outstanding() const noexcept {
  std::lock_guard lock(mutex_);
  return out_.size();
}

void BufferPool::trim() noexcept {
  std::lock_guard lock(mutex_);
  for (uint8_t *buffer : free_)
    free_buffer(buffer);
  free_.clear();
}

namespace {

std::atomic<ActivityStream *> g_current{nullptr};

} // namespace

void ActivityStream::make_current() { g_current.store(this, std::memory_order_release); }

void ActivityStream::requested(uint8_t **buffer, size_t *bytes, size_t *max_records) noexcept {
  ActivityStream *stream = g_current.load(std::memory_order_acquire);
  *max_records = 0; // as many as fit
  *bytes = 0;
  *buffer = stream ? stream->pool_.acquire(*bytes) : nullptr;
}

void ActivityStream::completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                               size_t valid_bytes) noexcept {
  ActivityStream *self = g_current.load(std::memory_order_acquire);
  if (!self)
    return; // it was never ours
  try {
    std::lock_guard lock(self->reading_);
    self->timebase_.observe();
    self->launches_.observe(monotonic_ns());
    self->count_dropped(context, stream);
    if (buffer && valid_bytes != 0)
      self->read(buffer, valid_bytes);
  } catch (...) { // a mutex that cannot be locked
    self->sink_.dropped({"activity buffer not read", 1, true});
  }
  if (!self->pool_.release(buffer, bytes))
    self->foreign_buffers_.fetch_add(1);
}

void ActivityStream::share(void *subscriber) {
  std::lock_guard lock(reading_);
  shared_ = subscriber;
  timebase_.share(subscriber);
}

void ActivityStream::read(uint8_t *buffer, size_t valid_bytes) noexcept {
  const CuptiFunctions &cupti = library_->functions();
  RecordBatch batch(sink_);
  void *record = nullptr;
  cupti::Result result = cupti::kSuccess;
  for (;;) {
    result = shared_ ? cupti.activity_get_next_record_v2(shared_, buffer, valid_bytes, &record)
                     : cupti.activity_get_next_record(buffer, valid_bytes, &record);
    if (result != cupti::kSuccess)
      break;
    int kind = cupti::read<int>(record, cupti::record_offset::kKind);
    if (RecordReader *reader = readers_.find(kind))
      reader->read(record, batch);
  }
  batch.hand_over();
  readers_.between_buffers();
  if (result != cupti::kErrorMaxLimitReached)
    sink_.dropped({"rest of an activity buffer not readable", 1, true});
}

void ActivityStream::count_dropped(void *context, uint32_t stream) noexcept {
  size_t dropped = 0;
  const CuptiFunctions &cupti = library_->functions();
  cupti::Result result =
      shared_ ? cupti.activity_get_num_dropped_records_v2(shared_, context, stream, &dropped)
              : cupti.activity_get_num_dropped_records(context, stream, &dropped);
  if (result != cupti::kSuccess || dropped == 0)
    return;
  dropped_.fetch_add(dropped);
  sink_.dropped({"records dropped by CUPTI", dropped, true});
}

} // namespace proton
