// Lines of instructions, from CUPTI and from the cubin or the PTX.
#include "collector/cupti/pc_sampling/line_table.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "check.h"
#include "collector/cupti/pc_sampling/sampled_functions.h"

namespace {

using namespace proton;

// The answers of the library.
uint32_t g_line = 0;
const char *g_file = "kernel.py";
int g_asked = 0;

cupti::Result answer(cupti::SassToSourceParameters *parameters) {
  ++g_asked;
  if (g_line == 0)
    return cupti::kErrorUnknown;
  parameters->line = g_line;
  parameters->file = g_file ? strdup(g_file) : nullptr;
  parameters->folder = strdup("/reported");
  return cupti::kSuccess;
}

CuptiPcSampling library() {
  CuptiPcSampling cupti{};
  cupti.get_sass_to_source_correlation = answer;
  return cupti;
}

CubinStore::Cubin cubin() {
  std::ifstream file(TEST_DATA "/cupti/inlined.cubin", std::ios::binary);
  return std::make_shared<const std::vector<char>>(std::istreambuf_iterator<char>(file),
                                                   std::istreambuf_iterator<char>());
}

std::string lines_of(uint32_t line, uint64_t offset, const CubinStore::Cubin &image = cubin()) {
  g_line = line;
  const std::string raw = "outer", shown = "outer(float*)";
  std::string text;
  for (const std::string &each : source_lines(library(), CubinLines(image), {raw, shown}, offset))
    text += (text.empty() ? "" : " ") + each;
  return text;
}

} // namespace

TEST(where_both_name_one_line_its_callers_are_shown) {
  CHECK_EQ(lines_of(6, 0x70), "/src/kernel.py:21@outer(float*) /src/kernel.py:6@first(float)");
}

TEST(where_they_differ_the_library_is_right) {
  CHECK_EQ(lines_of(7, 0x70), "/reported/kernel.py:7@outer(float*)");
  g_file = "other.py";
  CHECK_EQ(lines_of(6, 0x70), "/reported/other.py:6@outer(float*)");
  g_file = "kernel.py";
}

TEST(what_the_library_does_not_know_the_cubin_may) {
  CHECK_EQ(lines_of(0, 0x70), "/src/kernel.py:21@outer(float*) /src/kernel.py:6@first(float)");
  g_file = nullptr;
  CHECK_EQ(lines_of(6, 0x40), "/src/kernel.py:21@outer(float*)");
  g_file = "kernel.py";
}

TEST(without_a_line_of_the_source_that_of_the_ptx_stands_in) {
  using namespace std::literals;
  std::vector<char> bare = *cubin();
  auto name = "\0.debug_line\0"sv;
  auto found = std::search(bare.begin(), bare.end(), name.begin(), name.end());
  CHECK(found != bare.end());
  found[2] = 'x';
  auto image = std::make_shared<const std::vector<char>>(bare);
  CHECK_EQ(lines_of(0, 0x40, image), "outer.ptx:15@outer(float*)");
  CHECK_EQ(lines_of(0, 0x400, image), "");
  CHECK_EQ(lines_of(21, 0x40, image), "/reported/kernel.py:21@outer(float*)");
}

TEST(comments_of_the_ptx_name_callers_that_the_cubin_lacks) {
  std::string ptx(12, '\n');
  ptx += ".loc 1 20 3 // kernel.py:20:3 @[ kernel.py:40:1 ]\n\n";
  ptx += ".loc 1 99 3 // kernel.py:99:3 @[ kernel.py:40:1 ]\n.file 1 \"/src/kernel.py\"\n";
  PtxNoteStore::instance().add(CubinImage(*cubin()), ptx);
  CHECK_EQ(lines_of(20, 0x10), "/src/kernel.py:40@outer(float*) /src/kernel.py:20@outer(float*)");
  CHECK_EQ(lines_of(21, 0x40), "/src/kernel.py:21@outer(float*)"); // they speak of another line
  CHECK_EQ(lines_of(6, 0x70), "/src/kernel.py:21@outer(float*) /src/kernel.py:6@first(float)");
}

TEST(each_instruction_is_asked_for_once) {
  LineTable lines;
  g_line = 6;
  g_asked = 0;
  const std::string raw = "outer", shown = "outer(float*)";
  CubinStore::Cubin image = cubin();
  PcKey pc{{1, 0}, 0x70};
  const LineChain *first = lines.find(library(), pc, image, {raw, shown});
  CHECK(first && first->size() == 2);
  CHECK(lines.find(library(), pc, image, {raw, shown}) == first);
  CHECK_EQ(g_asked, 1);
  CHECK(!lines.find(library(), {{2, 0}, 0x70}, nullptr, {raw, shown})); // its code is not known yet
  CHECK(!lines.find(library(), {{1, 0}, PcCounts::kNoOffset}, image, {raw, shown}));
  CHECK_EQ(lines.size(), 1u);
  lines.trim();
  CHECK_EQ(lines.size(), 1u);
}

TEST(instructions_of_one_place_are_one_line_of_a_record) {
  StallNames names;
  std::vector<int32_t> reasons{*names.find_or_add("smsp__pcsamp_warps_issue_stalled_wait")};
  PcCounts counts;
  cupti::PcStallReason stall{0, 5};
  for (uint64_t offset : {0x50, 0x60, 0x70}) {
    cupti::PcData pc{};
    pc.cubin_crc = 1;
    pc.offset = offset;
    pc.function_name = const_cast<char *>("outer");
    pc.stall_reason_count = 1;
    pc.stall_reasons = &stall;
    counts.add(pc, reasons);
  }
  g_line = 0; // the cubin tells
  LineTable lines;
  SampledFunctions functions(counts, {{1, cubin()}}, names, library(), lines);
  std::vector<PcSampleRecord> records = functions.records();
  CHECK_EQ(records.size(), 1u);
  CHECK_EQ(records[0].lines.size(), 2u);
  CHECK_EQ(std::string(records[0].lines[0].places[1]), "/src/kernel.py:5@first(float)");
  CHECK_EQ(records[0].lines[0].stalls[0].samples, 10u);
  CHECK_EQ(std::string(records[0].lines[1].places[0]), "/src/kernel.py:21@outer");
  CHECK_EQ(records[0].lines[1].stalls[0].samples, 5u);
  CHECK_EQ(functions.without_line(), 0u);
}
