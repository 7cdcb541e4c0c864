// Tensors among the Python arguments of a call, as a variant of what is called.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace proton {

/// The type of tensors, and where an object of it points to its tensor, in bytes. [GIL held]
void set_tensor_type(const pybind11::object &type, uint32_t offset);

/// Number of the variant of a call with these arguments, as `intern_variant` numbers it; -1 without
/// tensors, and while no session reads shapes. Tensors in lists and tuples count too. [GIL held,
/// noexcept]
///   of: what is called, where that makes another variant
///   more: the rest of a new variant's text
int32_t variant_of_call(std::span<PyObject *const> arguments, uint64_t of = 0,
                        const std::function<std::string()> &more = {}) noexcept;

} // namespace proton
