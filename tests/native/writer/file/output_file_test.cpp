#include "writer/file/output_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "check.h"
#include "scratch_folder.h"
#include "support/error.h"
#include "writer/file/fsync_notes.h"
#include "writer/tree/proton_writer.h"

using namespace proton;

namespace {

// The message of the Error(kOutput) that writing throws; empty when it throws none.
std::string refusal(const std::string &path, const std::string &content = "x") {
  try {
    write_file(path, content);
  } catch (const Error &error) {
    CHECK(error.code() == ErrorCode::kOutput);
    return error.what();
  }
  return "";
}

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

bool is_link(const std::string &path) {
  struct stat facts{};
  return lstat(path.c_str(), &facts) == 0 && S_ISLNK(facts.st_mode);
}

} // namespace

TEST(a_file_is_written_whole_and_alone) {
  ScratchFolder folder;
  std::string content("bytes\0\xFF", 7);
  write_file(folder.file("x.proton"), content);
  CHECK(folder.content("x.proton") == content);
  CHECK_EQ(folder.entries(), 1);
}

TEST(an_older_file_is_replaced) {
  ScratchFolder folder;
  write_file(folder.file("x.proton"), "a long first content");
  write_file(folder.file("x.proton"), "second");
  CHECK_EQ(folder.content("x.proton"), "second");
}

TEST(a_left_over_partial_file_is_replaced) {
  ScratchFolder folder;
  write_file(folder.file("x.partial.proton"), "from a killed run");
  write_file(folder.file("x.proton"), "new");
  CHECK_EQ(folder.content("x.proton"), "new");
  CHECK_EQ(folder.entries(), 1);
}

TEST(a_file_and_its_folder_reach_the_disk_before_and_after_it_has_its_name) {
  ScratchFolder folder;
  write_file(folder.file("x.proton"), "old");
  flush_notes = {};
  std::string seen;
  flush_notes.at_file = [&] { seen = folder.content("x.proton"); };
  write_file(folder.file("x.proton"), "new");
  CHECK(flush_notes.kinds == (std::vector<std::string>{"file", "folder"}));
  CHECK_EQ(seen, "old");
  CHECK_EQ(folder.content("x.proton"), "new");
  flush_notes = {};
}

TEST(a_disk_that_is_full_at_last_leaves_the_older_file_and_the_partial_one) {
  ScratchFolder folder;
  write_file(folder.file("x.proton"), "old");
  std::ofstream(folder.file("x.partial.proton")) << "so far";
  flush_notes = {};
  flush_notes.file_error = ENOSPC;
  CHECK(contains(refusal(folder.file("x.proton")), "free space"));
  flush_notes = {};
  CHECK_EQ(folder.content("x.proton"), "old");
  CHECK_EQ(folder.content("x.partial.proton"), "so far");
  CHECK_EQ(folder.entries(), 2);
}

TEST(a_file_system_that_cannot_flush_folders_will_do) {
  ScratchFolder folder;
  flush_notes = {};
  flush_notes.folder_error = EINVAL;
  write_file(folder.file("x.proton"), "new");
  flush_notes = {};
  CHECK_EQ(folder.content("x.proton"), "new");
}

TEST(a_folder_that_cannot_be_flushed_is_said_and_the_file_is_in_place) {
  ScratchFolder folder;
  write_file(folder.file("x.proton"), "older");
  flush_notes = {};
  flush_notes.folder_error = EIO;
  std::string message = refusal(folder.file("x.proton"), "new");
  flush_notes = {};
  CHECK(contains(message, "'" + folder.file("x.proton") + "' is in its place"));
  CHECK(contains(message, "Input/output error"));
  CHECK(contains(message, "after a loss of power"));
  CHECK(!contains(message, "cannot write"));
  CHECK_EQ(folder.content("x.proton"), "new");
  CHECK_EQ(folder.entries(), 1);
}

