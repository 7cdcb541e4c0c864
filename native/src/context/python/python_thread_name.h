// Python's name for the calling thread.
#pragma once

#include <string>

namespace proton {

/// Whether the calling thread holds the interpreter's lock.
bool holds_interpreter() noexcept;

/// The name of its threading.Thread; empty if the thread does not hold the interpreter's lock, or
/// Python's threading does not know it. Runs no code of the program. Throws std::bad_alloc only.
std::string python_thread_name();

} // namespace proton
