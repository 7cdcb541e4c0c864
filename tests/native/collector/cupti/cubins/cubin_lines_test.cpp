// Lines and inlined code of a cubin that ptxas made, whole and damaged.
#include "collector/cupti/cubins/cubin_lines.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "check.h"

namespace {

using proton::CubinLines;
using proton::SourcePlace;

std::vector<char> cubin() {
  std::ifstream file(TEST_DATA "/cupti/inlined.cubin", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

CubinLines lines_of(std::vector<char> image) {
  return CubinLines(std::make_shared<const std::vector<char>>(std::move(image)));
}

/// "file:line@function file:line@function"
std::string places(const CubinLines &lines, uint64_t offset, const char *function = "outer") {
  std::string text;
  for (const SourcePlace &place : lines.places(function, offset))
    text += (text.empty() ? "" : " ") + place.file + ":" + std::to_string(place.line) + "@" +
            place.function;
  return text;
}

/// The same cubin with one text replaced by another of the same length.
std::vector<char> renamed(std::string_view from, std::string_view to) {
  std::vector<char> image = cubin();
  auto found = std::search(image.begin(), image.end(), from.begin(), from.end());
  CHECK(found != image.end());
  std::copy(to.begin(), to.end(), found);
  return image;
}

/// Must work for any bytes.
void read_all(const CubinLines &lines) {
  for (uint64_t offset : {uint64_t{0}, uint64_t{0x50}, uint64_t{0x80}, ~uint64_t{0}}) {
    CHECK(lines.places("outer", offset).size() <= 64);
    lines.ptx_line("outer", offset);
  }
}

} // namespace

TEST(inlined_code_stands_below_the_line_it_was_inlined_into) {
  CubinLines lines = lines_of(cubin());
  CHECK_EQ(places(lines, 0x0), "/src/kernel.py:20@");
  CHECK_EQ(places(lines, 0x40), "/src/kernel.py:21@");
  CHECK_EQ(places(lines, 0x50), "/src/kernel.py:21@ /src/kernel.py:5@_Z5firstf");
  CHECK_EQ(places(lines, 0x70), "/src/kernel.py:21@ /src/kernel.py:6@_Z5firstf");
  CHECK_EQ(places(lines, 0xb0),
           "/src/kernel.py:21@ /src/kernel.py:6@_Z5firstf /src/parts/inner.py:3@second");
  CHECK_EQ(places(lines, 0xc0), "/src/kernel.py:24@");
}

TEST(instructions_outside_of_a_function_have_no_line) {
  CubinLines lines = lines_of(cubin());
  CHECK_EQ(places(lines, 0x180), "");
  CHECK_EQ(places(lines, 0x50, "another"), "");
  CHECK_EQ(places(lines, ~uint64_t{0} - 8), "");
  CHECK_EQ(lines.ptx_line("outer", 0x180), 0u);
}

TEST(lines_of_ptx_are_known_also_where_those_of_the_source_are_not) {
  CubinLines lines = lines_of(cubin());
  CHECK_EQ(lines.ptx_line("outer", 0x40), 15u);
  CHECK_EQ(lines.ptx_line("outer", 0xc0), 24u);
  using namespace std::literals;
  CubinLines bare = lines_of(renamed("\0.debug_line\0"sv, "\0.other_line\0"sv));
  CHECK_EQ(places(bare, 0x50), "");
  CHECK_EQ(bare.ptx_line("outer", 0x40), 15u);
}

TEST(what_is_not_a_cubin_has_no_lines) {
  std::vector<char> empty;
  std::vector<char> text(5000, 'x');
  std::vector<char> head = cubin();
  head.resize(64);
  for (const std::vector<char> &image : {empty, text, head}) {
    CubinLines lines = lines_of(image);
    CHECK_EQ(places(lines, 0x50), "");
    CHECK_EQ(lines.ptx_line("outer", 0x50), 0u);
  }
}

TEST(a_cubin_that_is_cut_off_anywhere_does_no_harm) {
  const std::vector<char> whole = cubin();
  for (size_t size = 0; size < whole.size(); ++size)
    read_all(lines_of({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)}));
}

TEST(bytes_that_are_wrong_do_no_harm) {
  const std::vector<char> whole = cubin();
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<char> image = whole;
    for (int change = 0; change < 1 + round % 8; ++change)
      image[random() % image.size()] = static_cast<char>(random() % 4 == 0 ? 0xff : random());
    read_all(lines_of(std::move(image)));
  }
}

TEST(wrong_bytes_in_the_lines_themselves_do_no_harm) {
  const std::vector<char> whole = cubin();
  constexpr size_t kBegin = 0x400, kEnd = 0x600; // has both tables of lines and the names
  std::mt19937 random(8);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<char> image = whole;
    for (int change = 0; change < 1 + round % 4; ++change)
      image[kBegin + random() % (kEnd - kBegin)] = static_cast<char>(random());
    read_all(lines_of(std::move(image)));
  }
}
