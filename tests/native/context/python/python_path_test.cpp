#include "context/python/python_path.h"

#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "calltree/context_tree.h"
#include "check.h"

using namespace proton;

namespace {

constexpr EpochId kEpoch = 1;
constexpr EpochId kLasting = 1'000'000; // never ends

// Stands for code: the name of a site is "code+offset"; "hidden" has none, "new" is unknown, and
// paths start below "calls a test".
struct Code {
  const char *name;
};
const Code kMain{"main"}, kStep{"step"}, kLeaf{"leaf"}, kHidden{"hidden"}, kNew{"new"},
    kCallsTest{"calls a test"};
std::atomic<int> g_finds{0};

bool find(const Site &site, std::string &name) {
  ++g_finds;
  std::string code = static_cast<const Code *>(site.code)->name;
  name = code == "hidden" ? "" : code + '+' + std::to_string(site.offset);
  if (code == kCallsTest.name)
    name = kPathStart;
  return code != "new";
}

using Sites = std::vector<Site>;

// "outer/inner" of a context, from the root down.
std::string text(ContextId id) {
  std::string path;
  for (; id != 0; id = ContextTree::instance().node(id).parent)
    path = std::string(ContextTree::instance().node(id).name.text()) + (path.empty() ? "" : "/") +
           path;
  return path;
}

std::string followed(PythonPath &path, const Sites &innermost_first) {
  auto id = path.follow(innermost_first, kEpoch, find);
  return id ? text(*id) : "unknown";
}

void collect_all() {
  ContextTree::instance().collect({}, [](std::vector<ContextId> &) {});
}

} // namespace

TEST(a_path_is_read_from_the_outermost_frame) {
  PythonPath path;
  CHECK_EQ(followed(path, {{&kLeaf, 4}, {&kStep, 2}, {&kMain, 1}}), "main+1/step+2/leaf+4");
  CHECK_EQ(path.frames().size(), 3);
  CHECK(path.frames()[0].site == (Site{&kMain, 1}));
  collect_all();
}

TEST(an_empty_path_is_the_root) {
  PythonPath path;
  CHECK_EQ(path.last(kEpoch).value_or(9), 0);
  CHECK_EQ(followed(path, {}), "");
}

TEST(frames_without_a_name_are_passed_over) {
  PythonPath path;
  CHECK_EQ(followed(path, {{&kHidden, 1}, {&kLeaf, 4}, {&kHidden, 0}, {&kMain, 1}}),
           "main+1/leaf+4");
  CHECK_EQ(text(path.last(kEpoch).value_or(0)), "main+1/leaf+4");
  CHECK_EQ(followed(path, {{&kHidden, 1}}), "");
  CHECK_EQ(path.last(kEpoch).value_or(9), 0);
  collect_all();
}

TEST(a_path_starts_below_the_frame_that_calls_the_test) {
  PythonPath path;
  CHECK_EQ(followed(path, {{&kLeaf, 4}, {&kCallsTest, 1}, {&kStep, 2}, {&kMain, 1}}), "leaf+4");
  CHECK_EQ(followed(path, {{&kLeaf, 4}, {&kStep, 2}, {&kMain, 1}}), "main+1/step+2/leaf+4");
  CHECK_EQ(followed(path, {{&kLeaf, 4}, {&kCallsTest, 1}, {&kCallsTest, 1}, {&kMain, 1}}),
           "leaf+4"); // a run inside of a test
  collect_all();
}

TEST(an_unchanged_prefix_and_known_steps_ask_for_no_name) {
  PythonPath path;
  Sites first{{&kLeaf, 4}, {&kStep, 2}, {&kMain, 1}}, second = first, deeper = first;
  second[0].offset = 6;
  deeper.insert(deeper.begin(), {&kLeaf, 8});
  followed(path, first);
  int before = g_finds;
  followed(path, second);
  CHECK_EQ(g_finds - before, 1);
  followed(path, deeper);
  CHECK_EQ(g_finds - before, 2);
  CHECK_EQ(followed(path, first), "main+1/step+2/leaf+4");
  CHECK_EQ(followed(path, second), "main+1/step+2/leaf+6");
  CHECK_EQ(g_finds - before, 2);
  collect_all();
}

