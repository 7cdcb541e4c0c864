#include "writer/bytes/utf8_text.h"

#include <string>

#include "check.h"

using proton::valid_utf8;

TEST(valid_text_is_returned_without_a_copy) {
  std::string scratch = "untouched";
  std::string text = "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\n";
  std::string_view same = valid_utf8(text, scratch);
  CHECK(same.data() == text.data());
  CHECK_EQ(same.size(), text.size());
  CHECK_EQ(scratch, "untouched");
}

TEST(nul_and_control_characters_are_valid_utf8) {
  std::string text("a\0b\x01", 4);
  CHECK_EQ(valid_utf8(text), text);
}

TEST(bytes_that_are_not_utf8_become_backslash_x) {
  CHECK_EQ(valid_utf8("a\xFFz"), "a\\xffz");
  CHECK_EQ(valid_utf8("\x80"), "\\x80");
}

TEST(truncated_sequences_are_escaped_byte_by_byte) {
  CHECK_EQ(valid_utf8("\xE2\x82"), "\\xe2\\x82");
  CHECK_EQ(valid_utf8("\xF0\x9F\x98z"), "\\xf0\\x9f\\x98z");
}

TEST(overlong_forms_and_values_past_10ffff_are_escaped) {
  CHECK_EQ(valid_utf8("\xC0\xAF"), "\\xc0\\xaf");
  CHECK_EQ(valid_utf8("\xE0\x80\xAF"), "\\xe0\\x80\\xaf");
  CHECK_EQ(valid_utf8("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(encoded_lone_surrogates_become_backslash_u) {
  CHECK_EQ(valid_utf8("x\xED\xA0\x80y"), "x\\ud800y");
  CHECK_EQ(valid_utf8("\xED\xBF\xBF"), "\\udfff");
}

TEST(text_after_an_escape_is_kept) {
  CHECK_EQ(valid_utf8("\xFF\xC3\xA4\xFE\xE2\x82\xAC"), "\\xff\xC3\xA4\\xfe\xE2\x82\xAC");
}

TEST(a_megabyte_of_garbage_is_escaped_whole) {
  CHECK_EQ(valid_utf8(std::string(1 << 20, '\xFF')).size(), size_t{4} << 20);
}
