// Scopes that were open when their thread ended: an object on another thread may still close them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "context/thread/shadow_stack.h"

namespace proton {

/// Keeps those scopes of the stack that objects hold, before the stack is left. [ending thread]
void keep_expired(ShadowStack &stack, uint32_t thread) noexcept;
/// A scope by its number. [any thread]
std::optional<OpenScope> find_expired(uint64_t scope_id);
/// False if it is not kept. [any thread]
bool forget_expired(uint64_t scope_id) noexcept;
/// Appends the ids that a collection must keep. Call after reading those of the stacks. [any
/// thread]
void append_expired(std::vector<ContextId> &ids);
/// Called in a forked child.
void clear_expired() noexcept;

} // namespace proton
