#include "collector/instrumentation/buffers/totals_store.h"

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
  if (found == places_.end()) {
    found = places_.emplace(key, make_place(kernel, capture_id != 0)).first;
    has_graphs_ |= capture_id != 0;
  }
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
  const CudaWork &work = context_.work();
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

} // namespace proton
