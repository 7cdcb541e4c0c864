// Comments in PTX that say what was inlined where.
#include "collector/cupti/cubins/ptx_notes.h"

#include <random>
#include <string>

#include "check.h"

namespace {

using proton::PtxNotes;

const std::string kPtx = R"(.version 8.7
.visible .entry k()
{
	.loc	1 20 16                         // a.py:20:16
	add.s64 	%rd1, %rd2, 4;
	.loc	1 9 15                          // a.py:9:15 @[ a.py:14:14 @[ a.py:22:19 ] ]
	ex2.approx.f32 	%r9, %r8;
	.loc	2 263 15 is_stmt 0 // standard.py:263:15 @[ standard.py:293:36 @[ a.py:23:18 ] ]
	add.f32 %r1, %r2, %r3;
	.loc	3 7 15                          // b.py:7:15 @[ a.py:24:5 ]
	.loc	1 25 1                          // a.py:25:1
	ret;
}
	.file	1 "/src/a.py"
	.file	2 "/lib/standard.py"
	.file	3 "/src/b.py"
	.file	4 "/other/b.py"
)";

std::string places(const PtxNotes &notes, uint32_t line) {
  std::string text;
  for (const auto &[file, number] : notes.find(line))
    text += (text.empty() ? "" : " ") + file + ":" + std::to_string(number);
  return text;
}

} // namespace

TEST(a_chain_holds_from_its_line_to_the_next) {
  PtxNotes notes(kPtx);
  CHECK_EQ(places(notes, 1), "");
  CHECK_EQ(places(notes, 5), "");
  CHECK_EQ(places(notes, 6), "/src/a.py:22 /src/a.py:14 /src/a.py:9");
  CHECK_EQ(places(notes, 7), "/src/a.py:22 /src/a.py:14 /src/a.py:9");
  CHECK_EQ(places(notes, 8), "/src/a.py:23 /lib/standard.py:293 /lib/standard.py:263");
  CHECK_EQ(places(notes, 12), "");
}

TEST(the_file_of_the_instruction_is_found_by_its_number) {
  CHECK_EQ(places(PtxNotes(kPtx), 10), "/src/a.py:24 /src/b.py:7");
}

TEST(a_caller_in_one_of_two_files_of_that_name_keeps_the_name_alone) {
  PtxNotes notes(".loc 1 9 1 // a.py:9:1 @[ b.py:2:1 ]\n.file 1 \"/a.py\"\n"
                 ".file 2 \"/src/b.py\"\n.file 3 \"/other/b.py\"\n");
  CHECK_EQ(places(notes, 1), "b.py:2 /a.py:9");
}

TEST(other_comments_are_not_chains) {
  for (const char *text :
       {"", "\n\n", ".loc", ".loc 1", ".loc 1 2 3 // @[ ]", ".loc 1 2 3 // x @[ y",
        ".loc 1 2 3 // a.py:9:1 @[ a.py:3:1 ]", ".loc 1 2 3 // :2:1 @[ ::1 ]",
        ".loc 1 2 3, function_name $x, inlined_at 1 4 5 // a.py:2:3",
        ".loc 1 4294967296 3 // a.py:4294967296:3 @[ a.py:3:1 ]"}) {
    PtxNotes notes(text);
    CHECK_EQ(places(notes, 1), "");
    CHECK_EQ(notes.bytes(), 0u);
  }
}

TEST(any_text_does_no_harm) {
  std::mt19937 random(3);
  for (int round = 0; round < 20'000; ++round) {
    std::string text = kPtx;
    for (int change = 0; change < 1 + round % 6; ++change)
      text[random() % text.size()] = "@[]:/\n\t 9\"."[random() % 11];
    PtxNotes notes(text);
    for (uint32_t line = 0; line < 20; ++line)
      CHECK(notes.find(line).size() <= 64);
  }
}
