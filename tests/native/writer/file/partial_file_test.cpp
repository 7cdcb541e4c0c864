#include "writer/file/partial_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "scratch_folder.h"
#include "support/error.h"
#include "writer/file/flock_double.h"
#include "writer/file/fsync_notes.h"

using namespace proton;

namespace {

constexpr const char *kName = "x.partial.proton";

// "x.partial.1234.proton", or "x.partial.1234-2.proton".
std::string of_process(int number = 1) {
  std::string more = number == 1 ? "" : "-" + std::to_string(number);
  return "x.partial." + std::to_string(getpid()) + more + ".proton";
}

// Puts something at a name that is not a file of ours.
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
  CHECK_EQ(first.path(), path);
  CHECK_EQ(second.path(), folder.file(of_process()));
  CHECK_EQ(third.path(), folder.file(of_process(2)));
  for (OwnFile *each : {&first, &second, &third})
    each->let_go();
  OwnFile again = open_partial(path, path);
  CHECK_EQ(again.path(), path);
}

TEST(a_left_over_file_is_removed_and_not_opened_for_writing) {
  ScratchFolder folder;
  std::ofstream(folder.file("victim")) << "mine";
  CHECK_EQ(link(folder.file("victim").c_str(), folder.file(kName).c_str()), 0);
  OwnFile own = open_partial(folder.file(kName), "x");
  CHECK_EQ(own.path(), folder.file(kName));
  CHECK_EQ(write(own.descriptor(), "new", 3), 3);
  CHECK_EQ(folder.content("victim"), "mine");
  CHECK_EQ(folder.content(kName), "new");
}

TEST(what_was_planted_at_the_name_stays_and_the_file_stands_beside_it) {
  for (const auto &[kind, mode] : kKinds) {
    ScratchFolder folder;
    std::ofstream(folder.file("victim")) << "mine";
    plant(folder, kind, kName);
    OwnFile own = open_partial(folder.file(kName), "x");
    CHECK_EQ(own.path(), folder.file(of_process()));
    CHECK_EQ(write(own.descriptor(), "new", 3), 3);
    own.let_go();
    OwnFile tree;
    replace_partial(tree, folder.file(kName), "tree");
    CHECK_EQ(tree.path(), folder.file(of_process()));
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
    OwnFile own = open_partial(folder.file("own.partial"), "x");
    own.move_to(folder.file(kName), "x");
    CHECK_EQ(own.path(), folder.file(of_process()));
    CHECK(is_locked(own.path()));
    CHECK_EQ(kind_of(folder, kName), mode);
    CHECK_EQ(folder.content("victim"), "mine");
    CHECK_EQ(folder.entries(), 3);
  }
}