TEST(a_change_in_an_outer_frame_is_another_path) {
  PythonPath path;
  CHECK_EQ(followed(path, {{&kLeaf, 4}, {&kMain, 1}}), "main+1/leaf+4");
  CHECK_EQ(followed(path, {{&kLeaf, 4}, {&kMain, 3}}), "main+3/leaf+4");
  CHECK_EQ(followed(path, {{&kMain, 3}}), "main+3");
  collect_all();
}

TEST(an_unknown_site_is_reported_and_what_is_known_stays) {
  PythonPath path;
  followed(path, {{&kLeaf, 4}, {&kMain, 1}});
  CHECK_EQ(followed(path, {{&kNew, 0}, {&kMain, 1}}), "unknown");
  CHECK_EQ(path.frames().size(), 1);
  CHECK_EQ(followed(path, {{&kLeaf, 4}, {&kMain, 1}}), "main+1/leaf+4");
  collect_all();
}

TEST(a_new_generation_forgets_addresses) {
  PythonPath path;
  Code recycled{"old"};
  Sites sites{{&recycled, 4}};
  path.renew(1);
  CHECK_EQ(followed(path, sites), "old+4");
  recycled.name = "young";
  CHECK_EQ(followed(path, sites), "old+4");
  path.renew(2);
  CHECK(path.frames().empty());
  CHECK_EQ(followed(path, sites), "young+4");
  collect_all();
}

TEST(a_collection_makes_the_ids_anew) {
  PythonPath path;
  Sites sites{{&kLeaf, 4}, {&kMain, 1}};
  followed(path, sites);
  collect_all();
  CHECK(!path.last(kEpoch));
  size_t before = ContextTree::instance().live_count();
  CHECK_EQ(followed(path, sites), "main+1/leaf+4");
  CHECK_EQ(ContextTree::instance().live_count(), before + 2);
  CHECK(path.last(kEpoch).has_value());
  collect_all();
  CHECK_EQ(ContextTree::instance().live_count(), before);
}

TEST(the_last_path_is_kept_for_the_epoch_of_the_record) {
  PythonPath path;
  followed(path, {{&kMain, 1}});
  auto id = path.last(7);
  CHECK(id.has_value());
  ContextTree::instance().collect({7}, [](std::vector<ContextId> &) {});
  CHECK(ContextTree::instance().node(id.value_or(0)).live);
  collect_all();
}

TEST(ten_thousand_frames_are_one_path) {
  PythonPath path;
  Sites sites(10'000, Site{&kStep, 2});
  auto id = path.follow(sites, kEpoch, find);
  CHECK_EQ(ContextTree::instance().node(id.value_or(0)).depth, 10'000);
  CHECK_EQ(path.last(kEpoch).value_or(0), id.value_or(1));
  sites.resize(9'999);
  id = path.follow(sites, kEpoch, find);
  CHECK_EQ(ContextTree::instance().node(id.value_or(0)).depth, 9'999);
  collect_all();
}

TEST(paths_stay_right_while_another_thread_collects) {
  std::atomic<bool> done{false};
  std::atomic<EpochId> epoch{1};
  std::thread collector([&] {
    while (!done) {
      EpochId next = epoch.load() + 1;
      epoch.store(next);
      ContextTree::instance().collect({next, kLasting}, [](std::vector<ContextId> &) {});
    }
  });
  PythonPath path;
  int wrong = 0;
  for (int64_t round = 0; round < 20'000; ++round) {
    Sites sites{{&kLeaf, round % 5}, {&kStep, round % 3}, {&kMain, round % 2}};
    auto id = path.follow(sites, round % 4 == 0 ? kLasting : epoch.load(), find);
    if (round % 4 != 0)
      continue; // of an epoch that may end meanwhile: any id will do, nothing may break
    std::string expected = "main+" + std::to_string(round % 2) + "/step+" +
                           std::to_string(round % 3) + "/leaf+" + std::to_string(round % 5);
    wrong += !id || text(*id) != expected ? 1 : 0;
  }
  done = true;
  collector.join();
  CHECK_EQ(wrong, 0);
  CHECK_EQ(followed(path, {{&kLeaf, 4}, {&kMain, 1}}), "main+1/leaf+4");
  collect_all();
}
