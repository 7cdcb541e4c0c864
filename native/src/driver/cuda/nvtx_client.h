// Sends ranges to the tool that receives the NVTX calls of the process.
#pragma once

#include <string>

namespace proton {

/// A client as NVTX's own headers compile it into a program: it hands a table of empty functions to
/// the library that NVTX_INJECTION64_PATH names, which fills in the ones that it wants to hear.
class NvtxClient {
public:
  /// Opens the library for the life of the process. False if it does not receive NVTX calls, wants
  /// no ranges, or is libcupti, which would hand them to our own collector.
  bool open(const std::string &path);

  void push(const char *name) const noexcept { push_(name); }
  void pop() const noexcept { pop_(); }

private:
  using Push = int (*)(const char *);
  using Pop = int (*)();
  Push push_ = nullptr;
  Pop pop_ = nullptr;
};

} // namespace proton
