// Encodes one call-path tree as the file of record.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calltree/call_path_tree.h"
#include "record/device.h"

namespace proton {

/// How far a run was when a partial file was written.
struct SoFar {
  int64_t unix_ns = 0;
  uint64_t steps = 0; ///< that began; 0: unknown
};

/// What a file states besides the tree.
struct FileFacts {
  std::string provenance;                  ///< one encoded MessagePack map; empty: an empty map
  std::map<std::string, uint64_t> dropped; ///< lost records by reason
  std::string steady; ///< another whole file, of the steady part; empty: there is none
  bool partial = false;
  std::optional<SoFar> so_far; ///< added to the provenance
};

enum class FileFormat {
  kProton,
  kTree, ///< the same without distributions
};

/// "proton" or "tree". Throws Error(kUsage) with this list.
FileFormat parse_file_format(std::string_view text);

/// The whole file. Throws Error(kFormat) if `facts.provenance` is not a MessagePack map, and
/// Error(kOutput) if the tree is too large for the format or there is no memory.
std::string encode_profile(const CallPathTree &tree, const std::vector<Device> &devices,
                           const FileFacts &facts, FileFormat format = FileFormat::kProton);

} // namespace proton
