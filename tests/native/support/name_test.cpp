#include "support/name.h"

#include <thread>
#include <vector>

#include "check.h"

using proton::live_name_count;
using proton::Name;

TEST(equal_texts_are_one_name) {
  Name first("scope"), second(std::string("sco") + "pe"), other("op");
  CHECK(first == second);
  CHECK(first.key() == second.key());
  CHECK(!(first == other));
  CHECK_EQ(first.text(), "scope");
}

TEST(texts_may_hold_any_bytes) {
  std::string bytes("a\0\xFF\n", 4);
  Name name(bytes), shorter("a");
  CHECK(name.text() == bytes);
  CHECK(!(name == shorter));
}

TEST(a_name_without_text_is_empty) {
  Name none;
  CHECK_EQ(none.text(), "");
  CHECK(none.key() == nullptr);
}

TEST(a_text_is_freed_with_its_last_user) {
  size_t before = live_name_count();
  {
    Name name("short lived");
    Name copy = name;
    Name moved = std::move(name);
    CHECK_EQ(live_name_count(), before + 1);
    copy = Name("another");
    CHECK_EQ(live_name_count(), before + 2);
    CHECK_EQ(moved.text(), "short lived");
  }
  CHECK_EQ(live_name_count(), before);
}

TEST(assigning_a_name_to_itself_keeps_it) {
  Name name("self");
  Name &same = name;
  name = same;
  CHECK_EQ(name.text(), "self");
}

TEST(threads_may_make_and_drop_the_same_text_at_once) {
  size_t before = live_name_count();
  std::vector<std::thread> threads;
  std::atomic<bool> is_right{true};
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        Name name("contended"), copy = name;
        if (copy.text() != "contended")
          is_right = false;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(is_right.load());
  CHECK_EQ(live_name_count(), before);
}
