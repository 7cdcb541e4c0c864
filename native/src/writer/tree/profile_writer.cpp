#include "writer/tree/profile_writer.h"

#include <exception>

#include "support/error.h"
#include "writer/bytes/utf8_text.h"
#include "writer/file/output_file.h"
#include "writer/tree/hatchet_writer.h"
#include "writer/tree/json_emitter.h"
#include "writer/tree/msgpack_emitter.h"
#include "writer/tree/proton_writer.h"
#include "writer/tree/scope_trace_writer.h"
#include "writer/tree/upstream_tree.h"

namespace proton {
namespace {

std::string encode_hatchet(const CallPathTree &tree, const std::vector<Device> &devices,
                           const FileFacts &facts, Emitter &emitter) {
  return facts.upstream_shape ? write_hatchet(upstream_tree(tree), devices, emitter, false)
                              : write_hatchet(tree, devices, emitter);
}

std::string encode(const CallPathTree &tree, const std::vector<Device> &devices,
                   const FileFacts &facts, FileFormat format, const ScopeTimeline *timeline) {
  switch (format) {
  case FileFormat::kProton:
    return write_proton(tree, devices, facts);
  case FileFormat::kHatchet: {
    JsonEmitter emitter(JsonStyle::kFile);
    return encode_hatchet(tree, devices, facts, emitter);
  }
  case FileFormat::kHatchetCompact: {
    JsonEmitter emitter(JsonStyle::kCompact);
    return encode_hatchet(tree, devices, facts, emitter);
  }
  case FileFormat::kHatchetMsgpack: {
    MsgpackEmitter emitter;
    return encode_hatchet(tree, devices, facts, emitter);
  }
  case FileFormat::kChromeTrace:
    return write_scope_trace(tree, timeline ? *timeline : ScopeTimeline(), devices,
                             facts.upstream_shape);
  }
  throw Error(ErrorCode::kUsage, "unknown file format number " +
                                     std::to_string(static_cast<int>(format)) +
                                     "; use one that parse_file_format returns");
}

} // namespace

FileFormat parse_file_format(std::string_view text) {
  if (text == "proton")
    return FileFormat::kProton;
  if (text == "hatchet")
    return FileFormat::kHatchet;
  if (text == "hatchet_compact")
    return FileFormat::kHatchetCompact;
  if (text == "hatchet_msgpack")
    return FileFormat::kHatchetMsgpack;
  if (text == "chrome_trace")
    return FileFormat::kChromeTrace;
  throw Error(ErrorCode::kUsage, "Unknown output format: " + valid_utf8(text) +
                                     "; choose proton, hatchet, hatchet_compact, "
                                     "hatchet_msgpack or chrome_trace");
}

// Exceptions of the standard library (no memory) become the one error type that callers know.
std::string encode_profile(const CallPathTree &tree, const std::vector<Device> &devices,
                           const FileFacts &facts, FileFormat format,
                           const ScopeTimeline *timeline) {
  try {
    return encode(tree, devices, facts, format, timeline);
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
