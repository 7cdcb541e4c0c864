#include "record/code_table.h"

#include <string>

#include "check.h"

using namespace proton;

TEST(equal_codes_have_one_number) {
  uint16_t number = intern_code(0xabc);
  CHECK(number != 0);
  CHECK_EQ(intern_code(0xabc), number);
  CHECK_EQ(code_hash(number), 0xabc);
  CHECK(code_config(number) == nullptr);
}

TEST(one_code_in_two_configurations_has_two_numbers) {
  uint16_t small = intern_code(0xdef, "BLOCK=32");
  uint16_t large = intern_code(0xdef, std::string("BLOCK=64"));
  CHECK(small != large);
  CHECK_EQ(code_hash(small), code_hash(large));
  CHECK_EQ(std::string(code_config(small)), "BLOCK=32");
  CHECK_EQ(std::string(code_config(large)), "BLOCK=64");
}

TEST(no_hash_is_no_code) {
  CHECK_EQ(intern_code(0, "BLOCK=32"), 0);
  CHECK_EQ(code_hash(0), 0);
  CHECK(code_config(0) == nullptr);
}
