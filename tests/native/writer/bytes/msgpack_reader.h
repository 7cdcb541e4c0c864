// A strict little MessagePack reader for tests, independent of our own encoder.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace msgpack {

struct Value {
  enum class Type { kNil, kBool, kInt, kReal, kText, kBinary, kArray, kMap };
  Type type = Type::kNil;
  int64_t integer = 0;
  double real = 0;
  std::string text; ///< of kText and kBinary
  std::vector<Value> items;
  std::vector<std::string> keys; ///< in file order
  std::map<std::string, Value> entries;

  const Value &operator[](const std::string &key) const { return entries.at(key); }
  const Value &operator[](size_t index) const { return items.at(index); }
};

class Reader {
public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  Value read();
  bool at_end() const { return bytes_.empty(); }

private:
  uint64_t number(size_t size) {
    uint64_t value = 0;
    for (unsigned char byte : take(size))
      value = value << 8 | byte;
    return value;
  }
  std::string_view take(size_t size) {
    if (size > bytes_.size())
      throw std::runtime_error("truncated MessagePack");
    std::string_view head = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return head;
  }
  Value integer(int64_t value) {
    Value read;
    read.type = Value::Type::kInt;
    read.integer = value;
    return read;
  }
  Value bytes(Value::Type type, size_t size) {
    Value read;
    read.type = type;
    read.text = take(size);
    return read;
  }
  Value array(size_t size) {
    Value read;
    read.type = Value::Type::kArray;
    for (size_t i = 0; i < size; ++i)
      read.items.push_back(this->read());
    return read;
  }
  Value map(size_t size) {
    Value read;
    read.type = Value::Type::kMap;
    for (size_t i = 0; i < size; ++i) {
      std::string key = this->read().text;
      read.keys.push_back(key);
      if (!read.entries.emplace(key, this->read()).second)
        throw std::runtime_error("duplicate key " + key);
    }
    return read;
  }
  Value real(uint64_t bits) {
    Value read;
    read.type = Value::Type::kReal;
    read.real = std::bit_cast<double>(bits);
    return read;
  }
  Value boolean(bool value) {
    Value read;
    read.type = Value::Type::kBool;
    read.integer = value;
    return read;
  }
  std::string_view bytes_;
};

inline Value Reader::read() {
  auto lead = static_cast<unsigned char>(take(1)[0]);
  if (lead < 0x80 || lead >= 0xE0)
    return integer(static_cast<signed char>(lead));
  if (lead < 0x90)
    return map(lead & 0xF);
  if (lead < 0xA0)
    return array(lead & 0xF);
  if (lead < 0xC0)
    return bytes(Value::Type::kText, lead & 0x1F);
  switch (lead) {
  case 0xC0:
    return {};
  case 0xC2:
  case 0xC3:
    return boolean(lead == 0xC3);
  case 0xC4:
  case 0xC5:
  case 0xC6:
    return bytes(Value::Type::kBinary, number(size_t{1} << (lead - 0xC4)));
  case 0xCB:
    return real(number(8));
  case 0xCC:
  case 0xCD:
  case 0xCE:
  case 0xCF:
    return integer(static_cast<int64_t>(number(size_t{1} << (lead - 0xCC))));
  case 0xD0:
    return integer(static_cast<int8_t>(number(1)));
  case 0xD1:
    return integer(static_cast<int16_t>(number(2)));
  case 0xD2:
    return integer(static_cast<int32_t>(number(4)));
  case 0xD3:
    return integer(static_cast<int64_t>(number(8)));
  case 0xD9:
  case 0xDA:
  case 0xDB:
    return bytes(Value::Type::kText, number(size_t{1} << (lead - 0xD9)));
  case 0xDC:
    return array(number(2));
  case 0xDD:
    return array(number(4));
  case 0xDE:
    return map(number(2));
  case 0xDF:
    return map(number(4));
  default:
    throw std::runtime_error("unexpected lead byte " + std::to_string(lead));
  }
}

/// The one value that `bytes` holds.
inline Value parse(std::string_view bytes) {
  Reader reader(bytes);
  Value value = reader.read();
  if (!reader.at_end())
    throw std::runtime_error("bytes follow the document");
  return value;
}

} // namespace msgpack
