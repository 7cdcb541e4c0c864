// One error type for every call that comes from Python; bindings map it to proton_bench.errors.
#pragma once

#include <stdexcept>
#include <string>

namespace proton {

enum class ErrorCode { kUsage, kMetric, kScope, kSession, kFormat, kOutput, kUnavailable };

/// An error with the code that decides which Python class it becomes.
class Error : public std::runtime_error {
public:
  Error(ErrorCode code, const std::string &message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

private:
  ErrorCode code_;
};

} // namespace proton
