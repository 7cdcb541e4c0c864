// Reads protocol buffers for tests, without any schema: independent of the writer.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace proto {

struct Field {
  uint32_t number = 0;
  uint64_t value = 0;     ///< of a varint or a fixed64
  std::string_view bytes; ///< of a text or a nested message
};

/// The fields of one message in their order.
class Message {
public:
  explicit Message(std::string_view bytes) {
    for (size_t at = 0; at < bytes.size();)
      at = read(bytes, at);
  }

  const std::vector<Field> &fields() const { return fields_; }
  std::vector<Field> all(uint32_t number) const {
    std::vector<Field> found;
    for (const Field &field : fields_)
      if (field.number == number)
        found.push_back(field);
    return found;
  }
  bool has(uint32_t number) const { return !all(number).empty(); }
  uint64_t count(uint32_t number) const { return has(number) ? all(number).back().value : 0; }
  std::string text(uint32_t number) const {
    return has(number) ? std::string(all(number).back().bytes) : "";
  }
  Message message(uint32_t number) const {
    return Message(has(number) ? all(number).back().bytes : std::string_view());
  }
  double real(uint32_t number) const {
    uint64_t bits = count(number);
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

private:
  static uint64_t varint(std::string_view bytes, size_t &at) {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at >= bytes.size())
        throw std::runtime_error("a varint is cut off");
      auto byte = static_cast<unsigned char>(bytes[at++]);
      value |= shift < 64 ? uint64_t{byte & 0x7Fu} << shift : 0;
      if (byte < 0x80)
        return value;
    }
    throw std::runtime_error("a varint is too long");
  }
  size_t read(std::string_view bytes, size_t at) {
    uint64_t tag = varint(bytes, at);
    Field field;
    field.number = static_cast<uint32_t>(tag >> 3);
    uint64_t size = 0;
    switch (tag & 7) {
    case 0:
      field.value = varint(bytes, at);
      break;
    case 1:
      size = 8;
      break;
    case 2:
      size = varint(bytes, at);
      break;
    default:
      throw std::runtime_error("no such type of field");
    }
    if (field.number == 0 || size > bytes.size() - at)
      throw std::runtime_error("a field is cut off");
    field.bytes = bytes.substr(at, size);
    if ((tag & 7) == 1)
      std::memcpy(&field.value, field.bytes.data(), 8); // both are little-endian here
    fields_.push_back(field);
    return at + size;
  }

  std::vector<Field> fields_;
};

} // namespace proto
