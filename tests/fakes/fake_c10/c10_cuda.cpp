// A double of libc10_cuda.so: an allocator that reports to libc10 as torch's does, under its lock.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "fake_c10/control.h"

namespace c10 {

struct Device {
  int8_t type;
  int8_t index;
};
void reportMemoryUsageToProfiler(void *address, int64_t bytes, size_t allocated, size_t reserved,
                                 Device device);
void reportOutOfMemoryToProfiler(int64_t bytes, size_t allocated, size_t reserved, Device device);

} // namespace c10

namespace {

struct Block {
  int64_t bytes;
  int device;
};
struct Allocator {
  std::mutex mutex;
  std::map<uint64_t, Block> blocks;
  std::map<uint64_t, Block> spare;
  std::array<int64_t, 8> allocated{};
  std::array<int64_t, 8> most{};
  uint64_t next = 0x7f0000000000;
};
Allocator g_allocator;

c10::Device cuda(int device) { return {1, static_cast<int8_t>(device)}; }

void count(int device, int64_t bytes) {
  auto at = static_cast<size_t>(device);
  g_allocator.allocated[at] += bytes;
  g_allocator.most[at] = std::max(g_allocator.most[at], g_allocator.allocated[at]);
}

void report(uint64_t address, int64_t bytes, int device) {
  auto allocated = static_cast<size_t>(g_allocator.allocated[static_cast<size_t>(device)]);
  c10::reportMemoryUsageToProfiler(reinterpret_cast<void *>(address), bytes, allocated, allocated,
                                   cuda(device));
}

} // namespace

extern "C" {

uint64_t fake_c10_allocate(int64_t bytes, int device) {
  const int64_t rounded = (bytes + 511) / 512 * 512;
  std::lock_guard lock(g_allocator.mutex);
  uint64_t address = 0;
  for (auto &[place, block] : g_allocator.spare) // as torch's, it hands addresses out again
    if (block.bytes == rounded && block.device == device)
      address = place;
  g_allocator.spare.erase(address);
  if (address == 0)
    address = g_allocator.next += static_cast<uint64_t>(rounded);
  g_allocator.blocks[address] = {rounded, device};
  count(device, rounded);
  report(address, rounded, device);
  return address;
}

void fake_c10_free(uint64_t address) {
  std::lock_guard lock(g_allocator.mutex);
  const Block block = g_allocator.blocks.at(address);
  g_allocator.blocks.erase(address);
  g_allocator.spare[address] = block;
  count(block.device, -block.bytes);
  report(address, -block.bytes, block.device);
}

void fake_c10_fail(int64_t bytes, int device) {
  std::lock_guard lock(g_allocator.mutex);
  auto allocated = static_cast<size_t>(g_allocator.allocated[static_cast<size_t>(device)]);
  c10::reportOutOfMemoryToProfiler(bytes, allocated, allocated, cuda(device));
}

int64_t fake_c10_allocated(int device) {
  std::lock_guard lock(g_allocator.mutex);
  return g_allocator.allocated[static_cast<size_t>(device)];
}

int64_t fake_c10_max_allocated(int device) {
  std::lock_guard lock(g_allocator.mutex);
  return g_allocator.most[static_cast<size_t>(device)];
}

void fake_c10_hold_silently(int64_t bytes, int device) {
  std::lock_guard lock(g_allocator.mutex);
  count(device, bytes);
}
}
