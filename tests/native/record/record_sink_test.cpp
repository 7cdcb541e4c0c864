#include "record/record_sink.h"

#include <set>

#include "check.h"

TEST(correlation_ids_never_repeat_nor_meet_those_of_a_vendor) {
  std::set<uint64_t> ids;
  for (int i = 0; i < 1000; ++i)
    ids.insert(proton::next_correlation_id());
  CHECK_EQ(ids.size(), 1000);
  CHECK(*ids.begin() > uint64_t{0xFFFFFFFF});
}
