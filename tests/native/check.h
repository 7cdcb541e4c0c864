// A small test harness: TEST(name) { CHECK(...); } in a file of its own gives one executable.
//
// A failed check prints file, line and both values, and the test goes on; CHECK_THROWS wants the
// type of the exception. Checks may run in any thread. An argument of the executable selects the
// tests whose names contain it. Include this header in exactly one source of an executable.
#pragma once

#include <atomic>
#include <cstdio>
#include <cstring>
#include <exception>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace check {

struct Test {
  const char *name;
  void (*body)();
};

inline std::vector<Test> &registry() {
  static std::vector<Test> tests;
  return tests;
}

inline std::atomic<int> &failures() {
  static std::atomic<int> count{0};
  return count;
}

struct Registration {
  Registration(const char *name, void (*body)()) { registry().push_back({name, body}); }
};

inline void fail(const char *file, int line, const std::string &message) {
  failures().fetch_add(1);
  std::fprintf(stderr, "%s:%d: %s\n", file, line, message.c_str());
}

template <typename T> std::string show(const T &value) {
  std::ostringstream text;
  if constexpr (std::is_enum_v<T>) {
    text << +static_cast<std::underlying_type_t<T>>(value);
  } else if constexpr (requires { text << value; }) {
    text.precision(17);
    text << value;
  } else {
    text << "(" << sizeof(T) << " bytes without operator<<)";
  }
  return text.str();
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
  if (same)
    return;
  fail(file, line, std::string(expression) + ": " + show(actual) + " != " + show(expected));
}

inline int run(const char *filter) {
  int ran = 0;
  for (const Test &test : registry()) {
    if (filter != nullptr && std::strstr(test.name, filter) == nullptr)
      continue;
    const int before = failures().load();
    try {
      test.body();
    } catch (const std::exception &error) {
      fail(test.name, 0, std::string("unexpected exception: ") + error.what());
    } catch (...) {
      fail(test.name, 0, "unexpected exception that is not a std::exception");
    }
    std::printf("%s %s\n", failures().load() == before ? "ok  " : "FAIL", test.name);
    ++ran;
  }
  std::printf("%d tests, %d failed checks\n", ran, failures().load());
  return ran > 0 && failures().load() == 0 ? 0 : 1;
}

} // namespace check

#define TEST(name)                                                                                 \
  static void test_##name();                                                                       \
  static const check::Registration register_##name(#name, test_##name);                            \
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

int main(int argc, char **argv) { return check::run(argc > 1 ? argv[1] : nullptr); }
