#include "collector/instrumentation/runtime/launch_places.h"

#include <bit>
#include <cstring>
#include <exception>

#include "support/error.h"

namespace proton {
namespace {

constexpr size_t kSlabBytes = size_t{1} << 20;
static_assert(sizeof(KernelTotals) + kMaxScopes * sizeof(ScopeTotals) <= kSlabBytes);

const std::string kTotalsPurpose = "keeping totals of kernels on the device";

} // namespace

size_t TotalsStore::Hash::operator()(const TotalsKey &key) const noexcept {
  uint64_t mixed = reinterpret_cast<uintptr_t>(key.kernel) >> 4;
  for (uint64_t part :
       {uint64_t{key.at.shadow}, uint64_t{key.at.python}, uint64_t{key.at.epoch}, key.capture_id})
    mixed = (mixed ^ part) * 0x9E3779B97F4A7C15ull;
  return static_cast<size_t>(mixed ^ mixed >> 32);
}

bool TotalsStore::Equal::operator()(const TotalsKey &left, const TotalsKey &right) const noexcept {
  return left.kernel == right.kernel && left.at.shadow == right.at.shadow &&
         left.at.python == right.at.python && left.at.epoch == right.at.epoch &&
         left.capture_id == right.capture_id;
}

cuda::DevicePointer TotalsStore::find(const std::shared_ptr<const InstrumentedKernel> &kernel,
                                      const Capture &at, uint64_t capture_id) {
  TotalsKey key{kernel.get(), at, capture_id};
  auto found = places_.find(key);
  if (found == places_.end())
    found = places_.emplace(key, make_place(kernel, capture_id != 0)).first;
  return slabs_[found->second.slab].address + found->second.offset;
}

TotalsStore::Place TotalsStore::make_place(const std::shared_ptr<const InstrumentedKernel> &kernel,
                                           bool is_of_graph) {
  size_t bytes = kernel->totals_bytes();
  auto &free = free_[bytes];
  if (!is_of_graph && !free.empty()) {
    auto [slab, offset] = free.back();
    free.pop_back();
    return {kernel, slab, offset};
  }
  size_t slab = find_slab(bytes, is_of_graph);
  Place place{kernel, slab, slabs_[slab].used};
  slabs_[slab].used += bytes;
  return place;
}

/// A slab with `bytes` left. Graphs have slabs of their own, which are never freed.
size_t TotalsStore::find_slab(size_t bytes, bool is_of_graph) {
  for (size_t i = slabs_.size(); i-- > 0;)
    if (slabs_[i].is_of_graphs == is_of_graph && kSlabBytes - slabs_[i].used >= bytes)
      return i;
  slabs_.reserve(slabs_.size() + 1);
  Slab slab;
  slab.is_of_graphs = is_of_graph;
  slab.address = context_.allocate(kSlabBytes, kTotalsPurpose);
  try {
    slab.copy = static_cast<uint64_t *>(context_.allocate_host(kSlabBytes, kTotalsPurpose));
  } catch (...) {
    context_.free(slab.address);
    throw;
  }
  slabs_.push_back(slab);
  return slabs_.size() - 1;
}

void TotalsStore::copy_slab(const Slab &slab) {
  device::HarvestTask task;
  task.totals = reinterpret_cast<uint64_t *>(slab.address);
  task.to = slab.copy;
  task.words = slab.used / sizeof(uint64_t);
  if (task.words == 0)
    return;
  const CudaDriver &work = context_.work();
  work.check(context_.harvest(task, context_.side_stream()), "cuLaunchKernel",
             "reading totals of kernels");
  work.check(work.functions().stream_synchronize(context_.side_stream()), "cuStreamSynchronize",
             "reading totals of kernels");
}

void TotalsStore::read(const TotalsKey &key, const Place &place,
                       std::vector<HarvestedTotals> &to) const {
  const auto *from = reinterpret_cast<const std::byte *>(slabs_[place.slab].copy) + place.offset;
  HarvestedTotals harvested{place.kernel, key.at, {}, {}};
  std::memcpy(&harvested.totals, from, sizeof(KernelTotals));
  const KernelTotals &totals = harvested.totals;
  if ((totals.launches | totals.programs | totals.skipped_programs | totals.corrupt_programs) == 0)
    return;
  harvested.scopes.resize(place.kernel->scopes.size());
  if (!harvested.scopes.empty())
    std::memcpy(harvested.scopes.data(), from + sizeof(KernelTotals),
                harvested.scopes.size() * sizeof(ScopeTotals));
  for (ScopeTotals &scope : harvested.scopes)
    scope.min_cycles = ~scope.min_cycles; // the device keeps the complement
  to.push_back(std::move(harvested));
}

void TotalsStore::harvest(std::vector<HarvestedTotals> &to) {
  RelaxedCapture relaxed(context_.work().functions());
  std::exception_ptr failure;
  for (const Slab &slab : slabs_) {
    try {
      copy_slab(slab);
    } catch (const Error &) { // the others may still be read
      std::memset(slab.copy, 0, slab.used);
      failure = std::current_exception();
    }
  }
  for (const auto &[key, place] : places_)
    read(key, place, to);
  if (failure)
    std::rethrow_exception(failure);
}

void TotalsStore::forget_before(EpochId epoch) {
  std::erase_if(places_, [&](const Places::value_type &entry) {
    const auto &[key, place] = entry;
    if (key.capture_id != 0 || key.at.epoch >= epoch)
      return false;
    free_[place.kernel->totals_bytes()].emplace_back(place.slab, place.offset);
    return true;
  });
}

void TotalsStore::free_all() noexcept {
  for (Slab &slab : slabs_)
    if (!slab.is_of_graphs) {
      context_.free(slab.address);
      context_.free_host(slab.copy);
    }
  std::erase_if(slabs_, [](const Slab &slab) { return !slab.is_of_graphs; });
  places_.clear();
  free_.clear();
}

size_t TotalsStore::bytes() const { return slabs_.size() * kSlabBytes; }

size_t TotalsStore::graph_bytes() const {
  size_t all = 0;
  for (const Slab &slab : slabs_)
    all += slab.is_of_graphs ? kSlabBytes : 0;
  return all;
}

namespace {

constexpr size_t kLeastScratchBytes = size_t{64} << 10;
constexpr size_t kMostRounded = size_t{256} << 20; // beyond, half of it might be too much to waste

const std::string kScratchPurpose = "taking memory of the device for records of kernels";
const std::string kOrderPurpose = "ordering a launch and the copy of a timeline";

size_t rounded(size_t bytes) {
  if (bytes > kMostRounded)
    return bytes;
  return bytes < kLeastScratchBytes ? kLeastScratchBytes : std::bit_ceil(bytes);
}

} // namespace

/// The smallest buffer that the copy stream has not; among buffers that it has, the one used first.
ScratchBuffer *ScratchPool::find(size_t bytes, bool is_copied) const {
  ScratchBuffer *found = nullptr;
  for (const auto &buffer : buffers_) {
    bool fits = !buffer->is_taken && !buffer->is_stuck && buffer->is_copied == is_copied &&
                buffer->bytes >= bytes;
    if (fits && (!found || (is_copied ? buffer->use < found->use : buffer->bytes < found->bytes)))
      found = buffer.get();
  }
  return found;
}

/// Whether another may be kept beside those that the copy stream has.
bool ScratchPool::has_room(size_t bytes) const {
  size_t count = 0, all = rounded(bytes);
  for (const auto &buffer : buffers_)
    if (buffer->is_copied && !buffer->is_outgrown) {
      ++count;
      all += buffer->bytes;
    }
  return count < kMostCopied && all <= kMostCopiedBytes;
}

ScratchBuffer &ScratchPool::add(size_t bytes, bool copies) {
  auto made = std::make_unique<ScratchBuffer>();
  made->bytes = rounded(bytes);
  made->address = context_.allocate(made->bytes, kScratchPurpose);
  try {
    if (copies)
      made->event = context_.make_event(kScratchPurpose);
    buffers_.push_back(nullptr);
  } catch (...) {
    free(*made);
    throw;
  }
  // Smaller free buffers have served: launches grow, and their sum stays below the new one.
  for (auto &buffer : buffers_)
    if (buffer)
      buffer->is_outgrown |= !buffer->is_taken && buffer->bytes < made->bytes;
  buffers_.back() = std::move(made);
  return *buffers_.back();
}

/// Null without memory: the stream can wait instead.
ScratchBuffer *ScratchPool::try_add(size_t bytes) {
  try {
    return &add(bytes, true);
  } catch (const Error &) {
    return nullptr;
  }
}

/// Made now, because the first launch waits for the driver anyway and a later one should not.
void ScratchPool::add_spares(size_t bytes) {
  for (size_t count = 2; count <= kMostCopied && count * rounded(bytes) <= kSpareBytes; ++count)
    if (!try_add(bytes))
      return;
}

/// A buffer that the copy stream is done with, a new one, or one that the stream waits for; null if
/// none is large enough.
ScratchBuffer *ScratchPool::take_copied(size_t bytes, void *stream) {
  ScratchBuffer *oldest = find(bytes, true);
  if (!oldest)
    return nullptr;
  // The copy stream works in order: while the oldest is not over, no other is.
  if (!context_.is_over(oldest->event)) {
    if (ScratchBuffer *added = has_room(bytes) ? try_add(bytes) : nullptr)
      return added;
    const CudaDriver &work = context_.work();
    work.check(work.functions().stream_wait_event(stream, oldest->event, 0), "cuStreamWaitEvent",
               kOrderPurpose);
  }
  oldest->is_copied = false;
  return oldest;
}

ScratchBuffer &ScratchPool::take(size_t bytes, void *stream, bool copies) {
  ScratchBuffer *found = find(bytes, false);
  if (!found)
    found = take_copied(bytes, stream);
  if (!found) {
    found = &add(bytes, copies);
    if (copies)
      add_spares(bytes);
  }
  found->is_taken = true;
  found->is_outgrown = false;
  return *found;
}

void ScratchPool::hand_over(ScratchBuffer &buffer, void *stream) {
  const CudaDriver &work = context_.work();
  void *copies = context_.copy_stream();
  work.check(work.functions().event_record(buffer.event, stream), "cuEventRecord", kOrderPurpose);
  work.check(work.functions().stream_wait_event(copies, buffer.event, 0), "cuStreamWaitEvent",
             kOrderPurpose);
  buffer.is_copied = true;
  buffer.use = ++uses_;
}

void ScratchPool::give_back(ScratchBuffer &buffer) noexcept {
  buffer.is_taken = false;
  if (!buffer.is_copied)
    return;
  const CudaFunctions &functions = context_.work().functions();
  void *copies = context_.made_copy_stream();
  if (functions.event_record(buffer.event, copies) == cuda::kSuccess)
    return;
  RelaxedCapture relaxed(functions);
  buffer.is_stuck = functions.stream_synchronize(copies) != cuda::kSuccess;
  buffer.is_copied = buffer.is_stuck;
}

void ScratchPool::free(ScratchBuffer &buffer) const noexcept {
  context_.free(buffer.address);
  if (buffer.event)
    context_.work().functions().event_destroy(buffer.event);
}

size_t ScratchPool::bytes() const {
  size_t all = 0;
  for (const auto &buffer : buffers_)
    all += buffer->bytes;
  return all;
}

uint64_t ContextPlaces::capture_of(void *stream) {
  const CudaFunctions &functions = device_.work().functions();
  int status = cuda::kCaptureNone;
  if (!functions.stream_is_capturing ||
      functions.stream_is_capturing(stream, &status) != cuda::kSuccess ||
      status != cuda::kCaptureActive)
    return 0;
  unsigned long long id = 0;
  if (!functions.stream_get_capture_info ||
      functions.stream_get_capture_info(stream, &status, &id, nullptr, nullptr, nullptr) !=
          cuda::kSuccess ||
      id == 0)
    throw Error(ErrorCode::kUnavailable,
                "the driver does not tell which graph stream " +
                    std::to_string(reinterpret_cast<uintptr_t>(stream)) +
                    " is captured into, so scopes inside kernels cannot be recorded there; use a "
                    "driver of CUDA 11.3 or later");
  for (const OpenCapture &capture : captures_)
    if (capture.stream == stream && capture.id == id)
      return id;
  captures_.push_back({stream, id});
  return id;
}

ScratchPool &ContextPlaces::pool(void *stream, uint64_t capture_id) {
  const CudaFunctions &functions = device_.work().functions();
  unsigned long long id = 0; // handles of streams are used again
  // Asking for the id of a captured stream would end the capture.
  bool asks = capture_id == 0 && functions.stream_get_id;
  if (asks && functions.stream_get_id(stream, &id) != cuda::kSuccess)
    id = 0;
  auto &pool = pools_[{stream, id, capture_id}];
  if (!pool)
    pool = std::make_unique<ScratchPool>(device_, capture_id != 0);
  return *pool;
}

bool ContextPlaces::is_capturing() {
  const CudaFunctions &functions = device_.work().functions();
  std::erase_if(captures_, [&](const OpenCapture &capture) {
    int status = cuda::kCaptureNone;
    unsigned long long id = 0;
    cuda::Result result =
        functions.stream_get_capture_info(capture.stream, &status, &id, nullptr, nullptr, nullptr);
    return result != cuda::kSuccess || status != cuda::kCaptureActive || id != capture.id;
  });
  return !captures_.empty();
}

void ContextPlaces::free_outgrown() noexcept {
  for (auto &[key, pool] : pools_)
    pool->free_outgrown();
}

void ContextPlaces::free_all() noexcept {
  for (auto &[key, pool] : pools_)
    pool->free_all();
  totals_.free_all();
}

size_t ContextPlaces::bytes() const {
  size_t all = totals_.bytes();
  for (const auto &[key, pool] : pools_)
    all += pool->bytes();
  return all;
}

size_t ContextPlaces::graph_bytes() const {
  size_t all = totals_.graph_bytes();
  for (const auto &[key, pool] : pools_)
    all += pool->is_of_graph() ? pool->bytes() : 0;
  return all;
}

ContextPlaces &LaunchPlaces::current() {
  const CudaFunctions &functions = work_.functions();
  void *context = nullptr;
  cuda::Result result = functions.ctx_get_current(&context);
  bool can_make = functions.device_primary_ctx_retain && functions.ctx_set_current;
  if (result == cuda::kSuccess && !context && can_make) {
    // A new thread. Triton takes the same step, but only after it asked for the buffer.
    result = functions.device_primary_ctx_retain(&context, 0);
    if (result == cuda::kSuccess)
      result = functions.ctx_set_current(context);
  }
  if (result != cuda::kSuccess || !context)
    throw Error(ErrorCode::kUnavailable,
                "a kernel was launched without a current context: " + work_.describe(result));
  auto &places = contexts_[context];
  if (!places)
    places = std::make_unique<ContextPlaces>(work_, context);
  return *places;
}

std::vector<ContextPlaces *> LaunchPlaces::list() const {
  std::vector<ContextPlaces *> all;
  for (const auto &[context, places] : contexts_)
    if (places)
      all.push_back(places.get());
  return all;
}

} // namespace proton
