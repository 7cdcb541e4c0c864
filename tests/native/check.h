// A small test harness: TEST(name) { CHECK(...); } in any source of an executable.
//
// A failed check prints file, line and both values, and the test goes on; CHECK_THROWS wants the
// type of the exception. Checks may run in any thread. An argument of the executable selects the
// tests whose names or files contain it. What needs no type of a test is compiled once, in
// check.cpp.
#pragma once

#include <concepts>
#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace check {

struct Registration {
  Registration(const char *name, const char *file, void (*body)());
};

void fail(const char *file, int line, const char *message);
void differ(const char *file, int line, const char *expression, const std::string &actual,
            const std::string &expected);

std::string show_text(std::string_view value);
std::string show_number(long long value);
std::string show_number(unsigned long long value);
std::string show_number(double value);

template <typename T> std::string show(const T &value) {
  if constexpr (std::is_enum_v<T>) {
    return show(+static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::convertible_to<const T &, std::string_view> && !std::is_pointer_v<T>) {
    return show_text(value);
  } else if constexpr (std::signed_integral<T> && !std::is_same_v<T, char>) {
    return show_number(static_cast<long long>(value));
  } else if constexpr (std::unsigned_integral<T> && !std::is_same_v<T, char>) {
    return show_number(static_cast<unsigned long long>(value));
  } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    return show_number(static_cast<double>(value));
  } else if constexpr (requires(std::ostringstream &text) { text << value; }) {
    std::ostringstream text;
    text << value;
    return text.str();
  } else {
    return "(" + show_number(static_cast<unsigned long long>(sizeof(T))) +
           " bytes without operator<<)";
  }
}

template <typename A, typename B>
void equal(const char *file, int line, const char *expression, const A &actual, const B &expected) {
  bool same = false;
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B> && !std::is_same_v<A, bool> &&
                !std::is_same_v<B, bool> && !std::is_same_v<A, char> && !std::is_same_v<B, char>) {
    same = std::cmp_equal(actual, expected);
  } else {
    same = actual == expected;
  }
  if (!same)
    differ(file, line, expression, show(actual), show(expected));
}

/// Literals of all lengths are of one type, so that each length does not compile anew.
template <typename A, size_t size>
  requires std::convertible_to<const A &, std::string_view>
void equal(const char *file, int line, const char *expression, const A &actual,
           const char (&expected)[size]) {
  equal<std::string_view, std::string_view>(file, line, expression, actual, expected);
}

} // namespace check

#define TEST(name)                                                                                 \
  static void test_##name();                                                                       \
  static const check::Registration register_##name(#name, __FILE__, test_##name);                  \
  static void test_##name()

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition))                                                                              \
      check::fail(__FILE__, __LINE__, "false: " #condition);                                       \
  } while (false)

#define CHECK_EQ(actual, expected)                                                                 \
  check::equal(__FILE__, __LINE__, #actual " == " #expected, (actual), (expected))

#define CHECK_THROWS(expression, Exception)                                                        \
  do {                                                                                             \
    bool thrown = false;                                                                           \
    try {                                                                                          \
      static_cast<void>(expression);                                                               \
    } catch (const Exception &) {                                                                  \
      thrown = true;                                                                               \
    }                                                                                              \
    if (!thrown)                                                                                   \
      check::fail(__FILE__, __LINE__, #expression " did not throw " #Exception);                   \
  } while (false)
