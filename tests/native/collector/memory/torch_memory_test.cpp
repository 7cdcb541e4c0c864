// The watch over torch's allocator, on doubles of torch's libraries.
#include "collector/memory/torch_memory.h"

#include <thread>
#include <vector>

#include "check.h"
#include "driver/import_slots.h"
#include "fake_c10/control.h"
#include "own_columns.h"
#include "record/device.h"
#include "session/session_registry.h"

using namespace proton;

namespace {

/// Keeps records of memory, and passes nothing on.
struct Kept {
  explicit Kept(bool watches = true) {
    if (watches)
      CHECK(TorchMemory::instance().watch(sink));
  }
  ~Kept() { TorchMemory::instance().unwatch(); }

  struct Sink : RecordSink {
    EpochId launched(uint64_t) noexcept override { return 0; }
    EpochId launched(uint64_t, LaunchKind, uint32_t) noexcept override { return 0; }
    void launched_own(uint64_t, LaunchKind) noexcept override {}
    EpochId launched_at(uint64_t, int64_t) noexcept override { return 0; }
    void retracted(uint64_t) noexcept override {}
    void failed(uint64_t) noexcept override {}
    void complete(std::span<const KernelRecord>) noexcept override {}
    void complete(std::span<const CopyRecord>) noexcept override {}
    PendingLaunches pending(uint64_t, uint64_t) noexcept override { return {}; }
    void settled(const SettledRecord &) noexcept override {}
    void dropped(const DroppedRecord &) noexcept override {}
    GraphSink &graphs() noexcept override { return Aggregator::instance().graphs(); }
    void complete(const MemoryRecord &record) noexcept override { records.push_back(record); }
    std::vector<MemoryRecord> records;
  } sink;
};

} // namespace

TEST(the_allocator_is_found_where_torch_is_loaded) { CHECK(TorchMemory::is_loaded()); }

TEST(changes_come_with_what_the_allocator_counts_and_still_reach_torch) {
  const int64_t held = fake_c10_allocated(1);
  const uint64_t reports = fake_c10_reports();
  Kept kept;
  const uint64_t address = fake_c10_allocate(1000, 1);
  fake_c10_free(address);
  fake_c10_fail(1 << 30, 1);
  CHECK_EQ(fake_c10_reports() - reports, 3);
  CHECK_EQ(kept.sink.records.size(), 3);
  const MemoryRecord &allocated = kept.sink.records[0], &freed = kept.sink.records[1];
  CHECK_EQ(allocated.address, address);
  CHECK_EQ(allocated.bytes, 1024);
  CHECK_EQ(allocated.total_bytes, held + 1024);
  CHECK(allocated.change == MemoryChange::kAllocated);
  CHECK_EQ(allocated.device, DeviceTable::instance().find_or_add("CUDA", 1));
  CHECK(freed.change == MemoryChange::kFreed);
  CHECK_EQ(freed.bytes, 1024);
  CHECK_EQ(freed.total_bytes, held);
  CHECK(kept.sink.records[2].change == MemoryChange::kOutOfMemory);
  CHECK_EQ(kept.sink.records[2].bytes, 1 << 30);
}

TEST(reports_reach_torch_and_nothing_else_when_the_watch_ends) {
  Kept kept;
  TorchMemory::instance().unwatch();
  const uint64_t reports = fake_c10_reports();
  fake_c10_free(fake_c10_allocate(512, 0));
  CHECK_EQ(fake_c10_reports() - reports, 2);
  CHECK(kept.sink.records.empty());
  CHECK(TorchMemory::instance().watch(kept.sink)); // and it can begin again
  fake_c10_free(fake_c10_allocate(512, 0));
  CHECK_EQ(kept.sink.records.size(), 2);
}

TEST(a_watch_that_begins_twice_is_one) {
  Kept kept;
  CHECK(TorchMemory::instance().watch(kept.sink));
  const uint64_t reports = fake_c10_reports();
  fake_c10_free(fake_c10_allocate(512, 0));
  CHECK_EQ(kept.sink.records.size(), 2);
  CHECK_EQ(fake_c10_reports() - reports, 2);
}

void pass_on(void *, int64_t, size_t, size_t, uint16_t);
void (*g_passed_to)(void *, int64_t, size_t, size_t, uint16_t) = nullptr;
void pass_on(void *address, int64_t bytes, size_t all, size_t reserved, uint16_t device) {
  g_passed_to(address, bytes, all, reserved, device);
}

TEST(another_tool_that_takes_the_place_later_still_reaches_torch) {
  ImportSlots other;
  {
    Kept kept;
    other = ImportSlots::find("libc10_cuda.so",
                              "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
    g_passed_to = reinterpret_cast<decltype(g_passed_to)>(other.target());
    CHECK(other.replace(reinterpret_cast<ImportSlots::Function>(pass_on)));
    fake_c10_free(fake_c10_allocate(512, 0));
    CHECK_EQ(kept.sink.records.size(), 2);
  }
  const uint64_t reports = fake_c10_reports();
  fake_c10_free(fake_c10_allocate(512, 0)); // through what the watch left
  {
    Kept kept; // again, where it still stands
    fake_c10_free(fake_c10_allocate(512, 0));
    CHECK_EQ(kept.sink.records.size(), 2);
  }
  CHECK_EQ(fake_c10_reports() - reports, 4);
  CHECK(other.replace(reinterpret_cast<ImportSlots::Function>(g_passed_to)));
}

TEST(a_session_has_the_peak_of_the_allocator_whatever_threads_use_it) {
  Aggregator::Held().forget_memory();
  auto core = SessionRegistry::instance().add(ContextSource::kShadow, false);
  CHECK(TorchMemory::instance().watch(Aggregator::instance()));
  core->activate();
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number)
    threads.emplace_back([number] {
      std::vector<uint64_t> blocks;
      for (int i = 0; i < 3000; ++i) {
        blocks.push_back(fake_c10_allocate(512 * (i % 7 + 1), 2));
        if (i % 3 == number % 3) {
          fake_c10_free(blocks.back());
          blocks.pop_back();
        }
      }
      for (uint64_t block : blocks)
        fake_c10_free(block);
    });
  for (std::thread &thread : threads)
    thread.join();
  TorchMemory::instance().unwatch();
  CHECK(core->losses().empty());
  const CallPathTree tree = tree_of(*core);
  CHECK_EQ(own_sum(tree, "peak_bytes"), fake_c10_max_allocated(2));
  CHECK_EQ(own_sum(tree, "kept_bytes"), 0);
  core->remove();
}

TEST(a_function_that_a_library_does_not_call_has_no_slots) {
  CHECK(ImportSlots::find("libc10_cuda.so", "no_such_function").is_empty());
  CHECK(ImportSlots::find("libno_such_library.so", "malloc").is_empty());
  CHECK(!ImportSlots::find("libc10_cuda.so", "no_such_function").replace([] {}));
}
