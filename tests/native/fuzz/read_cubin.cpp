// A cubin: its sections, symbols, relocations, tables of lines and kernels.
#include <cstdint>
#include <memory>
#include <vector>

#include "collector/cupti/cubins/cubin_lines.h"
#include "driver/cuda/cubin.h"

using namespace proton;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto text = reinterpret_cast<const char *>(data);
  kernels_of_cubin(text, size);
  CubinLines lines(std::make_shared<const std::vector<char>>(text, text + size));
  for (uint64_t offset : {uint64_t{0}, uint64_t{0x50}, uint64_t{0x80}, ~uint64_t{0}}) {
    lines.places("outer", offset);
    lines.ptx_line("outer", offset);
  }
  return 0;
}
