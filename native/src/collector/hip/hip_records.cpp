#include "collector/hip/hip_records.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <tuple>

#include "support/clock.h"

namespace proton {
namespace {

/// Kernels of HIP's runtime, which set and copy memory where that is faster than by the engines.
bool is_runtimes(const char *kernel) noexcept {
  return kernel && std::string_view(kernel).starts_with("__amd_rocclr_");
}

const char *blit_name(std::string_view kernel) noexcept {
  return kernel.find("fill") != kernel.npos ? "<memset>" : "<memcpy>";
}

} // namespace

void HipRecords::start_clock(ClockPairs::Read read_clock, const void *library) {
  std::lock_guard lock(reading_);
  clock_.start(read_clock, library);
}

void HipRecords::end_clock() {
  std::lock_guard lock(reading_);
  clock_.end();
}

void HipRecords::begin() noexcept {
  of_graphs_.clear();
  clock_.observe();
  parts_.launches.observe(monotonic_ns());
}

void HipRecords::end(RecordBatch &batch) {
  if (!of_graphs_.empty())
    add_of_graphs(batch);
  batch.hand_over();
  kernels_.trim();
}

void HipRecords::count_dropped(uint64_t records) noexcept {
  if (records == 0)
    return;
  dropped_.fetch_add(records);
  parts_.sink.dropped({"records dropped by AMD's library", records, true});
}

uint64_t HipRecords::id_of(uint64_t correlation, uint64_t tag) const noexcept {
  return parts_.ids.widen(tag != 0 ? DispatchTag::unpack(tag).correlation
                                   : static_cast<uint32_t>(correlation));
}

template <typename Record>
void HipRecords::set_times(Record &to, uint64_t start_ns, uint64_t end_ns) const noexcept {
  to.start_ns = clock_.monotonic(static_cast<int64_t>(start_ns));
  to.end_ns = clock_.monotonic(static_cast<int64_t>(end_ns));
  if (start_ns == 0 && end_ns == 0) // the library could not time it
    to.end_ns = to.start_ns - 1;
}

void HipRecords::add(const HipDispatch &dispatch, RecordBatch &batch) {
  Launched launched{id_of(dispatch.correlation, dispatch.tag), DispatchTag::unpack(dispatch.tag),
                    dispatch};
  bool is_of_graph = dispatch.tag != 0
                         ? launched.tag.is_graph
                         : parts_.replays.has_any() && parts_.replays.has(launched.id);
  if (is_of_graph) {
    of_graphs_.push_back(launched);
    return;
  }
  uint32_t stream = dispatch.tag != 0 ? launched.tag.number : dispatch.queue;
  if (is_runtimes(dispatch.name))
    add_blit(launched, stream, 0, batch);
  else
    add_kernel(launched, stream, 0, batch);
}

void HipRecords::add_of_graphs(RecordBatch &batch) {
  auto order = [](const Launched &each) {
    return std::tuple(each.id, each.tag.is_graph ? each.tag.number : 0, each.dispatch.order);
  };
  std::stable_sort(
      of_graphs_.begin(), of_graphs_.end(),
      [&](const Launched &left, const Launched &right) { return order(left) < order(right); });
  std::vector<Dispatch> dispatches;
  for (auto first = of_graphs_.begin(); first != of_graphs_.end();) {
    auto last = std::find_if(first, of_graphs_.end(),
                             [&](const Launched &each) { return each.id != first->id; });
    dispatches.clear();
    for (auto each = first; each != last; ++each)
      dispatches.push_back(
          {kernel_key(each->dispatch.name, each->dispatch.work_items, each->dispatch.block),
           each->tag.number, each->tag.is_graph, 0, each->dispatch.block[0] != 0});
    uint32_t stream = parts_.replays.match(first->id, dispatches);
    for (size_t i = 0; first != last; ++first, ++i) {
      uint64_t node = dispatches[i].node;
      if (is_runtimes(first->dispatch.name) && node >= GraphReplays::kUnknownNode)
        add_blit(*first, stream, node, batch);
      else
        add_kernel(*first, stream, node, batch);
    }
  }
}

void HipRecords::add_kernel(const Launched &launched, uint32_t stream, uint64_t node,
                            RecordBatch &batch) {
  const HipDispatch &dispatch = launched.dispatch;
  KernelShape shape;
  shape.name = dispatch.name ? dispatch.name : "<kernel of unknown code>";
  shape.device = dispatch.device;
  for (size_t axis = 0; axis < 3 && dispatch.block[axis] != 0; ++axis) {
    shape.block[axis] = dispatch.block[axis];
    // The last work-group of an axis need not be full.
    shape.grid[axis] = dispatch.work_items[axis] / dispatch.block[axis] +
                       (dispatch.work_items[axis] % dispatch.block[axis] != 0 ? 1 : 0);
  }
  shape.shared_bytes = dispatch.shared_bytes;
  shape.registers = dispatch.registers;
  const KnownKernel &known = kernels_.find(shape);
  devices_.note(shape.device, static_cast<int64_t>(dispatch.end_ns - dispatch.start_ns));
  KernelRecord &kernel = batch.next_kernel();
  kernel.identity = known.identity;
  kernel.correlation_id = launched.id;
  kernel.is_own = known.is_own;
  // Where a tag is missing no call was open that is noted: HIP dispatched it for itself.
  kernel.may_lack_launch =
      (parts_.has_tags && dispatch.tag == 0) || !parts_.launches.must_know(launched.id);
  set_times(kernel, dispatch.start_ns, dispatch.end_ns);
  kernel.name = known.name.c_str();
  kernel.variant = &known.variant;
  kernel.device_kind = "HIP";
  kernel.device_index = shape.device;
  kernel.stream = stream;
  kernel.graph_node = node;
}

void HipRecords::add_blit(const Launched &launched, uint32_t stream, uint64_t node,
                          RecordBatch &batch) {
  if (!has_copies())
    return;
  CopyRecord &copy = batch.next_copy();
  copy.correlation_id = launched.id;
  set_times(copy, launched.dispatch.start_ns, launched.dispatch.end_ns);
  copy.name = blit_name(launched.dispatch.name);
  copy.device_kind = "HIP";
  copy.device_index = launched.dispatch.device;
  copy.stream = stream;
  copy.graph_node = node;
  devices_.note(copy.device_index, 0);
}

void HipRecords::add(const HipCopy &record, RecordBatch &batch) {
  if (!has_copies())
    return;
  uint64_t id = id_of(record.correlation, record.tag);
  DispatchTag tag = DispatchTag::unpack(record.tag);
  bool is_of_graph =
      record.tag != 0 ? tag.is_graph : parts_.replays.has_any() && parts_.replays.has(id);
  CopyRecord &copy = batch.next_copy();
  copy.correlation_id = id;
  set_times(copy, record.start_ns, record.end_ns);
  copy.name = record.name;
  copy.bytes = record.bytes;
  copy.device_kind = "HIP";
  copy.device_index = record.device;
  copy.stream = record.tag != 0 && !is_of_graph ? tag.number : record.queue;
  copy.graph_node = is_of_graph ? GraphReplays::kUnknownNode : 0;
  devices_.note(copy.device_index, 0);
}

uint32_t plain_length(const char *name) noexcept {
  std::string_view text(name);
  if (text.ends_with(".kd"))
    text.remove_suffix(3);
  return static_cast<uint32_t>(text.size());
}

uint64_t kernel_key(const char *name, const uint32_t (&work_items)[3],
                    const uint32_t (&block)[3]) noexcept {
  if (!name)
    return 0;
  uint64_t named = std::hash<std::string_view>{}(std::string_view(name, plain_length(name)));
  uint64_t shape = 0;
  for (uint32_t value : work_items)
    shape = (shape ^ value) * 0x9E3779B97F4A7C15ull;
  for (uint32_t value : block)
    shape = (shape ^ value) * 0x9E3779B97F4A7C15ull;
  return named >> 32 << 32 | 1u << 31 | shape >> 33; // never 0
}

uint32_t StreamNumbers::find(const void *stream) noexcept {
  if (!stream)
    return 0;
  try {
    std::lock_guard lock(mutex_);
    auto next = static_cast<uint32_t>(numbers_.size()) + 1;
    return numbers_.try_emplace(stream, next).first->second;
  } catch (...) { // no memory: it is shown with the null stream
    return 0;
  }
}

} // namespace proton
