// Stands in for fsync in the program that includes it: notes what is flushed, and fails when asked
// to.
#pragma once

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <vector>

struct FlushNotes {
  std::vector<std::string> kinds;  ///< "file" or "folder", in order
  std::function<void()> at_file{}; ///< called before a file is flushed
  int file_error = 0;              ///< what flushing a file answers; 0: it does it
  int folder_error = 0;
};
inline FlushNotes flush_notes;

extern "C" int fsync(int descriptor) {
  struct stat facts{};
  fstat(descriptor, &facts);
  bool is_folder = S_ISDIR(facts.st_mode);
  flush_notes.kinds.emplace_back(is_folder ? "folder" : "file");
  if (!is_folder && flush_notes.at_file)
    flush_notes.at_file();
  errno = is_folder ? flush_notes.folder_error : flush_notes.file_error;
  return errno != 0 ? -1 : static_cast<int>(syscall(SYS_fsync, descriptor));
}
