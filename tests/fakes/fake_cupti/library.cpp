#include "library.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "fault_table.h"

namespace fake {

Library &make_library() {
  static Library *instance = [] {
    auto *made = new Library; // the worker thread runs on
    const char *clock = std::getenv("FAKE_CUPTI_CLOCK");
    made->is_real_clock = clock != nullptr && std::string(clock) == "real";
    return made;
  }();
  return *instance;
}

namespace {

uint64_t real_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

} // namespace

void library_time(uint64_t &ns) {
  cupti::function::TimestampSource source = library().timestamp;
  if (source != nullptr)
    ns = source();
  else
    ns = library().is_real_clock ? real_ns() : library().clock_ns.load();
}

uint64_t take_time(uint64_t duration_ns) {
  std::atomic<uint64_t> &clock = library().clock_ns;
  const uint64_t used_ns = duration_ns + 100;
  if (!library().is_real_clock)
    return clock.fetch_add(used_ns);
  uint64_t free = clock.load();
  for (;;) {
    const uint64_t start = std::max(free, real_ns());
    if (clock.compare_exchange_weak(free, start + used_ns))
      return start;
  }
}

uint32_t version() {
  const char *text = std::getenv("FAKE_CUPTI_VERSION");
  return text == nullptr ? 26 : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

namespace {

FaultTable &faults() {
  static FaultTable *instance = new FaultTable("FAKE_CUPTI_FAIL");
  return *instance;
}

} // namespace

EntryPoint::EntryPoint(const char *name) : name_(name) { faults().know(name, &calls_); }

int EntryPoint::called() { return faults().called(name_, calls_); }

const char *intern(const char *name) {
  std::lock_guard lock(library().mutex);
  return library().names.emplace(name, name).first->first.c_str();
}

bool is_on(int domain, uint32_t cbid) {
  return library().is_subscribed.load(std::memory_order_relaxed) &&
         library().enabled[static_cast<size_t>(domain)][cbid % kCbids].load(
             std::memory_order_relaxed);
}

void call_back(int domain, uint32_t cbid, const void *data) {
  if (domain != cupti::kDomainNvtx)
    library().is_cuda_started = true;
  if (!is_on(domain, cbid))
    return;
  cupti::CallbackFunction callback = library().callback;
  if (callback != nullptr)
    callback(library().user, domain, cbid, data);
}

namespace {
thread_local uint32_t t_calls = 0; // that the thread has open
} // namespace

DriverCall::DriverCall(uint32_t cbid, const char *function, const void *parameters,
                       uint32_t context)
    : cbid_(cbid), data_{} {
  data_.function_name = function;
  data_.function_params = parameters;
  data_.function_return = &result;
  data_.context = handle(kContextHandle, context);
  data_.context_uid = context;
  data_.correlation_data = &kept_;
  data_.correlation_id = library().correlation.fetch_add(1, std::memory_order_relaxed);
}

void DriverCall::enter(const char *symbol) {
  data_.site = cupti::kEnter;
  data_.symbol_name = symbol;
  call_back(cupti::kDomainDriver, cbid_, &data_);
  is_inside_ = true;
  ++t_calls;
  library().calls.fetch_add(1);
}

bool is_others_call_open() { return library().calls.load() != t_calls; }

DriverCall::~DriverCall() {
  if (is_inside_) {
    --t_calls;
    library().calls.fetch_sub(1);
  }
  data_.site = cupti::kExit;
  call_back(cupti::kDomainDriver, cbid_, &data_);
}

Library::Library() {
  const auto set_bytes = [this](int kind, size_t bytes) {
    record_bytes[static_cast<size_t>(kind)] = static_cast<uint32_t>(bytes);
  };
  const size_t kernel = cupti::kKernelBytes[version() >= cupti::kVersion13_5 ? 8 : 4];
  set_bytes(cupti::kKindKernel, kernel);
  set_bytes(cupti::kKindConcurrentKernel, kernel);
  set_bytes(cupti::kKindMemcpy, cupti::kMemcpy6Bytes);
  set_bytes(cupti::kKindMemset, cupti::kMemsetBytes);
  set_bytes(cupti::kKindMemcpyPeer, cupti::kPeerBytes);
  set_bytes(cupti::kKindGraphTrace, cupti::kGraphTrace2Bytes);
}

RecordBytes::RecordBytes(int kind, uint32_t context)
    : size_(library().record_bytes[static_cast<size_t>(kind)].load(std::memory_order_relaxed)),
      kind_(kind), context_(context) {
  std::memset(bytes_, 0, size_);
  set(cupti::record_offset::kKind, kind);
}

void RecordBytes::emit() const {
  if (library().other_kinds[static_cast<size_t>(kind_)].load(std::memory_order_relaxed))
    library().other_delivery.append(bytes_, size_);
  if (!library().kinds[static_cast<size_t>(kind_)].load(std::memory_order_relaxed))
    return;
  if (library().is_any_held.load(std::memory_order_relaxed)) {
    std::lock_guard lock(library().mutex);
    auto held = library().held.find(context_);
    if (held != library().held.end()) {
      held->second.emplace_back(bytes_, bytes_ + size_);
      return;
    }
  }
  library().delivery.append(bytes_, size_);
}

std::vector<char> cubin(uint64_t crc, size_t bytes) {
  std::vector<char> image(bytes < sizeof crc ? sizeof crc : bytes, '\0');
  std::memcpy(image.data(), &crc, sizeof crc);
  return image;
}

uint64_t crc_of(const void *cubin, size_t bytes) {
  uint64_t crc = 0;
  if (bytes >= sizeof crc)
    std::memcpy(&crc, cubin, sizeof crc);
  return crc;
}

} // namespace fake

FAKE_EXPORT void fake_cupti_fail(const char *text) { fake::faults().set(text); }

FAKE_EXPORT uint64_t fake_cupti_calls(const char *entry_point) {
  return fake::faults().calls(entry_point);
}
