// Steps: what the program does again and again, and windows of steps, each twice as long as the
// one before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace proton {

/// What shows that a step begins; a later kind is believed rather than an earlier one.
enum class StepMark : uint8_t { kGraph, kLayer, kScope, kOptimizer, kProfiler, kDeclared };

/// Steps that lie between two moments.
struct StepWindow {
  StepMark mark = StepMark::kGraph;
  std::string name;     ///< of the scope, layer or optimizer
  uint64_t first = 0;   ///< number of its first step, from 1, of those with this mark
  int64_t begin_ns = 0; ///< of the first
  int64_t end_ns = 0;   ///< of the last
  uint64_t count = 0;   ///< of its steps
  std::vector<int64_t>
      periods_ns; ///< from one beginning to the next, of some of them, evenly spread
};

/// Called on the thread whose step begins a window: the first one of a new kind of step, which
/// makes all windows so far worthless, or a later one. With the lock of the steps held.
using WindowListener = void (*)(bool is_first) noexcept;

/// Steps are looked for from now on, anew. Call while no session follows them. [any thread]
void follow_steps(WindowListener listener);

/// A step of this kind begins on the calling thread, or ends where the kind marks ends: a step
/// lasts from one mark to the next. Numbers in the name do not count. Does nothing in tests, and
/// for what shows no step where it stands: inside of layers and operators, or of many scopes. The
/// steps are those of one thread.
void mark_step(StepMark mark, std::string_view name) noexcept;

/// The program was not recorded for a while: windows begin anew. [any thread]
void restart_steps();

/// The newest window that is over; empty: there is none.
std::optional<StepWindow> whole_window();
/// How many marks of the present kind there were, also before it was known to be that of steps.
uint64_t step_marks();

/// How many steps began, of whatever kind. [any thread] no lock
uint32_t step_number() noexcept;

/// Called in a forked child, where no session goes on.
void forget_steps_after_fork() noexcept;

} // namespace proton
