// PTX: its instructions, and the comments that say what was inlined where.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "collector/cupti/cubins/ptx_notes.h"
#include "collector/gpu/work/code_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  proton::PtxNotes notes(text);
  for (uint32_t line = 0; line < 30; ++line)
    if (notes.find(line).size() > 64)
      std::abort();
  for (auto language : {proton::CodeLanguage::kPtx, proton::CodeLanguage::kAmdGcn})
    for (uint32_t count : proton::count_instructions(text, language))
      if (count > size)
        std::abort();
  return 0;
}
