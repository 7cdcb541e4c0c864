// Appends MessagePack values, each in its shortest form (msgpack.org, specification of 2013).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace proton {

/// A growing MessagePack document. Containers announce their sizes; the caller keeps to them.
/// Lengths past 2^32 - 1 throw Error(kOutput): the format has no room for them.
class MsgpackBytes {
public:
  void nil() { byte(0xC0); }
  void boolean(bool value) { byte(value ? 0xC3 : 0xC2); }
  void integer(int64_t value);
  void count(uint64_t value); ///< an unsigned integer
  void real(double value);    ///< NaN and infinities become nil
  void text(std::string_view value);
  void binary(std::string_view value);
  void array(size_t size);
  void map(size_t size);
  /// A key of a map with its value.
  void entry(std::string_view key, std::string_view value) {
    text(key);
    text(value);
  }
  void entry(std::string_view key, std::signed_integral auto value) {
    text(key);
    integer(value);
  }
  void entry(std::string_view key, std::unsigned_integral auto value) {
    text(key);
    count(value);
  }
  /// Appends values that are encoded already.
  void encoded(std::string_view bytes) { out_.append(bytes); }

  size_t size() const { return out_.size(); }
  std::string take() { return std::move(out_); }

private:
  void byte(unsigned value) { out_ += static_cast<char>(value); }
  void sized(unsigned code, uint64_t value, unsigned width);
  void head(size_t size, unsigned short_code, unsigned short_sizes, unsigned code, bool has_bytes);

  std::string out_;
};

} // namespace proton
