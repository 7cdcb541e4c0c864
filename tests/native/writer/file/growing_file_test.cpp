#include "writer/file/growing_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "check.h"
#include "scratch_folder.h"
#include "support/error.h"
#include "writer/file/flock_double.h"
#include "writer/file/fsync_notes.h"

using namespace proton;

namespace {

// The message of the Error(kOutput) that the work throws; empty if it throws none.
template <typename Work> std::string refusal(Work work) {
  try {
    work();
  } catch (const Error &error) {
    CHECK(error.code() == ErrorCode::kOutput);
    return error.what();
  }
  return "";
}

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST(the_partial_file_is_whole_after_each_piece) {
  ScratchFolder folder;
  GrowingFile file(folder.file("x.trace"));
  file.append("[1", "]");
  CHECK_EQ(folder.content("x.partial.trace"), "[1]");
  file.append(",2", "]");
  CHECK_EQ(folder.content("x.partial.trace"), "[1,2]");
  CHECK_EQ(file.size(), 4);
}

TEST(a_piece_shorter_than_the_tail_before_is_written_in_its_place) {
  ScratchFolder folder;
  GrowingFile file(folder.file("x.trace"));
  file.append("[1", ",null]}");
  file.append(",2", ",null]}");
  file.append(",3,4,5,6,7", "]}");
  CHECK_EQ(folder.content("x.partial.trace"), "[1,2,3,4,5,6,7]}");
}

TEST(a_process_that_is_killed_while_it_writes_leaves_what_was_whole_before) {
  ScratchFolder folder;
  int ready[2];
  CHECK_EQ(pipe(ready), 0);
  pid_t child = fork();
  if (child == 0) {
    GrowingFile file(folder.file("x.trace"));
    const std::string piece(size_t{8} << 20, 'a');
    file.append("begin", "TAIL");
    if (write(ready[1], "", 1) != 1)
      _exit(1);
    for (;;)
      file.append(piece, "TAIL");
  }
  char byte = 0;
  CHECK_EQ(read(ready[0], &byte, 1), 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  std::string content = folder.content("x.partial.trace");
  size_t end = content.find("TAIL");
  CHECK(end != std::string::npos);
  std::string whole = content.substr(0, end);
  CHECK(whole.starts_with("begin"));
  CHECK_EQ(whole.find_first_not_of('a', 5), std::string::npos);
}

TEST(what_was_longer_is_cut_off) {
  ScratchFolder folder;
  GrowingFile file(folder.file("x.trace"));
  file.append("a", "a long tail");
  file.append("b", "");
  CHECK_EQ(folder.content("x.partial.trace"), "ab");
}

TEST(an_older_file_stays_until_the_new_one_is_published) {
  ScratchFolder folder;
  std::ofstream(folder.file("x.trace")) << "older";
  GrowingFile file(folder.file("x.trace"));
  file.append("new", "");
  CHECK_EQ(folder.content("x.trace"), "older");
  file.publish();
  CHECK_EQ(folder.content("x.trace"), "new");
  CHECK_EQ(folder.entries(), 1);
}

TEST(a_file_that_is_not_published_is_removed) {
  ScratchFolder folder;
  {
    GrowingFile(folder.file("x.trace")).append("a", "");
  }
  CHECK_EQ(folder.entries(), 0);
}

TEST(a_left_over_of_a_killed_process_is_written_over) {
  ScratchFolder folder;
  std::ofstream(folder.file("x.partial.trace")) << "a long left over";
  GrowingFile file(folder.file("x.trace"));
  file.append("a", "");
  CHECK_EQ(folder.content("x.partial.trace"), "a");
}

TEST(two_writers_of_one_name_do_not_mix) {
  ScratchFolder folder;
  GrowingFile first(folder.file("x.trace"));
  GrowingFile second(folder.file("x.trace"));
  first.append("first", "");
  second.append("second", "");
  CHECK_EQ(folder.content("x.partial.trace"), "first");
  first.publish();
  CHECK_EQ(folder.content("x.trace"), "first");
  second.publish();
  CHECK_EQ(folder.content("x.trace"), "second");
  CHECK_EQ(folder.entries(), 1);
}

TEST(a_file_that_rests_stays_locked_until_it_is_published) {
  ScratchFolder folder;
  GrowingFile file(folder.file("x.trace"));
  file.append("a", "");
  file.rest();
  CHECK(is_locked(folder.file("x.partial.trace")));
  file.move_to(folder.file("x.part_0.trace"));
  CHECK_EQ(folder.content("x.part_0.partial.trace"), "a");
  CHECK(is_locked(folder.file("x.part_0.partial.trace")));
  GrowingFile other(folder.file("x.part_0.trace"));
  other.append("b", "");
  other.publish();
  file.publish();
  CHECK_EQ(folder.content("x.part_0.trace"), "a");
  CHECK_EQ(folder.entries(), 1);
}

TEST(a_file_that_rests_without_a_descriptor_is_renamed_and_published_by_its_name) {
  ScratchFolder folder;
  GrowingFile file(folder.file("x.trace"));
  GrowingFile other(folder.file("y.trace"));
  file.append("a", "");
  {
    FewDescriptors few(4);
    file.rest();
  }
  CHECK_EQ(folder.content("x.partial.trace"), "");
  file.move_to(folder.file("x.part_0.trace"));
  CHECK_EQ(folder.content("x.part_0.partial." + std::to_string(getpid()) + ".trace"), "a");
  other.discard();
  file.publish();
  CHECK_EQ(folder.content("x.part_0.trace"), "a");
  CHECK_EQ(folder.entries(), 1);
}

TEST(a_link_stays_and_the_file_behind_it_is_replaced) {
  ScratchFolder folder;
  mkdir(folder.file("far").c_str(), 0777);
  CHECK_EQ(symlink("far/real.trace", folder.file("x.trace").c_str()), 0);
  GrowingFile file(folder.file("x.trace"));
  file.append("a", "");
  CHECK_EQ(folder.content("far/real.partial.trace"), "a");
  file.publish();
  struct stat facts{};
  CHECK(lstat(folder.file("x.trace").c_str(), &facts) == 0 && S_ISLNK(facts.st_mode));
  CHECK_EQ(folder.content("far/real.trace"), "a");
}

TEST(a_pipe_gets_the_bytes_at_the_end) {
  ScratchFolder folder;
  CHECK_EQ(mkfifo(folder.file("x.trace").c_str(), 0600), 0);
  int reader = open(folder.file("x.trace").c_str(), O_RDONLY | O_NONBLOCK);
  GrowingFile file(folder.file("x.trace"));
  file.append("piece by ", "tail");
  file.append("piece", "");
  std::array<char, 32> text{};
  CHECK_EQ(read(reader, text.data(), text.size()), 0);
  file.publish();
  CHECK_EQ(read(reader, text.data(), text.size()), 14);
  CHECK_EQ(std::string(text.data()), "piece by piece");
  CHECK_EQ(folder.entries(), 1);
  close(reader);
}

TEST(bytes_for_standard_output_are_handed_over_without_a_name) {
  GrowingFile file("-");
  file.append("for stdout", "");
  int descriptor = file.release_descriptor();
  std::array<char, 32> text{};
  CHECK_EQ(read(descriptor, text.data(), text.size()), 10);
  CHECK_EQ(std::string(text.data()), "for stdout");
  close(descriptor);
}

TEST(a_program_that_closes_all_descriptors_does_no_harm) {
  ScratchFolder folder;
  int ours = open("/dev/null", O_RDONLY); // the number that the file will have
  close(ours);
  GrowingFile file(folder.file("x.trace"));
  file.append("[1", "]");
  close(ours);
  int others = open(folder.file("others").c_str(), O_RDWR | O_CREAT, 0600);
  CHECK_EQ(others, ours);
  file.append(",2", "]");
  file.publish();
  CHECK_EQ(folder.content("x.trace"), "[1,2]");
  CHECK_EQ(folder.content("others"), "");
  CHECK_EQ(close(others), 0); // no other holder closed it
}

TEST(a_file_without_a_name_is_lost_with_its_descriptor) {
  int ours = open("/dev/null", O_RDONLY);
  close(ours);
  GrowingFile file("-");
  file.append("[1", "]");
  close(ours);
  CHECK(contains(refusal([&] { file.append(",2", "]"); }), "cannot write"));
}

TEST(what_cannot_be_opened_is_refused_with_what_to_do) {
  ScratchFolder folder;
  mkdir(folder.file("folder.trace").c_str(), 0777);
  CHECK(contains(refusal([&] { GrowingFile file(folder.file("none/x.trace")); }),
                 "create the folder"));
  CHECK(contains(refusal([&] { GrowingFile file(folder.file("folder.trace")); }),
                 "choose another output name"));
}

TEST(a_limit_of_the_file_size_is_an_error_that_leaves_what_was_whole) {
  ScratchFolder folder;
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    GrowingFile file(folder.file("x.trace"));
    file.append(std::string(900, 'a'), "TAIL");
    std::string message = refusal([&] { file.append(std::string(900, 'b'), "TAIL"); });
    file.append("c", ""); // has no effect any more, like the next
    file.publish();
    _exit(contains(message, "ulimit -f") && contains(message, "x.partial.trace") ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  std::string whole(900, 'a');
  whole += "TAIL"; // GCC 12 warns of a sum (bug 105651)
  CHECK_EQ(folder.content("x.partial.trace"), whole);
  CHECK_EQ(folder.entries(), 1);
}

TEST(a_file_that_held_nothing_yet_is_not_kept) {
  ScratchFolder folder;
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    GrowingFile file(folder.file("x.trace"));
    std::string message = refusal([&] { file.append(std::string(2000, 'a'), ""); });
    _exit(contains(message, "ulimit -f") ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  CHECK_EQ(folder.entries(), 0);
}

TEST(only_its_end_is_flushed_to_the_disk) {
  ScratchFolder folder;
  flush_notes = {};
  GrowingFile file(folder.file("x.trace"));
  file.append("a", "tail");
  file.append("b", "");
  CHECK(flush_notes.kinds.empty());
  bool had_name = true;
  flush_notes.at_file = [&] { had_name = !folder.content("x.trace").empty(); };
  file.publish();
  CHECK(flush_notes.kinds == (std::vector<std::string>{"file", "folder"}));
  CHECK(!had_name);
  flush_notes = {};
}

TEST(a_disk_that_is_full_at_last_leaves_the_older_file_and_the_partial_one) {
  ScratchFolder folder;
  std::ofstream(folder.file("x.trace")) << "older";
  flush_notes = {};
  GrowingFile file(folder.file("x.trace"));
  file.append("new", "");
  flush_notes.file_error = ENOSPC;
  CHECK(contains(refusal([&] { file.publish(); }), folder.file("x.partial.trace")));
  flush_notes = {};
  CHECK_EQ(folder.content("x.trace"), "older");
  CHECK_EQ(folder.content("x.partial.trace"), "new");
  CHECK_EQ(folder.entries(), 2);
}

TEST(a_folder_that_takes_the_name_meanwhile_leaves_the_partial_file) {
  ScratchFolder folder;
  GrowingFile file(folder.file("x.trace"));
  file.append("new", "");
  mkdir(folder.file("x.trace").c_str(), 0777);
  CHECK(contains(refusal([&] { file.publish(); }), folder.file("x.partial.trace")));
  CHECK_EQ(folder.content("x.partial.trace"), "new");
}

TEST(a_pipe_that_takes_the_name_meanwhile_gets_the_bytes) {
  ScratchFolder folder;
  GrowingFile file(folder.file("x.trace"));
  file.append("new", "");
  CHECK_EQ(mkfifo(folder.file("x.trace").c_str(), 0600), 0);
  int reader = open(folder.file("x.trace").c_str(), O_RDONLY | O_NONBLOCK);
  file.publish();
  std::array<char, 32> text{};
  CHECK_EQ(read(reader, text.data(), text.size()), 3);
  CHECK_EQ(folder.entries(), 1);
  close(reader);
}

TEST(a_pipe_that_is_gone_at_the_end_becomes_a_file) {
  ScratchFolder folder;
  CHECK_EQ(mkfifo(folder.file("x.trace").c_str(), 0600), 0);
  GrowingFile file(folder.file("x.trace"));
  file.append("bytes", "");
  unlink(folder.file("x.trace").c_str());
  file.publish();
  CHECK_EQ(folder.content("x.trace"), "bytes");
  CHECK_EQ(folder.entries(), 1);
}

TEST(what_was_put_in_place_of_the_partial_file_is_neither_published_nor_removed) {
  ScratchFolder folder;
  std::ofstream(folder.file("victim")) << "mine";
  GrowingFile file(folder.file("x.trace"));
  file.append("a", "tail");
  unlink(folder.file("x.partial.trace").c_str());
  CHECK_EQ(symlink("victim", folder.file("x.partial.trace").c_str()), 0);
  file.append("b", "");
  file.publish();
  CHECK_EQ(folder.content("x.trace"), "ab");
  CHECK_EQ(folder.content("victim"), "mine");
  CHECK_EQ(folder.content("x.partial.trace"), "mine");
  CHECK_EQ(folder.entries(), 3);
}

TEST(a_file_that_rests_is_published_though_its_name_was_replaced) {
  ScratchFolder folder;
  GrowingFile file(folder.file("x.trace"));
  file.append("a", "");
  file.rest();
  unlink(folder.file("x.partial.trace").c_str());
  std::ofstream(folder.file("x.partial.trace")) << "mine";
  file.publish();
  CHECK_EQ(folder.content("x.trace"), "a");
  CHECK_EQ(folder.content("x.partial.trace"), "mine");
}

TEST(a_file_without_a_descriptor_that_was_replaced_is_an_error) {
  ScratchFolder folder;
  std::ofstream(folder.file("victim")) << "mine";
  GrowingFile other(folder.file("x.trace"));
  GrowingFile file(folder.file("x.trace"));
  const std::string partial = folder.file("x.partial." + std::to_string(getpid()) + ".trace");
  file.append("a", "");
  {
    FewDescriptors few(4);
    file.rest();
  }
  other.discard();
  CHECK_EQ(folder.entries(), 2);
  unlink(partial.c_str());
  CHECK_EQ(symlink("victim", partial.c_str()), 0);
  CHECK(contains(refusal([&] { file.publish(); }), "cannot write"));
  CHECK_EQ(folder.content("victim"), "mine");
  CHECK_EQ(folder.entries(), 2);
}

TEST(two_that_are_numbered_alike_keep_a_file_each) {
  ScratchFolder folder;
  GrowingFile first(folder.file("x.trace"));
  GrowingFile second(folder.file("x.trace"));
  first.append("first", "");
  second.append("second", "");
  first.move_to(folder.file("x.part_0.trace"));
  second.move_to(folder.file("x.part_0.trace"));
  CHECK_EQ(folder.content("x.part_0.partial.trace"), "first");
  CHECK_EQ(folder.entries(), 2);
  second.publish();
  CHECK_EQ(folder.content("x.part_0.trace"), "second");
  first.publish();
  CHECK_EQ(folder.content("x.part_0.trace"), "first");
  CHECK_EQ(folder.entries(), 1);
}

TEST(a_folder_that_cannot_be_flushed_is_said_and_the_file_is_in_place) {
  ScratchFolder folder;
  std::ofstream(folder.file("x.trace")) << "older";
  flush_notes = {};
  GrowingFile file(folder.file("x.trace"));
  file.append("new", "");
  flush_notes.folder_error = EIO;
  std::string message = refusal([&] { file.publish(); });
  flush_notes = {};
  CHECK(contains(message, "'" + folder.file("x.trace") + "' is in its place"));
  CHECK(contains(message, "Input/output error"));
  CHECK(contains(message, "after a loss of power"));
  CHECK(!contains(message, "cannot write"));
  CHECK(!contains(message, "partial"));
  CHECK_EQ(folder.content("x.trace"), "new");
  CHECK_EQ(folder.entries(), 1);
}
