#include "record/device.h"

#include "check.h"
#include "failing_memory.h"

using namespace proton;

namespace {

Device facts(const char *kind, int32_t index, int64_t num_sms) {
  Device device;
  device.kind = kind;
  device.index = index;
  device.num_sms = num_sms;
  return device;
}

} // namespace

TEST(a_device_keeps_its_position) {
  DeviceTable table;
  int32_t first = table.find_or_add("CUDA", 0);
  int32_t second = table.find_or_add("CUDA", 1);
  int32_t other_kind = table.find_or_add("CPU", 0);
  CHECK_EQ(table.find_or_add("CUDA", 0), first);
  CHECK(first != second && first != other_kind);
  CHECK_EQ(table.list().size(), 3);
}

TEST(a_device_that_found_no_memory_is_added_whole_the_next_time) {
  DeviceTable table;
  int32_t position = -1;
  const std::string kind = "a kind of device that is not short";
  int64_t failures = failing_memory::exhaust([&] { position = table.find_or_add(kind, 3); },
                                             [&] { CHECK_EQ(table.list().size(), 0); });
  CHECK(failures > 0);
  CHECK_EQ(position, 0);
  CHECK_EQ(table.list().size(), 1);
}

TEST(facts_of_a_known_device_are_filled_in_place) {
  DeviceTable table;
  int32_t position = table.find_or_add("HIP", 2);
  CHECK_EQ(table.list()[static_cast<size_t>(position)].num_sms, 0);
  table.set(facts("HIP", 2, 304));
  CHECK_EQ(table.find_or_add("HIP", 2), position);
  CHECK_EQ(table.list()[static_cast<size_t>(position)].num_sms, 304);
  CHECK_EQ(table.list().size(), 1);
}

TEST(facts_of_an_unknown_device_add_it) {
  DeviceTable table;
  table.set(facts("CPU", 0, 8));
  CHECK_EQ(table.list()[0].num_sms, 8);
}

TEST(the_process_has_one_table) { CHECK(&DeviceTable::instance() == &DeviceTable::instance()); }
