#include "collector/cpu/collectives.h"

#include <algorithm>

#include "collector/cpu/comm_group.h"
#include "collector/cpu/op_inputs.h"
#include "context/thread/current.h"
#include "context/thread/host_range.h"

namespace proton {
namespace {

// Work of gloo ends its range when it is done, that of NCCL once its kernel is in its stream.
constexpr std::string_view kDone = "gloo:", kLaunched = "nccl:";
constexpr std::string_view kBytesMetric = "comm_bytes";

/// Of the tensors of a range. Ranges of backends always have a list of them.
uint64_t bytes_of(const void *record_function) {
  uint64_t bytes = 0;
  for_each_tensor(record_function, [&](std::string_view type, std::span<const int64_t> sizes) {
    uint64_t elements = 1;
    for (int64_t size : sizes)
      elements *= static_cast<uint64_t>(size);
    bytes += elements * bytes_of_type(type);
  });
  return bytes;
}

} // namespace

uint64_t bytes_of_type(std::string_view type) noexcept {
  constexpr uint64_t kBitsOfByte = 8;
  uint64_t bits = 0;
  size_t at = std::min(type.find_first_of("0123456789"), type.size());
  for (; at < type.size() && type[at] >= '0' && type[at] <= '9'; ++at)
    bits = bits * 10 + static_cast<uint64_t>(type[at] - '0');
  return bits < kBitsOfByte ? 1 : bits / kBitsOfByte;
}

std::optional<OpenCollective> begin_collective(std::string_view name,
                                               const void *record_function) noexcept {
  const bool is_launched = name.starts_with(kLaunched);
  if (!is_launched && !name.starts_with(kDone))
    return std::nullopt;
  try {
    if (is_capturing()) // into a graph, whose replays call nothing
      return std::nullopt;
    OpenCollective open;
    open.is_launched = is_launched;
    if (is_launched)
      open.newest_kernel = newest_kernel_launch();
    uint64_t bytes = record_function && knows_inputs() ? bytes_of(record_function) : 0;
    if (bytes != 0)
      give_number(kBytesMetric, static_cast<int64_t>(bytes));
    CommGroup group = current_comm_group();
    open.call = CollectiveLog::instance().begin(name, group.name, group.ranks, bytes);
    return open;
  } catch (...) { // no memory: the other ranks will count one more
    return std::nullopt;
  }
}

void end_collective(const OpenCollective &open) noexcept {
  if (!open.is_launched) {
    CollectiveLog::instance().end(open.call);
    return;
  }
  try {
    uint64_t kernel = newest_kernel_launch();
    if (kernel != open.newest_kernel)
      CollectiveLog::instance().launched(open.call, kernel);
  } catch (...) { // no memory for this thread's state: it launched nothing that is recorded
  }
}

} // namespace proton
