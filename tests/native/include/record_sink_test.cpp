// The installed C header, seen from C++; its layout is an ABI and must not drift.
#include "proton_bench/record_sink.h"

#include <cstddef>
#include <vector>

#include "check.h"
#include "record/record.h"

static_assert(sizeof(pb_token) == 32);
static_assert(sizeof(pb_variant_record) == 48);
static_assert(offsetof(pb_variant_record, signature) == 40);
static_assert(sizeof(pb_kernel_record) == 64);
static_assert(offsetof(pb_kernel_record, device_index) == 48);
static_assert(sizeof(pb_record_sink) == 48);
static_assert(offsetof(pb_record_sink, self) == 8);
static_assert(sizeof(pb_token::correlation_id) == sizeof(proton::LaunchRecord::correlation_id));
static_assert(sizeof(pb_variant_record::grid) == sizeof(proton::VariantRecord::grid));
static_assert(sizeof(pb_kernel_record::start_ns) == sizeof(proton::KernelRecord::start_ns));

namespace {

struct Seen {
  std::vector<uint64_t> ids;
  uint64_t failed = 0;
  uint64_t dropped = 0;
};

Seen &seen(void *self) { return *static_cast<Seen *>(self); }

pb_record_sink counting_sink(Seen &target) {
  pb_record_sink sink{};
  sink.abi_version = PB_RECORD_SINK_ABI_VERSION;
  sink.size = sizeof sink;
  sink.self = &target;
  sink.capture = [](void *, pb_token *out) {
    if (out)
      out->correlation_id = 7;
    return uint64_t{7};
  };
  sink.failed = [](void *self, uint64_t) { ++seen(self).failed; };
  sink.complete_kernels = [](void *self, const pb_kernel_record *records, size_t count) {
    for (size_t i = 0; i < count; ++i)
      seen(self).ids.push_back(records[i].correlation_id);
  };
  sink.dropped = [](void *self, const char *, uint64_t count) { seen(self).dropped += count; };
  return sink;
}

} // namespace

TEST(a_collector_reaches_the_sink_through_the_table) {
  Seen target;
  pb_record_sink sink = counting_sink(target);
  pb_token token{};
  uint64_t id = sink.capture(sink.self, &token);
  pb_kernel_record record{};
  record.correlation_id = id;
  sink.complete_kernels(sink.self, &record, 1);
  sink.failed(sink.self, id);
  sink.dropped(sink.self, "buffer full", 3);
  CHECK_EQ(token.correlation_id, id);
  CHECK((target.ids == std::vector<uint64_t>{7}));
  CHECK_EQ(target.failed, 1);
  CHECK_EQ(target.dropped, 3);
}

TEST(a_sink_of_another_version_is_not_usable) {
  Seen target;
  pb_record_sink sink = counting_sink(target);
  CHECK(pb_record_sink_usable(&sink));
  sink.abi_version += 1;
  CHECK(!pb_record_sink_usable(&sink));
  CHECK(!pb_record_sink_usable(nullptr));
}

TEST(a_sink_with_fewer_functions_is_not_usable_and_one_with_more_is) {
  Seen target;
  pb_record_sink sink = counting_sink(target);
  sink.size -= 8;
  CHECK(!pb_record_sink_usable(&sink));
  sink.size += 16;
  CHECK(pb_record_sink_usable(&sink));
}
