#include "writer/bytes/msgpack_bytes.h"

#include <cmath>
#include <limits>

#include "check.h"
#include "writer/bytes/msgpack_reader.h"

using proton::MsgpackBytes;

namespace {

msgpack::Value integer(int64_t value) {
  MsgpackBytes out;
  out.integer(value);
  return msgpack::parse(out.take());
}

size_t integer_size(int64_t value) {
  MsgpackBytes out;
  out.integer(value);
  return out.size();
}

} // namespace

TEST(integers_read_back_at_every_width) {
  const int64_t values[] = {0,
                            1,
                            127,
                            128,
                            255,
                            256,
                            65535,
                            65536,
                            -1,
                            -32,
                            -33,
                            -128,
                            -129,
                            -32768,
                            -32769,
                            1 << 30,
                            -(1 << 30),
                            int64_t{1} << 40,
                            -(int64_t{1} << 40),
                            std::numeric_limits<int64_t>::max(),
                            std::numeric_limits<int64_t>::min()};
  for (int64_t value : values)
    CHECK_EQ(integer(value).integer, value);
}

TEST(integers_take_the_shortest_form) {
  CHECK_EQ(integer_size(127), 1);
  CHECK_EQ(integer_size(-32), 1);
  CHECK_EQ(integer_size(255), 2);
  CHECK_EQ(integer_size(-128), 2);
  CHECK_EQ(integer_size(65535), 3);
  CHECK_EQ(integer_size(4294967295), 5);
  CHECK_EQ(integer_size(4294967296), 9);
}

TEST(doubles_are_exact_and_non_finite_ones_nil) {
  MsgpackBytes out;
  out.array(3);
  out.real(0.1);
  out.real(std::nan(""));
  out.real(-std::numeric_limits<double>::infinity());
  msgpack::Value value = msgpack::parse(out.take());
  CHECK_EQ(value[0].real, 0.1);
  CHECK(value[1].type == msgpack::Value::Type::kNil);
  CHECK(value[2].type == msgpack::Value::Type::kNil);
}

TEST(texts_and_binaries_read_back_at_every_length_class) {
  for (size_t length : {size_t{0}, size_t{31}, size_t{32}, size_t{255}, size_t{256}, size_t{65535},
                        size_t{65536}}) {
    MsgpackBytes out;
    std::string content(length, 'x');
    out.array(2);
    out.text(content);
    out.binary(content);
    msgpack::Value value = msgpack::parse(out.take());
    CHECK(value[0].text == content);
    CHECK(value[1].text == content);
    CHECK(value[0].type == msgpack::Value::Type::kText);
    CHECK(value[1].type == msgpack::Value::Type::kBinary);
  }
}

TEST(containers_read_back_at_every_length_class) {
  for (size_t length : {size_t{0}, size_t{15}, size_t{16}, size_t{65535}, size_t{65536}}) {
    MsgpackBytes out;
    out.array(length);
    for (size_t i = 0; i < length; ++i)
      out.nil();
    CHECK_EQ(msgpack::parse(out.take()).items.size(), length);
  }
}

TEST(maps_past_fifteen_entries_read_back) {
  MsgpackBytes out;
  out.map(20);
  for (int i = 0; i < 20; ++i) {
    out.text(std::to_string(i));
    out.boolean(i % 2 == 0);
  }
  msgpack::Value value = msgpack::parse(out.take());
  CHECK_EQ(value.keys.size(), 20);
  CHECK_EQ(value["4"].integer, 1);
}
