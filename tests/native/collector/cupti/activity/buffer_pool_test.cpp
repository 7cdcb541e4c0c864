// Activity buffers: kept over a pause, and distinguished from foreign buffers.
#include <cstddef>
#include <cstdint>

#include "check.h"
#include "collector/cupti/activity/activity_stream.h"

using namespace proton;

namespace {

constexpr size_t kMegabyte = size_t{1} << 20;

} // namespace

TEST(a_buffer_that_came_back_serves_the_next_session) {
  BufferPool pool;
  pool.prepare(kMegabyte);
  size_t bytes = 0;
  uint8_t *first = pool.acquire(bytes);
  CHECK_EQ(bytes, kMegabyte);
  CHECK(pool.release(first, bytes));

  pool.prepare(kMegabyte);

  uint8_t *again = pool.acquire(bytes);
  CHECK(again == first);
  CHECK(pool.release(again, bytes));
}

TEST(buffers_of_another_size_are_not_handed_out) {
  BufferPool pool;
  pool.prepare(kMegabyte);
  size_t bytes = 0;
  uint8_t *old = pool.acquire(bytes);

  pool.prepare(kMegabyte / 2);

  size_t fresh_bytes = 0;
  uint8_t *fresh = pool.acquire(fresh_bytes);
  CHECK_EQ(fresh_bytes, kMegabyte / 2);
  CHECK_EQ(pool.outstanding(), size_t{2});
  CHECK(pool.release(old, bytes));
  CHECK(pool.release(fresh, fresh_bytes));
  CHECK_EQ(pool.outstanding(), size_t{0});
}

TEST(a_buffer_of_someone_else_is_left_alone) {
  BufferPool pool;
  uint8_t foreign = 0;
  CHECK(!pool.release(&foreign, 1));
  CHECK(pool.release(nullptr, 0));
}
