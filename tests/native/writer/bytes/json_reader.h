// A strict little JSON reader for tests, independent of our own code.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace json {

struct Value {
  enum class Type { kNull, kBool, kNumber, kText, kArray, kObject };
  Type type = Type::kNull;
  bool truth = false;
  double number = 0;
  std::string text; ///< also how a number is written
  std::vector<Value> items;
  std::map<std::string, Value> entries;

  const Value &operator[](const std::string &key) const { return entries.at(key); }
  bool has(const std::string &key) const { return entries.contains(key); }
};

class Reader {
public:
  explicit Reader(std::string_view text) : text_(text) {}

  Value document() {
    Value value = read(0);
    blank();
    if (at_ != text_.size())
      fail("text behind the value");
    return value;
  }

private:
  [[noreturn]] void fail(const std::string &what) const {
    throw std::runtime_error("JSON, character " + std::to_string(at_) + ": " + what);
  }
  char peek() const {
    if (at_ >= text_.size())
      fail("cut off");
    return text_[at_];
  }
  void blank() {
    while (at_ < text_.size() && std::string_view(" \n\r\t").find(text_[at_]) != text_.npos)
      ++at_;
  }
  void expect(std::string_view wanted) {
    if (text_.substr(at_, wanted.size()) != wanted)
      fail("no " + std::string(wanted));
    at_ += wanted.size();
  }
  Value read(int depth) {
    if (depth > 64)
      fail("too deep");
    blank();
    Value value;
    switch (peek()) {
    case '{':
      return object(depth);
    case '[':
      return array(depth);
    case '"':
      value.type = Value::Type::kText;
      value.text = string();
      return value;
    case 't':
    case 'f':
      value.type = Value::Type::kBool;
      value.truth = peek() == 't';
      expect(value.truth ? "true" : "false");
      return value;
    case 'n':
      expect("null");
      return value;
    default:
      return number();
    }
  }
  Value number() {
    Value value;
    value.type = Value::Type::kNumber;
    size_t end = text_.find_first_not_of("-+.eE0123456789", at_);
    value.text = text_.substr(at_, end - at_);
    char *stop = nullptr;
    value.number = std::strtod(value.text.c_str(), &stop);
    if (value.text.empty() || *stop != '\0' || value.text.back() == '.' || value.text[0] == '+')
      fail("no number");
    at_ += value.text.size();
    return value;
  }
  unsigned hex() {
    unsigned code = 0;
    for (int digit = 0; digit < 4; ++digit, ++at_) {
      size_t found = std::string_view("0123456789abcdef").find(peek());
      if (found == std::string_view::npos)
        fail("no hexadecimal digit");
      code = code * 16 + static_cast<unsigned>(found);
    }
    return code;
  }
  std::string string() {
    std::string read;
    expect("\"");
    while (peek() != '"') {
      auto byte = static_cast<unsigned char>(text_[at_]);
      if (byte < 0x20)
        fail("a control byte in a text");
      if (byte != '\\') {
        read += text_[at_++];
        continue;
      }
      ++at_;
      char letter = peek();
      ++at_;
      size_t plain = std::string_view("\"\\/bfnrt").find(letter);
      if (letter == 'u')
        read += static_cast<char>(hex());
      else if (plain != std::string_view::npos)
        read += "\"\\/\b\f\n\r\t"[plain];
      else
        fail("no such escape");
    }
    ++at_;
    return read;
  }
  Value array(int depth) {
    Value value;
    value.type = Value::Type::kArray;
    expect("[");
    for (blank(); peek() != ']'; blank()) {
      if (!value.items.empty())
        expect(",");
      value.items.push_back(read(depth + 1));
    }
    ++at_;
    return value;
  }
  Value object(int depth) {
    Value value;
    value.type = Value::Type::kObject;
    expect("{");
    for (blank(); peek() != '}'; blank()) {
      if (!value.entries.empty())
        expect(",");
      blank();
      std::string key = string();
      blank();
      expect(":");
      if (!value.entries.emplace(key, read(depth + 1)).second)
        fail("the key " + key + " stands twice");
    }
    ++at_;
    return value;
  }

  std::string_view text_;
  size_t at_ = 0;
};

inline Value read(std::string_view text) { return Reader(text).document(); }

} // namespace json
