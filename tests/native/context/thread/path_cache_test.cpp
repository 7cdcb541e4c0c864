#include "context/thread/shadow_stack.h"

#include <memory>
#include <string>

#include "check.h"

using namespace proton;

namespace {

PathStep step(ContextId parent, std::string_view name, uint32_t collection = 2) {
  return {parent, hashed(name), FrameKind::kOp, 1, collection};
}

} // namespace

TEST(a_step_is_found_once_it_was_kept) {
  auto cache = std::make_unique<PathCache>();
  CHECK_EQ(cache->find(step(1, "a")), PathCache::kNone);
  cache->keep(step(1, "a"), 7);
  CHECK_EQ(cache->find(step(1, "a")), 7);
}

TEST(every_part_of_a_step_counts) {
  auto cache = std::make_unique<PathCache>();
  cache->keep(step(1, "a"), 7);
  CHECK_EQ(cache->find(step(2, "a")), PathCache::kNone);
  CHECK_EQ(cache->find(step(1, "b")), PathCache::kNone);
  CHECK_EQ(cache->find(step(1, "")), PathCache::kNone);
  CHECK_EQ(cache->find(step(1, "a", 4)), PathCache::kNone);
  PathStep other_kind = step(1, "a"), other_generation = other_kind;
  other_kind.kind = FrameKind::kScope;
  other_generation.generation = 2;
  CHECK_EQ(cache->find(other_kind), PathCache::kNone);
  CHECK_EQ(cache->find(other_generation), PathCache::kNone);
}

TEST(nothing_is_found_while_a_collection_is_at_work) {
  auto cache = std::make_unique<PathCache>();
  CHECK_EQ(cache->find(step(0, "", 1)), PathCache::kNone);
  CHECK_EQ(cache->find({0, {"", 0}, FrameKind::kUnknown, 0, 1}), PathCache::kNone);
  cache->keep(step(1, "a", 2), 7);
  CHECK_EQ(cache->find(step(1, "a", 3)), PathCache::kNone);
}

TEST(an_id_of_an_earlier_collection_gives_way) {
  auto cache = std::make_unique<PathCache>();
  cache->keep(step(1, "a", 2), 7);
  cache->keep(step(1, "a", 4), 8);
  CHECK_EQ(cache->find(step(1, "a", 4)), 8);
}

TEST(names_of_equal_hash_are_distinguished) {
  auto cache = std::make_unique<PathCache>();
  PathStep one = step(1, "one"), two = step(1, "two");
  two.name.hash = one.name.hash;
  cache->keep(one, 7);
  CHECK_EQ(cache->find(two), PathCache::kNone);
  cache->keep(two, 8);
  CHECK_EQ(cache->find(one), 7);
  CHECK_EQ(cache->find(two), 8);
}

TEST(a_name_that_is_too_long_is_looked_up_each_time) {
  auto cache = std::make_unique<PathCache>();
  std::string longest(PathCache::kLongestName, 'x'), longer = longest + "x";
  std::string longer_by_a_byte_of_length = longest + std::string(256, 'x');
  cache->keep(step(1, longest), 7);
  cache->keep(step(1, longer), 8);
  CHECK_EQ(cache->find(step(1, longest)), 7);
  CHECK_EQ(cache->find(step(1, longer)), PathCache::kNone);
  CHECK_EQ(cache->find(step(1, longer_by_a_byte_of_length)), PathCache::kNone);
}

TEST(a_training_step_of_hundreds_of_paths_is_found_whole) {
  auto cache = std::make_unique<PathCache>();
  for (ContextId id = 1; id <= 600; ++id)
    cache->keep(step(id, "op"), id + 1000);
  uint32_t found = 0;
  for (int round = 0; round < 2; ++round)
    for (ContextId id = 1; id <= 600; ++id)
      found += cache->find(step(id, "op")) == id + 1000 ? 1 : 0;
  CHECK(found > 1150); // a few share a place
}

TEST(more_paths_than_there_is_room_for_are_never_mixed_up) {
  auto cache = std::make_unique<PathCache>();
  for (int round = 0; round < 2; ++round)
    for (ContextId id = 1; id <= 5000; ++id) {
      ContextId found = cache->find(step(id, "op"));
      CHECK(found == PathCache::kNone || found == id + 1000);
      if (found == PathCache::kNone)
        cache->keep(step(id, "op"), id + 1000);
      CHECK_EQ(cache->find(step(id, "op")), id + 1000);
    }
}
