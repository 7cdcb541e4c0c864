// Times nested operators and kernels of one thread: who ran how long by itself.
#pragma once

#include <cstdint>
#include <string_view>

#include "record/record.h"

namespace proton {

/// True for autograd's own frames around a backward operator; they do not count towards the depth.
bool is_autograd_wrapper(std::string_view name) noexcept;

/// Settings of the one CPU collector. [any thread]
void set_op_depth(uint32_t max_depth) noexcept;
void set_ops_enabled(bool enabled) noexcept;

/// Begin and end of an operator; ends pair with begins in LIFO order. Operators below the depth
/// limit and on muted threads are not recorded: their time stays with the one that contains them.
void begin_op(std::string_view name) noexcept;
void begin_kernel(std::string_view name, int32_t variant) noexcept;
/// Ends the newest operator or kernel of this thread; nothing when there is none.
void end_op() noexcept;

/// While muted, operators of this thread are not recorded. Nests.
void mute_ops() noexcept;
void unmute_ops() noexcept;

} // namespace proton
