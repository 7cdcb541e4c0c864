#include "device.h"

#include "handles.h"

namespace fake {

Device &device() {
  static Device *instance = new Device; // threads of the profiler libraries run on
  return *instance;
}

void add_tracer(Tracer *tracer) {
  for (std::atomic<Tracer *> &place : device().tracers) {
    Tracer *none = nullptr;
    if (place.load() == tracer || place.compare_exchange_strong(none, tracer))
      return;
  }
}

int called(const char *name, std::atomic<uint64_t> &calls) {
  return device().faults.called(name, calls);
}
void know(const char *name, std::atomic<uint64_t> *calls) { device().faults.know(name, calls); }
uint64_t clock_ns() { return device().clock_ns.load(); }
bool is_shuffled() { return device().is_shuffled.load(std::memory_order_relaxed); }
bool hides_kernels() { return device().hides_kernels.load(); }
bool runtime_has_started() { return device().has_started.load(); }

uint64_t take_drop() {
  std::atomic<uint64_t> &left = device().drop;
  uint64_t present = left.load(std::memory_order_relaxed);
  while (present != 0 && !left.compare_exchange_weak(present, present - 1)) {
  }
  return present == 0 ? 0 : 1;
}

std::vector<Kernel> loaded_kernels() {
  std::lock_guard lock(device().mutex);
  std::vector<Kernel> all;
  for (const auto &[name, kernel] : device().kernels)
    all.push_back(kernel);
  return all;
}

Kernel kernel_of(const char *name) {
  Kernel kernel;
  {
    std::lock_guard lock(device().mutex);
    auto [found, is_new] = device().kernels.try_emplace(name);
    if (is_new) {
      found->second.name = found->first.c_str();
      found->second.id = device().kernels.size();
    }
    kernel = found->second;
    if (!is_new)
      return kernel;
  }
  for (std::atomic<Tracer *> &tracer : device().tracers)
    if (Tracer *present = tracer.load(); present != nullptr)
      present->kernel_loaded(kernel);
  return kernel;
}

const char *name_of(const void *function) {
  std::lock_guard lock(device().mutex);
  for (const auto &[name, kernel] : device().kernels)
    if (kernel.name == function)
      return kernel.name;
  return nullptr;
}

void *stream_handle(uint32_t number) {
  return number == 0 ? nullptr : handle(kStreamHandle, number);
}

uint32_t stream_number(const void *stream) {
  return stream == nullptr ? 0 : static_cast<uint32_t>(id_of(stream));
}

void emit(const Activity &activity) {
  for (std::atomic<Tracer *> &place : device().tracers) {
    Tracer *tracer = place.load(std::memory_order_acquire);
    uint64_t external = 0;
    if (tracer == nullptr || !tracer->dispatch(activity, external))
      continue;
    if (device().is_any_held.load(std::memory_order_relaxed)) {
      std::lock_guard lock(device().mutex);
      const auto held = device().held.find(activity.kernel.device);
      if (held != device().held.end()) {
        held->second.push_back({tracer, activity, external});
        continue;
      }
    }
    tracer->record(activity, external);
  }
}

TracedCall::TracedCall(CallKind kind) {
  call.kind = kind;
  call.correlation = device().correlation.fetch_add(1, std::memory_order_relaxed);
  device().has_started.store(true, std::memory_order_relaxed);
}

void TracedCall::enter() {
  for (size_t i = 0; i < kept_.size(); ++i) {
    Tracer *tracer = device().tracers[i].load(std::memory_order_acquire);
    if (tracer == nullptr || !tracer->wants(call.kind))
      continue;
    is_entered_[i] = true;
    tracer->enter(call);
    kept_[i] = {call.kept[0], call.kept[1]};
  }
}

TracedCall::~TracedCall() {
  for (size_t i = 0; i < kept_.size(); ++i) {
    if (!is_entered_[i])
      continue;
    call.kept[0] = kept_[i][0];
    call.kept[1] = kept_[i][1];
    device().tracers[i].load(std::memory_order_acquire)->exit(call);
  }
}

} // namespace fake

using fake::device;

FAKE_EXPORT void fake_amd_hold(uint32_t ordinal) {
  std::lock_guard lock(device().mutex);
  device().held.try_emplace(ordinal);
  device().is_any_held = true;
}

FAKE_EXPORT void fake_amd_release(uint32_t ordinal) {
  std::vector<fake::HeldRecord> records;
  {
    std::lock_guard lock(device().mutex);
    const auto held = device().held.find(ordinal);
    if (held == device().held.end())
      return;
    records = std::move(held->second);
    device().held.erase(held);
    device().is_any_held = !device().held.empty();
  }
  for (const fake::HeldRecord &each : records)
    each.tracer->record(each.activity, each.external);
}

FAKE_EXPORT void fake_amd_drop(uint64_t records) { device().drop += records; }
FAKE_EXPORT void fake_amd_shuffle(int is_on) { device().is_shuffled = is_on != 0; }
FAKE_EXPORT void fake_amd_hide_kernels(int is_on) { device().hides_kernels = is_on != 0; }
FAKE_EXPORT void fake_amd_set_correlation(uint64_t next) { device().correlation = next; }
FAKE_EXPORT void fake_amd_set_clock(uint64_t next_ns) { device().clock_ns = next_ns; }
FAKE_EXPORT void fake_amd_fail(const char *faults) { device().faults.set(faults); }
FAKE_EXPORT void fake_amd_start_runtime() { device().has_started = true; }

FAKE_EXPORT uint64_t fake_amd_calls(const char *entry_point) {
  return device().faults.calls(entry_point);
}

FAKE_EXPORT void fake_amd_drain() {
  for (std::atomic<fake::Tracer *> &tracer : device().tracers)
    if (fake::Tracer *present = tracer.load(); present != nullptr)
      present->drain();
}

FAKE_EXPORT uint64_t fake_amd_records_waiting() {
  uint64_t waiting = 0;
  for (std::atomic<fake::Tracer *> &tracer : device().tracers)
    if (fake::Tracer *present = tracer.load(); present != nullptr)
      waiting += present->waiting();
  return waiting;
}
