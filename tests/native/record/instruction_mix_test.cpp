#include "record/code_table.h"

#include "check.h"

using namespace proton;

TEST(a_code_keeps_its_first_mix) {
  InstructionMix mix{};
  mix[static_cast<size_t>(InstructionClass::kMma)] = 32;
  note_instructions(0x3141, mix);
  note_instructions(0x3141, InstructionMix{});
  const InstructionMix *found = find_instructions(0x3141);
  CHECK(found != nullptr && *found == mix);
}

TEST(unknown_codes_have_no_mix) {
  note_instructions(0, InstructionMix{});
  CHECK(find_instructions(0) == nullptr);
  CHECK(find_instructions(0x2718) == nullptr);
}
