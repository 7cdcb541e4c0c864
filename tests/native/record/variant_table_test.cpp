#include "record/device.h"

#include <string>

#include "check.h"

using namespace proton;

TEST(equal_variants_have_one_position) {
  VariantRecord variant;
  variant.grid[0] = 7;
  std::string signature = "*fp32";
  variant.signature = signature.c_str();
  int32_t position = intern_variant(variant);
  std::string same_text = "*fp32";
  variant.signature = same_text.c_str();
  CHECK_EQ(intern_variant(variant), position);
  variant.grid[0] = 8;
  CHECK(intern_variant(variant) != position);
}

TEST(an_interned_variant_outlives_the_record) {
  int32_t position = -1;
  {
    std::string signature = "i32,i64";
    VariantRecord variant;
    variant.shared_bytes = 128;
    variant.signature = signature.c_str();
    position = intern_variant(variant);
  }
  const VariantRecord *found = find_variant(position);
  CHECK(found != nullptr);
  CHECK_EQ(std::string(found->signature), "i32,i64");
  CHECK_EQ(found->shared_bytes, 128);
}

TEST(no_position_is_no_variant) { CHECK(find_variant(-1) == nullptr); }
