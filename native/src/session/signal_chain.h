// Our signal handlers stand in front of the process's own: they write to a pipe, then pass the
// signal on.
#pragma once

#include <span>

namespace proton {

/// SIGTERM, SIGHUP and SIGINT.
std::span<const int> watched_signals() noexcept;
/// "SIGTERM", or "a signal" for one that is not watched.
const char *signal_name(int number) noexcept;

/// From now on each watched signal writes its number as one byte to `descriptor`, which must not
/// block. A signal that the process ignores stays ignored.
void install_signal_chain(int descriptor) noexcept;
/// Puts our handler back in front where the process has installed another one since.
void renew_signal_chain() noexcept;
/// Restores what stands behind our handlers. Also right in a forked child.
void remove_signal_chain() noexcept;

/// Whether the process handles the signal itself, instead of dying by it.
bool is_handled_by_process(int number) noexcept;
/// Lets a handler that waits for `signal_answered` go on. Before the process's own handler for
/// SIGTERM or SIGHUP runs, ours waits for the answer, two seconds at most: that handler may end
/// the process at once.
void signal_answered() noexcept;
/// Waits until every signal that came so far is answered, ten seconds at most; where the answer is
/// the end of the process, until that. Else a program that a signal woke might end before it.
void wait_for_answers() noexcept;

} // namespace proton
