// The hash of a kernel's code, by its function and by its name.
#include <cstdlib>

#include "check.h"
#include "collector/cupti/control/cupti_session.h"
#include "collector/gpu/work/kernel_table.h"
#include "record/code_table.h"

using namespace proton;

namespace {

uint64_t hash_of(const void *function) { return code_hash(KernelCodes::instance().find(function)); }

} // namespace

TEST(a_function_has_the_newest_hash_until_it_is_forgotten) {
  int function = 0;
  KernelCodes &codes = KernelCodes::instance();
  CHECK_EQ(hash_of(&function), 0);
  codes.set(&function, 11);
  CHECK_EQ(hash_of(&function), 11);
  codes.set(&function, 12);
  CHECK_EQ(hash_of(&function), 12);
  codes.set(&function, 0);
  CHECK_EQ(hash_of(&function), 0);
}

TEST(a_name_that_two_modules_have_has_no_hash) {
  KernelCodes &codes = KernelCodes::instance();
  codes.set_name("one", 5);
  codes.set_name("one", 5);
  CHECK_EQ(codes.find_name("one"), 5);
  codes.set_name("one", 6);
  CHECK_EQ(codes.find_name("one"), 0);
  CHECK_EQ(codes.find_name("none"), 0);
}

TEST(kernels_of_one_shape_and_name_are_one) {
  KernelTable table;
  KernelShape shape;
  shape.name = "_Z3addPf";
  const KnownKernel &first = table.find(shape);
  CHECK_EQ(first.name, "add(float*)");
  CHECK_EQ(first.variant.raw_name, std::string("_Z3addPf"));
  CHECK_EQ(table.find(shape).identity, first.identity);
  shape.grid[0] = 2;
  CHECK(table.find(shape).identity != first.identity);
}

TEST(a_name_whose_place_is_used_again_is_another_kernel) {
  KernelTable table;
  char place[] = "old";
  KernelShape shape;
  shape.name = place;
  uint64_t old = table.find(shape).identity;
  place[0] = 'n';
  const KnownKernel &fresh = table.find(shape);
  CHECK_EQ(fresh.name, "nld");
  CHECK(fresh.identity != old);
  table.trim();
  CHECK_EQ(table.find(shape).identity, fresh.identity);
}

TEST(a_launch_carries_the_hash_of_its_function) {
  // In the double a kernel's function is its name, which it keeps at one place.
  CuptiSession session;
  fake_cupti_launch("coded", 7);
  session.stop();
  std::string file = session.core->encode(0, FileFormat::kProton);
  CHECK_EQ(msgpack::parse(file)["variants"].items.size(), 1);
}
