// The ring through which a device leaves values for the host; here the test is the device.
#include "correlation/graph_launches.h"

#include <bit>
#include <vector>

#include "check.h"

using namespace proton;

namespace {

/// Memory of a ring, and what the kernel does that appends to it.
struct Device {
  explicit Device(uint32_t size)
      : size(size), words(DeviceValues::bytes(size) / sizeof(uint64_t), 0) {}

  void append(std::vector<uint64_t> values) {
    uint64_t count = words[0];
    if (count - words[1] < DeviceValues::capacity_of(size)) {
      uint64_t *entry = &words[2 + count % DeviceValues::capacity_of(size) * (size + 1)];
      entry[0] = count + 1;
      for (uint32_t i = 0; i < size; ++i)
        entry[1 + i] = values[i];
    }
    ++words[0];
  }

  uint32_t size;
  std::vector<uint64_t> words;
};

int64_t whole(const std::optional<MetricValue> &value) { return std::get<int64_t>(*value); }

} // namespace

TEST(values_are_taken_in_the_order_of_launches) {
  Device device(1);
  DeviceValues values(device.words.data(), 1, false, false);
  device.append({5});
  device.append({static_cast<uint64_t>(-7)});
  CHECK_EQ(whole(values.take()), 5);
  CHECK_EQ(whole(values.take()), -7);
  CHECK_EQ(device.words[1], 2);
}

TEST(vectors_and_floats_keep_their_form) {
  Device device(2);
  DeviceValues values(device.words.data(), 2, true, true);
  device.append({std::bit_cast<uint64_t>(0.5), std::bit_cast<uint64_t>(-2.0)});
  auto taken = std::get<std::vector<double>>(*values.take());
  CHECK_EQ(taken[0], 0.5);
  CHECK_EQ(taken[1], -2.0);
  Device single(1);
  DeviceValues one(single.words.data(), 1, false, true);
  single.append({3});
  CHECK_EQ(std::get<std::vector<int64_t>>(*one.take()).size(), 1);
}

TEST(a_ring_without_room_loses_the_newest_and_stays_in_step) {
  Device device(1);
  DeviceValues values(device.words.data(), 1, false, false);
  const uint64_t capacity = values.capacity();
  for (uint64_t i = 0; i < capacity + 3; ++i)
    device.append({i});
  for (uint64_t i = 0; i < capacity; ++i)
    CHECK_EQ(whole(values.take()), static_cast<int64_t>(i));
  for (int i = 0; i < 3; ++i)
    CHECK(!values.take());
  device.append({99});
  CHECK_EQ(whole(values.take()), 99);
}

TEST(pulling_makes_room_for_any_number_of_launches) {
  Device device(1);
  DeviceValues values(device.words.data(), 1, false, false);
  for (uint64_t i = 0; i < 100'000; ++i) {
    device.append({i});
    values.pull();
  }
  for (uint64_t i = 0; i < 100'000; ++i)
    if (whole(values.take()) != static_cast<int64_t>(i))
      CHECK_EQ(i, uint64_t{0});
}

TEST(a_value_that_comes_too_late_is_nobodys) {
  Device device(1);
  DeviceValues values(device.words.data(), 1, false, false);
  CHECK(!values.take());
  device.append({1});
  device.append({2});
  CHECK_EQ(whole(values.take()), 2);
}

TEST(values_of_unseen_launches_are_skipped) {
  Device device(1);
  DeviceValues values(device.words.data(), 1, false, false);
  device.append({1});
  values.pull();
  device.append({2});
  values.skip();
  device.append({3});
  CHECK_EQ(whole(values.take()), 3);
}
