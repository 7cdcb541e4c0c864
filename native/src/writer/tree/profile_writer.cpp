#include "writer/tree/profile_writer.h"

#include <exception>

#include "support/error.h"
#include "writer/bytes/utf8_text.h"
#include "writer/file/output_file.h"

namespace proton {
namespace {

std::string encode(const CallPathTree &tree, const std::vector<Device> &devices,
                   const FileFacts &facts, FileFormat format) {
  switch (format) {
  case FileFormat::kProton:
    return write_proton(tree, devices, facts);
  case FileFormat::kTree:
    return write_proton(tree, devices, facts, false);
  }
  throw Error(ErrorCode::kUsage, "unknown file format number " +
                                     std::to_string(static_cast<int>(format)) +
                                     "; use one that parse_file_format returns");
}

} // namespace

FileFormat parse_file_format(std::string_view text) {
  if (text == "proton")
    return FileFormat::kProton;
  if (text == "tree")
    return FileFormat::kTree;
  throw Error(ErrorCode::kUsage,
              "Unknown output format: " + valid_utf8(text) + "; choose proton or tree");
}

// Exceptions of the standard library (no memory) become the one error type that callers know.
std::string encode_profile(const CallPathTree &tree, const std::vector<Device> &devices,
                           const FileFacts &facts, FileFormat format) {
  try {
    return encode(tree, devices, facts, format);
  } catch (const Error &) {
    throw;
  } catch (const std::exception &error) {
    throw Error(ErrorCode::kOutput,
                "cannot encode a profile of " + std::to_string(tree.nodes().size()) +
                    " call paths: " + error.what() + "; free memory or clear phases more often");
  }
}

void write_file(const std::string &path, std::string_view content) {
  if (path.empty() || path == "-")
    write_to_stdout(content);
  else
    write_atomically(path, content);
}

} // namespace proton
