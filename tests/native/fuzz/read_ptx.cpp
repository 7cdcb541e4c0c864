// PTX with the comments that say what was inlined where.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "collector/cupti/cubins/ptx_notes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  proton::PtxNotes notes(std::string_view(reinterpret_cast<const char *>(data), size));
  for (uint32_t line = 0; line < 30; ++line)
    if (notes.find(line).size() > 64)
      std::abort();
  return 0;
}
