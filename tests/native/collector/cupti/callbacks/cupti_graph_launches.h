// Graphs on the double of libcupti: captured and launched below scopes.
#pragma once

#include <initializer_list>

#include "aggregate/consumer/aggregator.h"
#include "check.h"
#include "collector/cupti/control/cupti_session.h"

namespace proton {

inline GraphBook &book() { return Aggregator::Held().graphs(); }

inline void capture(const char *scope, std::initializer_list<const char *> kernels) {
  ScopeGuard guard(scope);
  for (const char *kernel : kernels)
    fake_cupti_launch(kernel, 7);
}

inline uint32_t captured(const char *scope, std::initializer_list<const char *> kernels) {
  fake_cupti_capture_begin(7);
  capture(scope, kernels);
  return fake_cupti_capture_end(7);
}

inline void launch(const char *scope, uint32_t executable, int times = 1) {
  ScopeGuard guard(scope);
  for (int i = 0; i < times; ++i)
    fake_cupti_graph_launch(executable, 7);
}

/// Declared before a session: checks that nothing of graphs is left after it.
struct NothingIsLeft {
  ~NothingIsLeft() {
    CHECK_EQ(book().open_count(), 0);
    CHECK_EQ(book().layout_count(), 0);
    CHECK_EQ(book().capture_count(), 0);
  }
};

} // namespace proton
