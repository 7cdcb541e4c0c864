#include "writer/file/output_file.h"

#include <unistd.h>

#include <cerrno>

#include "writer/file/output_target.h"
#include "writer/file/partial_file.h"
#include "writer/file/scratch_file.h"
#include "writer/file/signal_shield.h"

namespace proton {
namespace {

// Returns 0 or the error number.
int write_device(const std::string &path, std::string_view content) {
  int descriptor = open_device(path);
  if (descriptor < 0)
    return errno;
  int code = write_bytes(descriptor, content);
  // Network file systems report a full disk only here.
  if (close(descriptor) != 0 && code == 0 && errno != EINTR)
    code = errno;
  return code;
}

} // namespace

void write_atomically(const std::string &path, std::string_view content) {
  SignalShield shield;
  OutputTarget target = find_target(path);
  if (target.is_device) {
    if (int code = write_device(path, content); code != 0)
      refuse_output(path, code);
    return;
  }
  ScratchFile file(target.file, path);
  if (int code = write_bytes(file.descriptor(), content); code != 0)
    refuse_output(path, code);
  file.take_place();
  // What was flushed while recording stays readable until the new file is complete.
  remove_left_over(partial_path(target.file));
}

void write_to_stdout(std::string_view content) {
  SignalShield shield;
  if (int code = write_bytes(STDOUT_FILENO, content); code != 0)
    refuse_output("standard output", code);
}

} // namespace proton
