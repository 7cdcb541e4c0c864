#include "collector/cupti/control/subscription.h"

#include <utility>

#include "support/error.h"

namespace proton {
namespace {

extern "C" void proton_bench_cupti_callback(void *table, int domain, uint32_t cbid,
                                            const void *data) {
  if (data)
    static_cast<const CallbackTable *>(table)->dispatch(domain, cbid, data);
}

} // namespace

void Subscription::subscribe(CallbackTable &table) {
  void *subscriber = nullptr;
  library_.check(library_.functions().subscribe(&subscriber, proton_bench_cupti_callback, &table),
                 "cuptiSubscribe");
  subscriber_ = subscriber;
}

void Subscription::enable(CallbackTable &table, CallbackSource &source) {
  table.add(source);
  for (uint32_t cbid : source.callbacks()) {
    cupti::Result result =
        library_.functions().enable_callback(1, subscriber_, source.domain(), cbid);
    bool is_unknown = result == cupti::kErrorInvalidParameter && source.may_lack_some();
    if (!is_unknown)
      library_.check(result, "cuptiEnableCallback");
  }
}

void Subscription::enable(const RecordReader &reader) {
  for (int kind : reader.kinds()) {
    library_.check(library_.functions().activity_enable(kind), "cuptiActivityEnable");
    kinds_.push_back(kind);
  }
}

void Subscription::set_flush_period(uint32_t period_ms) {
  if (!library_.functions().activity_flush_period || period_ms == 0)
    return; // CUPTI decides when full buffers come
  library_.check(library_.functions().activity_flush_period(period_ms), "cuptiActivityFlushPeriod");
  has_period_ = true;
}

void Subscription::enable_hardware_trace() {
  if (!library_.functions().activity_enable_hw_trace)
    throw Error(ErrorCode::kUnavailable,
                "this libcupti has no hardware trace: take one of CUDA 12.8 or newer, or unset "
                "TRITON_ENABLE_HW_TRACE");
  library_.check(library_.functions().activity_enable_hw_trace(1), "cuptiActivityEnableHWTrace");
}

uint64_t Subscription::disable_activities() noexcept {
  uint64_t failed = 0;
  for (int kind : kinds_)
    failed += library_.functions().activity_disable(kind) == cupti::kSuccess ? 0 : 1;
  kinds_.clear();
  if (has_period_)
    failed += library_.functions().activity_flush_period(0) == cupti::kSuccess ? 0 : 1;
  has_period_ = false;
  return failed;
}

uint64_t Subscription::unsubscribe() noexcept {
  if (!subscriber_)
    return 0;
  void *subscriber = std::exchange(subscriber_, nullptr);
  return library_.functions().unsubscribe(subscriber) == cupti::kSuccess ? 0 : 1;
}

void Subscription::undo_all() noexcept {
  disable_activities();
  unsubscribe();
}

} // namespace proton
