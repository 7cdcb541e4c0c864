#include "writer/partial_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "fsync_notes.h"
#include "scratch_folder.h"
#include "support/error.h"

using namespace proton;

namespace {

constexpr const char *kName = "x.partial.proton";

// "x.partial.1234.proton", or "x.partial.1234-2.proton".
std::string of_process(int number = 1) {
  std::string more = number == 1 ? "" : "-" + std::to_string(number);
  return "x.partial." + std::to_string(getpid()) + more + ".proton";
}

// What may stand at a name and is none of ours.
void plant(const ScratchFolder &folder, const std::string &kind, const std::string &name) {
  const std::string path = folder.file(name);
  if (kind == "link")
    CHECK_EQ(symlink("victim", path.c_str()), 0);
  else if (kind == "dangling link")
    CHECK_EQ(symlink("nothing", path.c_str()), 0);
  else if (kind == "pipe")
    CHECK_EQ(mkfifo(path.c_str(), 0600), 0);
  else
    CHECK_EQ(mkdir(path.c_str(), 0777), 0);
}

mode_t kind_of(const ScratchFolder &folder, const std::string &name) {
  struct stat facts{};
  return lstat(folder.file(name).c_str(), &facts) == 0 ? facts.st_mode & S_IFMT : 0;
}

const std::vector<std::pair<std::string, mode_t>> kKinds{
    {"link", S_IFLNK}, {"dangling link", S_IFLNK}, {"pipe", S_IFIFO}, {"folder", S_IFDIR}};

} // namespace

TEST(the_partial_name_keeps_the_suffix) {
  CHECK_EQ(partial_path("a/b.proton"), "a/b.partial.proton");
  CHECK_EQ(partial_path("x.part_0.hatchet"), "x.part_0.partial.hatchet");
  CHECK_EQ(partial_path("a.b/name"), "a.b/name.partial");
  CHECK_EQ(partial_path("a/.hidden"), "a/.hidden.partial");
}

TEST(two_that_write_at_a_time_have_a_file_each) {
  ScratchFolder folder;
  std::string path = folder.file(kName);
  OwnFile first = open_partial(path, path);
  OwnFile second = open_partial(path, path);
  OwnFile third = open_partial(path, path);
  CHECK_EQ(first.path, path);
  CHECK_EQ(second.path, folder.file(of_process()));
  CHECK_EQ(third.path, folder.file(of_process(2)));
  for (const OwnFile &each : {first, second, third})
    close(each.descriptor);
  OwnFile again = open_partial(path, path);
  CHECK_EQ(again.path, path);
  close(again.descriptor);
}

TEST(a_left_over_file_is_removed_and_not_opened_for_writing) {
  ScratchFolder folder;
  std::ofstream(folder.file("victim")) << "mine";
  CHECK_EQ(link(folder.file("victim").c_str(), folder.file(kName).c_str()), 0);
  OwnFile own = open_partial(folder.file(kName), "x");
  CHECK_EQ(own.path, folder.file(kName));
  CHECK_EQ(write(own.descriptor, "new", 3), 3);
  CHECK_EQ(folder.content("victim"), "mine");
  CHECK_EQ(folder.content(kName), "new");
  close(own.descriptor);
}

TEST(what_was_planted_at_the_name_stays_and_the_file_stands_beside_it) {
  for (const auto &[kind, mode] : kKinds) {
    ScratchFolder folder;
    std::ofstream(folder.file("victim")) << "mine";
    plant(folder, kind, kName);
    OwnFile own = open_partial(folder.file(kName), "x");
    CHECK_EQ(own.path, folder.file(of_process()));
    CHECK_EQ(write(own.descriptor, "new", 3), 3);
    close(own.descriptor);
    CHECK_EQ(write_partial_file(folder.file(kName), "tree"), folder.file(of_process()));
    CHECK_EQ(folder.content(of_process()), "tree");
    CHECK_EQ(kind_of(folder, kName), mode);
    CHECK_EQ(folder.content("victim"), "mine");
    CHECK_EQ(folder.entries(), 3);
  }
}

TEST(what_was_planted_is_not_removed_and_not_in_the_way_of_a_move) {
  for (const auto &[kind, mode] : kKinds) {
    ScratchFolder folder;
    std::ofstream(folder.file("victim")) << "mine";
    plant(folder, kind, kName);
    CHECK(!remove_left_over(folder.file(kName)));
    std::ofstream(folder.file("own")) << "own";
    CHECK_EQ(move_partial(folder.file("own"), folder.file(kName), "x"), folder.file(of_process()));
    CHECK_EQ(folder.content(of_process()), "own");
    CHECK_EQ(kind_of(folder, kName), mode);
    CHECK_EQ(folder.content("victim"), "mine");
    CHECK_EQ(folder.entries(), 3);
  }
}

TEST(a_file_that_is_held_is_not_removed) {
  ScratchFolder folder;
  OwnFile own = open_partial(folder.file(kName), "x");
  CHECK(!remove_left_over(folder.file(kName)));
  close(own.descriptor);
  CHECK(remove_left_over(folder.file(kName)));
  CHECK(remove_left_over(folder.file(kName)));
  CHECK_EQ(folder.entries(), 0);
}

TEST(many_that_begin_over_a_left_over_file_have_a_file_each) {
  constexpr int kProcesses = 6;
  for (int round = 0; round < 20; ++round) {
    ScratchFolder folder;
    std::ofstream(folder.file(kName)) << "left over";
    int go[2], made[2], over[2];
    for (int *ends : {go, made, over})
      CHECK_EQ(pipe(ends), 0);
    std::fflush(stdout);
    for (int i = 0; i < kProcesses; ++i) {
      if (fork() != 0)
        continue;
      close(go[1]);
      close(over[1]);
      char byte = 0;
      bool is_right = read(go[0], &byte, 1) == 0;
      OwnFile own = open_partial(folder.file(kName), "x");
      std::string number = std::to_string(getpid());
      is_right &= write(own.descriptor, number.data(), number.size()) > 0;
      is_right &= write(made[1], "", 1) == 1;
      is_right &= read(over[0], &byte, 1) == 0; // until then each keeps its own
      std::string name = own.path.substr(own.path.rfind('/') + 1);
      _exit(is_right && folder.content(name) == number ? 0 : 1);
    }
    close(go[1]);
    char byte = 0;
    for (int i = 0; i < kProcesses; ++i)
      CHECK_EQ(read(made[0], &byte, 1), 1);
    CHECK_EQ(folder.entries(), kProcesses);
    close(over[1]);
    for (int i = 0; i < kProcesses; ++i) {
      int status = 0;
      CHECK(wait(&status) > 0);
      CHECK_EQ(status, 0);
    }
    for (int end : {go[0], made[0], made[1], over[0]})
      close(end);
  }
}

TEST(partial_trees_are_replaced_whole_and_cost_no_flush) {
  ScratchFolder folder;
  flush_notes = {};
  CHECK_EQ(write_partial_file(folder.file(kName), "one"), folder.file(kName));
  CHECK_EQ(write_partial_file(folder.file(kName), "two"), folder.file(kName));
  CHECK(flush_notes.kinds.empty());
  CHECK_EQ(folder.content(kName), "two");
  CHECK_EQ(folder.entries(), 1);
}

TEST(a_folder_that_is_missing_is_an_error) {
  ScratchFolder folder;
  bool is_refused = false;
  try {
    open_partial(folder.file("none/x.partial.proton"), "the name");
  } catch (const Error &error) {
    is_refused = error.code() == ErrorCode::kOutput &&
                 std::string(error.what()).find("the name") != std::string::npos;
  }
  CHECK(is_refused);
}
