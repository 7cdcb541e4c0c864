// How files that are compiled against a vendor's headers compare our numbers with theirs.
#pragma once

#include <cstddef>

#define SAME(ours, theirs)                                                                         \
  static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs))
#define AT(ours, type, field) SAME(ours, offsetof(type, field))
#define START(type, field, vendor_type, vendor_field)                                              \
  SAME(offsetof(type, field), offsetof(vendor_type, vendor_field))
#define FIELD(type, field, vendor_type, vendor_field)                                              \
  SAME(sizeof(type), sizeof(vendor_type));                                                         \
  START(type, field, vendor_type, vendor_field)

// The parameters are those of the declared functions, up to handles and enums, which are pointers
// and numbers.
template <typename Ours, typename Theirs> struct SameCall;
template <typename OurAnswer, typename TheirAnswer, typename... Ours, typename... Theirs>
struct SameCall<OurAnswer (*)(Ours...), TheirAnswer (*)(Theirs...)> {
  static constexpr bool value =
      sizeof...(Ours) == sizeof...(Theirs) && ((sizeof(Ours) == sizeof(Theirs)) && ...);
};
#define SAME_CALL(ours, theirs) static_assert(SameCall<function::ours, decltype(&theirs)>::value)