TEST(a_file_that_is_held_is_not_removed) {
  ScratchFolder folder;
  OwnFile own = open_partial(folder.file(kName), "x");
  CHECK(!remove_left_over(folder.file(kName)));
  own.let_go();
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
      is_right &= write(own.descriptor(), number.data(), number.size()) > 0;
      is_right &= write(made[1], "", 1) == 1;
      is_right &= read(over[0], &byte, 1) == 0; // until then each keeps its own
      std::string name = own.path().substr(own.path().rfind('/') + 1);
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
  OwnFile tree;
  for (const char *content : {"one", "two"}) {
    replace_partial(tree, folder.file(kName), content);
    CHECK_EQ(tree.path(), folder.file(kName));
    CHECK(is_locked(tree.path()));
  }
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

TEST(two_partial_trees_of_one_name_stand_beside_each_other) {
  ScratchFolder folder;
  OwnFile first, second;
  for (const char *content : {"one", "two"}) {
    replace_partial(first, folder.file(kName), std::string("first ") + content);
    replace_partial(second, folder.file(kName), std::string("second ") + content);
  }
  CHECK_EQ(folder.content(kName), "first two");
  CHECK_EQ(folder.content(of_process()), "second two");
  first.remove();
  CHECK_EQ(folder.content(of_process()), "second two");
  CHECK_EQ(folder.entries(), 1);
  second.remove();
  CHECK_EQ(folder.entries(), 0);
}

TEST(a_partial_tree_takes_the_name_of_one_that_was_left_over) {
  ScratchFolder folder;
  std::ofstream(folder.file(kName)) << "of a killed run";
  OwnFile tree;
  replace_partial(tree, folder.file(kName), "new");
  CHECK_EQ(folder.content(kName), "new");
  CHECK_EQ(folder.entries(), 1);
}

TEST(a_partial_tree_that_gets_another_name_leaves_the_one_before) {
  ScratchFolder folder;
  OwnFile tree;
  replace_partial(tree, folder.file(kName), "one");
  replace_partial(tree, folder.file("x.part_0.partial.proton"), "two");
  CHECK_EQ(folder.content("x.part_0.partial.proton"), "two");
  CHECK_EQ(folder.entries(), 1);
}

TEST(what_took_the_name_of_a_partial_tree_is_neither_replaced_nor_removed) {
  ScratchFolder folder;
  OwnFile tree;
  replace_partial(tree, folder.file(kName), "one");
  unlink(folder.file(kName).c_str());
  OwnFile other = open_partial(folder.file(kName), "x");
  replace_partial(tree, folder.file(kName), "two");
  CHECK_EQ(tree.path(), folder.file(of_process()));
  CHECK_EQ(folder.content(kName), "");
  tree.remove();
  CHECK(other.has_name());
  CHECK_EQ(folder.entries(), 1);
}

TEST(a_partial_tree_that_cannot_be_written_leaves_the_one_before) {
  ScratchFolder folder;
  OwnFile tree;
  replace_partial(tree, folder.file(kName), "one");
  CHECK_THROWS(replace_partial(tree, folder.file("none/x.partial.proton"), "two"), Error);
  CHECK(tree.has_name());
  CHECK(is_locked(tree.path()));
  CHECK_EQ(folder.content(kName), "one");
}

TEST(without_locks_nothing_is_taken_for_a_left_over_and_recordings_begin_all_the_same) {
  for (int code : {ENOLCK, ENOTSUP, ENOSYS, EINVAL}) {
    ScratchFolder folder;
    flock_error = code;
    OwnFile first = open_partial(folder.file(kName), "x");
    CHECK_EQ(first.path(), folder.file(kName));
    // It may belong to a live process.
    std::ofstream(folder.file("x.partial.trace")) << "of another program";
    CHECK(!remove_left_over(folder.file("x.partial.trace")));
    OwnFile second = open_partial(folder.file("x.partial.trace"), "x");
    OwnFile tree;
    for (const char *content : {"one", "two"}) {
      replace_partial(tree, folder.file(kName), content);
      CHECK_EQ(tree.path(), folder.file(of_process()));
      CHECK_EQ(folder.content(of_process()), content);
    }
    flock_error = 0;
    CHECK_EQ(folder.content("x.partial.trace"), "of another program");
    CHECK_EQ(folder.entries(), 4);
    for (OwnFile *each : {&first, &second, &tree})
      each->remove();
    CHECK_EQ(folder.entries(), 1);
  }
}

TEST(many_files_that_rest_leave_the_program_its_descriptors) {
  constexpr int kFiles = 60;
  ScratchFolder folder;
  std::vector<OwnFile> files;
  {
    FewDescriptors few(40);
    for (int i = 0; i < kFiles; ++i) {
      std::string number = std::to_string(i);
      files.push_back(open_partial(folder.file("x" + number + ".partial"), "x"));
      CHECK_EQ(write(files.back().descriptor(), number.data(), number.size()), number.size());
      files.back().rest("x");
    }
  }
  int held = 0;
  for (const OwnFile &file : files) {
    held += file.has_descriptor();
    // Another recording takes no locked name, and no name with a process's number.
    CHECK(is_locked(file.path()) || file.path() != file.base());
    CHECK(!remove_left_over(file.path()));
  }
  CHECK_EQ(held, 10);
  for (int i = 0; i < kFiles; ++i) {
    OwnFile &file = files[static_cast<size_t>(i)];
    CHECK_EQ(file.reopen(), 0);
    CHECK(is_locked(file.path()));
    CHECK_EQ(folder.content(file.path().substr(file.path().rfind('/') + 1)), std::to_string(i));
    file.remove();
  }
  CHECK_EQ(folder.entries(), 0);
}

TEST(a_file_that_rests_without_a_lock_keeps_a_name_of_its_process) {
  ScratchFolder folder;
  OwnFile file = open_partial(folder.file(kName), "x");
  OwnFile other = open_partial(folder.file("other.partial"), "x");
  {
    FewDescriptors few(4);
    file.rest("x");
  }
  CHECK(!file.has_descriptor());
  file.move_to(folder.file("y.partial.proton"), "y");
  CHECK_EQ(file.path(), folder.file("y.partial." + std::to_string(getpid()) + ".proton"));
  OwnFile again = open_partial(folder.file(kName), "x");
  CHECK_EQ(again.path(), folder.file(kName));
}

TEST(a_forked_child_holds_no_locks_and_owns_no_files) {
  ScratchFolder folder;
  OwnFile file = open_partial(folder.file(kName), "x");
  int ready[2], over[2];
  for (int *ends : {ready, over})
    CHECK_EQ(pipe(ends), 0);
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    close(over[1]);
    HeldFiles::instance().reset_after_fork();
    bool is_right = !file.has_descriptor() && !file.has_name() && file.reopen() == ESTALE;
    is_right &= !remove_left_over(folder.file(kName)); // it is the parent's
    file.remove();
    char byte = 0;
    is_right &= write(ready[1], "", 1) == 1;
    is_right &= read(over[0], &byte, 1) == 0;
    _exit(is_right ? 0 : 1);
  }
  char byte = 0;
  CHECK_EQ(read(ready[0], &byte, 1), 1);
  CHECK(file.has_name());
  CHECK(is_locked(file.path()));
  file.let_go();
  CHECK(!is_locked(folder.file(kName)));
  for (int end : {over[1], over[0], ready[0], ready[1]})
    close(end);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}
