// Encodes one call-path tree in each file format, by one walk, and writes files atomically.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "calltree/call_path_tree.h"
#include "calltree/scope_timeline.h"
#include "record/device.h"

namespace proton {

/// What a file states besides the tree.
struct FileFacts {
  std::string provenance;                  ///< one encoded MessagePack map; empty: an empty map
  std::map<std::string, uint64_t> dropped; ///< lost records by reason
  bool partial = false;
  bool upstream_shape = false; ///< upstream's formats show the tree as upstream would
};

enum class FileFormat { kProton, kHatchet, kHatchetCompact, kHatchetMsgpack, kChromeTrace };

/// "proton", "hatchet", "hatchet_compact", "hatchet_msgpack", "chrome_trace". Throws Error(kUsage)
/// with this list.
FileFormat parse_file_format(std::string_view text);

/// The whole file as bytes. Only kChromeTrace uses the timeline; null means an empty one.
std::string encode_profile(const CallPathTree &tree, const std::vector<Device> &devices,
                           const FileFacts &facts, FileFormat format,
                           const ScopeTimeline *timeline = nullptr);

/// Writes a new file, flushes and renames it. Throws Error(kOutput) with the reason and leaves
/// nothing behind. "" and "-" mean standard output.
void write_file(const std::string &path, std::string_view content);

} // namespace proton
