#include "writer/bytes/msgpack_json.h"

#include <bit>
#include <cstdint>

#include "writer/bytes/json_text.h"

namespace proton {
namespace {

constexpr int kMaxDepth = 64;

class Reader {
public:
  Reader(std::string_view bytes, std::string &out) : bytes_(bytes), out_(out) {}

  bool value(int depth);
  bool at_end() const { return bytes_.empty(); }

private:
  bool number(size_t size, uint64_t &value);
  bool integer(size_t size);
  bool count(size_t size);
  bool real(size_t size);
  bool text(uint64_t size);
  bool skip(uint64_t size);
  bool array(uint64_t size, int depth);
  bool map(uint64_t size, int depth);
  bool key(int depth);
  bool sized(uint8_t type, int depth);

  std::string_view bytes_;
  std::string &out_;
};

bool Reader::number(size_t size, uint64_t &value) {
  if (size > bytes_.size())
    return false;
  value = 0;
  for (size_t at = 0; at < size; ++at)
    value = value << 8 | static_cast<unsigned char>(bytes_[at]);
  bytes_.remove_prefix(size);
  return true;
}

bool Reader::integer(size_t size) {
  uint64_t value = 0;
  if (!number(size, value))
    return false;
  auto unused = static_cast<int>(64 - 8 * size); // the sign moves to the top and back
  append_json_number(out_, static_cast<int64_t>(value << unused) >> unused);
  return true;
}

bool Reader::count(size_t size) {
  uint64_t value = 0;
  if (!number(size, value))
    return false;
  out_ += std::to_string(value);
  return true;
}

bool Reader::real(size_t size) {
  uint64_t bits = 0;
  if (!number(size, bits))
    return false;
  double value = size == 8 ? std::bit_cast<double>(bits)
                           : double{std::bit_cast<float>(static_cast<uint32_t>(bits))};
  append_json_number(out_, value);
  return true;
}

bool Reader::text(uint64_t size) {
  if (size > bytes_.size())
    return false;
  append_quoted(out_, bytes_.substr(0, size));
  bytes_.remove_prefix(size);
  return true;
}

bool Reader::skip(uint64_t size) {
  if (size > bytes_.size())
    return false;
  bytes_.remove_prefix(size);
  out_ += "null";
  return true;
}

bool Reader::array(uint64_t size, int depth) {
  out_ += '[';
  for (uint64_t item = 0; item < size; ++item) {
    out_ += item == 0 ? "" : ",";
    if (!value(depth + 1))
      return false;
  }
  out_ += ']';
  return true;
}

// JSON has keys of text only.
bool Reader::key(int depth) {
  size_t before = out_.size();
  if (!value(depth))
    return false;
  if (out_[before] == '"')
    return true;
  std::string shown = out_.substr(before);
  out_.resize(before);
  append_json_text(out_, shown);
  return true;
}

bool Reader::map(uint64_t size, int depth) {
  out_ += '{';
  for (uint64_t item = 0; item < size; ++item) {
    out_ += item == 0 ? "" : ",";
    if (!key(depth + 1))
      return false;
    out_ += ':';
    if (!value(depth + 1))
      return false;
  }
  out_ += '}';
  return true;
}

// Types whose length follows in 1, 2, 4 or 8 bytes.
bool Reader::sized(uint8_t type, int depth) {
  uint64_t size = 0;
  auto length = [&](unsigned first) { return number(size_t{1} << (type - first), size); };
  if (type >= 0xC4 && type <= 0xC6)
    return length(0xC4) && skip(size);
  if (type >= 0xC7 && type <= 0xC9)
    return length(0xC7) && skip(size + 1);
  if (type >= 0xD4 && type <= 0xD8)
    return skip((uint64_t{1} << (type - 0xD4)) + 1);
  if (type >= 0xD9 && type <= 0xDB)
    return length(0xD9) && text(size);
  if (type == 0xDC || type == 0xDD)
    return number(type == 0xDC ? 2 : 4, size) && array(size, depth);
  if (type == 0xDE || type == 0xDF)
    return number(type == 0xDE ? 2 : 4, size) && map(size, depth);
  return false;
}

bool Reader::value(int depth) {
  uint64_t first = 0;
  if (depth > kMaxDepth || !number(1, first))
    return false;
  auto type = static_cast<uint8_t>(first);
  if (type < 0x80) {
    out_ += std::to_string(type);
    return true;
  }
  if (type < 0x90)
    return map(type & 0x0Fu, depth);
  if (type < 0xA0)
    return array(type & 0x0Fu, depth);
  if (type < 0xC0)
    return text(type & 0x1Fu);
  if (type >= 0xE0) {
    append_json_number(out_, int64_t{static_cast<int8_t>(type)});
    return true;
  }
  if (type == 0xC0 || type == 0xC2 || type == 0xC3) {
    out_ += type == 0xC0 ? "null" : type == 0xC3 ? "true" : "false";
    return true;
  }
  if (type == 0xCA || type == 0xCB)
    return real(type == 0xCA ? 4 : 8);
  if (type >= 0xCC && type <= 0xCF)
    return count(size_t{1} << (type - 0xCC));
  if (type >= 0xD0 && type <= 0xD3)
    return integer(size_t{1} << (type - 0xD0));
  return sized(type, depth);
}

} // namespace

bool append_msgpack_as_json(std::string_view bytes, std::string &out) {
  size_t before = out.size();
  Reader reader(bytes, out);
  if (reader.value(0) && reader.at_end())
    return true;
  out.resize(before);
  return false;
}

} // namespace proton