TEST(many_writers_of_one_name_leave_one_whole_file) {
  constexpr int kWriters = 6;
  constexpr int kTimes = 30;
  ScratchFolder folder;
  const std::string path = folder.file("x.proton");
  write_file(path, std::string(50'000, '0'));
  std::fflush(stdout);
  std::array<pid_t, kWriters> writers{};
  for (int i = 0; i < kWriters; ++i) {
    writers[static_cast<size_t>(i)] = fork();
    if (writers[static_cast<size_t>(i)] != 0)
      continue;
    for (int time = 0; time < kTimes; ++time)
      if (!refusal(path, std::string(50'000, static_cast<char>('a' + i))).empty())
        _exit(1);
    _exit(0);
  }
  for (int living = kWriters; living > 0;) {
    std::string seen = folder.content("x.proton");
    CHECK_EQ(seen.size(), 50'000);
    CHECK_EQ(seen.find_first_not_of(seen.front()), std::string::npos);
    int status = 0;
    while (living > 0 && waitpid(-1, &status, WNOHANG) > 0) {
      CHECK_EQ(status, 0);
      --living;
    }
  }
  CHECK_EQ(folder.entries(), 1);
}

TEST(nothing_that_was_planted_under_a_name_of_ours_is_followed_or_removed) {
  ScratchFolder folder;
  std::ofstream(folder.file("victim")) << "mine";
  for (const char *name : {"x.partial.proton", "x.partial.proton.new", "x.proton.new"})
    CHECK_EQ(symlink("victim", folder.file(name).c_str()), 0);
  CHECK_EQ(mkfifo(folder.file("x.partial.hatchet").c_str(), 0600), 0);
  mkdir(folder.file("x.partial.json").c_str(), 0777);
  for (const char *name : {"x.proton", "x.hatchet", "x.json"}) {
    write_file(folder.file(name), "new");
    CHECK_EQ(folder.content(name), "new");
  }
  CHECK_EQ(folder.content("victim"), "mine");
  CHECK_EQ(folder.entries(), 9);
}

TEST(a_pipe_is_written_to_and_stays) {
  ScratchFolder folder;
  CHECK_EQ(mkfifo(folder.file("x.proton").c_str(), 0600), 0);
  std::fflush(stdout);
  pid_t reader = fork();
  if (reader == 0) // comes sooner or later than the writer
    _exit(folder.content("x.proton") == std::string(200'000, 'x') ? 0 : 1);
  write_file(folder.file("x.proton"), std::string(200'000, 'x'));
  int status = 0;
  waitpid(reader, &status, 0);
  CHECK_EQ(status, 0);
  struct stat facts{};
  CHECK(stat(folder.file("x.proton").c_str(), &facts) == 0 && S_ISFIFO(facts.st_mode));
  CHECK_EQ(folder.entries(), 1);
}

TEST(a_pipe_that_nothing_reads_is_refused) {
  ScratchFolder folder;
  CHECK_EQ(mkfifo(folder.file("x.proton").c_str(), 0600), 0);
  CHECK(contains(refusal(folder.file("x.proton")), "start its reader"));
  CHECK_EQ(folder.entries(), 1);
}

TEST(the_file_behind_links_is_written_and_the_links_stay) {
  ScratchFolder folder;
  mkdir(folder.file("far").c_str(), 0777);
  CHECK_EQ(symlink("far/link", folder.file("x.proton").c_str()), 0);
  CHECK_EQ(symlink(folder.file("far/real.proton").c_str(), folder.file("far/link").c_str()), 0);
  for (const char *content : {"to a file that is not there yet", "to one that is"}) {
    write_file(folder.file("x.proton"), content);
    CHECK_EQ(folder.content("far/real.proton"), content);
    CHECK(is_link(folder.file("x.proton")));
    CHECK(is_link(folder.file("far/link")));
  }
  CHECK_EQ(folder.entries(), 2);
}

TEST(a_circle_of_links_is_refused_and_kept) {
  ScratchFolder folder;
  CHECK_EQ(symlink("x.proton", folder.file("x.proton").c_str()), 0);
  CHECK(contains(refusal(folder.file("x.proton")), "symbolic links"));
  CHECK(is_link(folder.file("x.proton")));
  CHECK_EQ(folder.entries(), 1);
}

TEST(a_missing_folder_is_named_with_what_to_do) {
  ScratchFolder folder;
  std::string message = refusal(folder.file("none/x.proton"));
  CHECK(contains(message, folder.file("none/x.proton")));
  CHECK(contains(message, "No such file or directory"));
  CHECK(contains(message, "create the folder"));
  CHECK_EQ(folder.entries(), 0);
}

TEST(a_folder_of_that_name_is_refused_and_kept) {
  ScratchFolder folder;
  mkdir(folder.file("x.proton").c_str(), 0777);
  CHECK(contains(refusal(folder.file("x.proton")), "Is a directory"));
  CHECK_EQ(folder.entries(), 1);
}

TEST(a_folder_without_write_permission_is_refused) {
  // /proc refuses even root, unlike a folder with mode 0555.
  CHECK(contains(refusal("/proc/x.proton"), "/proc/x.proton"));
}

TEST(a_name_that_is_too_long_is_refused) {
  ScratchFolder folder;
  CHECK(contains(refusal(folder.file(std::string(300, 'n'))), "shorter"));
  CHECK_EQ(folder.entries(), 0);
}

TEST(a_name_with_a_nul_is_refused) {
  ScratchFolder folder;
  CHECK(contains(refusal(folder.file("a") + std::string("\0b", 2)), "NUL"));
  CHECK_EQ(folder.entries(), 0);
}

TEST(a_full_disk_is_named) { CHECK(contains(refusal("/dev/full"), "No space left on device")); }

TEST(a_device_is_written_in_place) {
  write_file("/dev/null", "x");
  struct stat facts{};
  stat("/dev/null", &facts);
  CHECK(S_ISCHR(facts.st_mode));
}

TEST(a_file_size_limit_is_an_error_and_leaves_the_older_file) {
  ScratchFolder folder;
  write_file(folder.file("x.proton"), "old");
  std::fflush(stdout); // so that the child has nothing to print
  pid_t child = fork();
  if (child == 0) {
    // In a child, with the signal's default action: death.
    rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::string message = refusal(folder.file("x.proton"), std::string(100000, 'x'));
    _exit(contains(message, "ulimit") && contains(message, "File too large") ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK_EQ(WEXITSTATUS(status), 0);
  CHECK_EQ(folder.content("x.proton"), "old");
  CHECK_EQ(folder.entries(), 1);
}

TEST(empty_and_dash_mean_standard_output) {
  ScratchFolder folder;
  std::fflush(stdout);
  int saved = dup(STDOUT_FILENO);
  int file = open(folder.file("out").c_str(), O_CREAT | O_WRONLY, 0666);
  dup2(file, STDOUT_FILENO);
  write_file("", "one ");
  write_file("-", "two");
  dup2(saved, STDOUT_FILENO);
  close(file);
  close(saved);
  CHECK_EQ(folder.content("out"), "one two");
}

TEST(a_closed_pipe_on_standard_output_is_an_error) {
  std::fflush(stdout); // so that the child has nothing to print
  pid_t child = fork();
  if (child == 0) {
    int ends[2];
    bool is_ready = pipe(ends) == 0 && dup2(ends[1], STDOUT_FILENO) >= 0;
    for (int end : ends) // either is standard output itself where the test began without one
      if (end != STDOUT_FILENO)
        close(end);
    std::string message = refusal("-");
    if (!contains(message, "Broken pipe"))
      std::fprintf(stderr, "ready %d, message '%s'\n", is_ready, message.c_str());
    _exit(is_ready && contains(message, "Broken pipe") ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK_EQ(WEXITSTATUS(status), 0);
}

TEST(unknown_formats_are_refused_with_the_choices) {
  CHECK(parse_file_format("proton") == FileFormat::kProton);
  CHECK(parse_file_format("tree") == FileFormat::kTree);
  std::string message;
  try {
    parse_file_format("xml");
  } catch (const Error &error) {
    CHECK(error.code() == ErrorCode::kUsage);
    message = error.what();
  }
  CHECK(contains(message, "Unknown output format: xml"));
  CHECK(contains(message, "choose proton or tree"));
}
