// Lines of instructions, as CUPTI reports them.
#include "collector/cupti/pc_sampling/line_table.h"

#include <cstring>
#include <memory>
#include <string>

#include "check.h"

namespace {

using namespace proton;

// What the library reports.
uint32_t g_line = 0;
const char *g_file = "kernel.py";
int g_calls = 0;

cupti::Result correlate(cupti::SassToSourceParameters *parameters) {
  ++g_calls;
  if (g_line == 0)
    return cupti::kErrorUnknown;
  parameters->line = parameters->offset < 0x70 ? g_line : g_line + 1;
  parameters->file = g_file ? strdup(g_file) : nullptr;
  parameters->folder = strdup("/src");
  return cupti::kSuccess;
}

CuptiPcSampling library() {
  CuptiPcSampling cupti{};
  cupti.get_sass_to_source_correlation = correlate;
  return cupti;
}

const CubinStore::Cubin kCubin = std::make_shared<const std::vector<char>>(64, 'c');
const std::string kRaw = "outer", kShown = "outer(float*)";

} // namespace

TEST(a_line_is_named_as_the_library_reports_it) {
  g_line = 6;
  CHECK_EQ(source_line(library(), *kCubin, {kRaw, kShown}, 0), "/src/kernel.py:6@outer(float*)");
  g_file = nullptr;
  CHECK_EQ(source_line(library(), *kCubin, {kRaw, kShown}, 0), "");
  g_file = "kernel.py";
  g_line = 0;
  CHECK_EQ(source_line(library(), *kCubin, {kRaw, kShown}, 0), "");
}

TEST(the_library_is_asked_once_for_an_instruction) {
  LineTable lines;
  g_line = 6;
  g_calls = 0;
  PcKey pc{{1, 0}, 0x70};
  const char *first = lines.find(library(), pc, kCubin, {kRaw, kShown});
  CHECK(first != nullptr);
  CHECK(lines.find(library(), pc, kCubin, {kRaw, kShown}) == first);
  CHECK_EQ(g_calls, 1);
  CHECK(!lines.find(library(), {{2, 0}, 0x70}, nullptr, {kRaw, kShown})); // its code may come yet
  CHECK(!lines.find(library(), {{1, 0}, PcCounts::kNoOffset}, kCubin, {kRaw, kShown}));
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
  g_line = 5;
  LineTable lines;
  SampledFunctions functions(counts, {{1, kCubin}}, names, library(), lines);
  std::vector<PcSampleRecord> records = functions.records();
  CHECK_EQ(records.size(), 1u);
  CHECK_EQ(records[0].lines.size(), 2u);
  CHECK_EQ(std::string(records[0].lines[0].place), "/src/kernel.py:5@outer");
  CHECK_EQ(records[0].lines[0].stalls[0].samples, 10u);
  CHECK_EQ(std::string(records[0].lines[1].place), "/src/kernel.py:6@outer");
  CHECK_EQ(records[0].lines[1].stalls[0].samples, 5u);
  CHECK_EQ(functions.without_line(), 0u);
}
