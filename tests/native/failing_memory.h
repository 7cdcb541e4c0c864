// Lets operator new fail where a test wants it to. Include it in exactly one source of an
// executable.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>

namespace failing_memory {

/// Allocations of this thread that still succeed; negative: all.
inline thread_local int64_t g_left = -1;

/// Calls `work` with no memory at first, then with one allocation, and so on until it succeeds;
/// `check` is called after each failure. Returns the number of failures.
template <typename Work, typename Check> int64_t exhaust(Work work, Check check) {
  for (int64_t left = 0;; ++left) {
    g_left = left;
    try {
      work();
      g_left = -1;
      return left;
    } catch (const std::bad_alloc &) {
      g_left = -1;
    }
    check();
  }
}

} // namespace failing_memory

// Not inline: compilers would take malloc and operator delete, or the reverse, for a mismatch.
[[gnu::noinline]] void *operator new(std::size_t size) {
  if (failing_memory::g_left == 0)
    throw std::bad_alloc();
  if (failing_memory::g_left > 0)
    --failing_memory::g_left;
  if (void *memory = std::malloc(size == 0 ? 1 : size))
    return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void *memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
