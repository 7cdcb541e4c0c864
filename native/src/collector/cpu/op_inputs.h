// Arguments of operators that begin, read from libtorch's memory by a layout that a probe found.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace proton {

/// Where a libtorch keeps the arguments of an operator. Offsets are in bytes. An argument is 16
/// bytes: a number or a pointer, and behind it a tag, 32 bits, that says what it is.
struct InputLayout {
  uint32_t arguments = 0; ///< in at::RecordFunction: a pointer to them, and behind it their number
  uint32_t sizes = 0; ///< in a tensor: how many sizes it has, then up to five or a pointer to all
  uint32_t dtype = 0; ///< in a tensor: its type, 16 bits
  uint32_t elements = 0; ///< in a list: pointers to its first argument and behind its last
  uint32_t tensor_tag = 0, list_tag = 0, int_tag = 0, bool_tag = 0, double_tag = 0;
  std::map<uint16_t, std::string> dtypes; ///< names of types; a tensor of another type is undefined
  uint32_t device = 0; ///< in a tensor: the kind of its device, 8 bits; 0: unknown
  uint8_t meta = 0;    ///< the kind of those without memory: what runs on them does no work
};

/// An operator whose work is known from its arguments.
struct WorkOperator {
  std::string name;
  bool needs_numbers = false; ///< not from the tensors among them alone
};

/// From now on operators of this layout are read. [one thread at a time]
void set_input_layout(const InputLayout &layout, std::vector<WorkOperator> operators);
/// Whether a layout is set.
bool knows_inputs() noexcept;

/// Calls `visit(name of its type, sizes)` for the tensors among the arguments of an operator, those
/// of lists too. [callback in which the operator begins]
using VisitTensor = std::function<void(std::string_view, std::span<const int64_t>)>;
void for_each_tensor(const void *record_function, const VisitTensor &visit);

/// The arguments as text: `f32[64,128], [f32[8], f32[8]]`. Numbers are left out unless the
/// operator's work needs them. [same callback]
std::string inputs_text(const void *record_function, bool with_numbers);

inline constexpr int32_t kNoWork = -1;
inline constexpr int32_t kLostWork = -2; ///< there are too many already
inline constexpr int32_t kFakeWork = -3; ///< on tensors without memory, as a compiler traces it
/// What the arguments of an operator make of it.
struct OpInputs {
  int32_t variant = -1;    ///< as `intern_variant` numbers it
  int32_t work = kNoWork;  ///< as `works` lists it
  int32_t of_operator = 0; ///< number of the operator with work; any where there is none
};
/// Reads the arguments of the operator called `name`; equal ones are found in a table of the
/// calling thread. [same callback, noexcept]
OpInputs read_inputs(const void *record_function, std::string_view name) noexcept;

/// The variant of a call with these tensors, which libtorch's objects point to; -1 for none.
///   of: what is called, where that makes another variant
///   more: the rest of a new variant's text; may be empty
int32_t tensors_variant(std::span<const void *const> tensors, uint64_t of,
                        const std::function<std::string()> &more) noexcept;

/// An operator with arguments whose work is to be computed.
struct Work {
  std::string name;
  std::string signature;
};
/// Those met so far, from the one at `first` on. [any thread]
std::vector<Work> works(size_t first);

} // namespace proton
