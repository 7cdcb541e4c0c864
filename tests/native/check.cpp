#include "check.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

namespace check {

namespace {

struct Test {
  const char *name;
  const char *file;
  void (*body)();
};

/// Made by the first test that registers, which may be before the globals of this file.
std::vector<Test> &registry() {
  static std::vector<Test> tests;
  return tests;
}

std::atomic<int> g_failures{0};

int run(const char *filter) {
  int ran = 0;
  for (const Test &test : registry()) {
    if (filter != nullptr && std::strstr(test.name, filter) == nullptr &&
        std::strstr(test.file, filter) == nullptr)
      continue;
    const int before = g_failures.load();
    try {
      test.body();
    } catch (const std::exception &error) {
      fail(test.name, 0, (std::string("unexpected exception: ") + error.what()).c_str());
    } catch (...) {
      fail(test.name, 0, "unexpected exception that is not a std::exception");
    }
    std::printf("%s %s\n", g_failures.load() == before ? "ok  " : "FAIL", test.name);
    ++ran;
  }
  std::printf("%d tests, %d failed checks\n", ran, g_failures.load());
  return ran > 0 && g_failures.load() == 0 ? 0 : 1;
}

} // namespace

Registration::Registration(const char *name, const char *file, void (*body)()) {
  registry().push_back({name, file, body});
}

void fail(const char *file, int line, const char *message) {
  g_failures.fetch_add(1);
  std::fprintf(stderr, "%s:%d: %s\n", file, line, message);
}

void differ(const char *file, int line, const char *expression, const std::string &actual,
            const std::string &expected) {
  fail(file, line, (std::string(expression) + ": " + actual + " != " + expected).c_str());
}

std::string show_text(std::string_view value) { return std::string(value); }
std::string show_number(long long value) { return std::to_string(value); }
std::string show_number(unsigned long long value) { return std::to_string(value); }

std::string show_number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.17g", value);
  return text;
}

} // namespace check

int main(int argc, char **argv) { return check::run(argc > 1 ? argv[1] : nullptr); }
