// Appends MessagePack values, each in its shortest form (msgpack.org, specification of 2013).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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
  /// Appends values that are encoded already.
  void encoded(std::string_view bytes) { out_.append(bytes); }

  size_t size() const { return out_.size(); }
  std::string take() { return std::move(out_); }

private:
  void byte(unsigned value) { out_ += static_cast<char>(value); }
  void big_endian(uint64_t value, int bytes);
  std::string out_;
};

} // namespace proton
