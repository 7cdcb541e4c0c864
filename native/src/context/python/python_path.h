// The Python path of a thread: the frames it had at its last record, with their context ids.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "record/record.h"

namespace proton {

/// Position of a frame: cheap to read, resolved to a line only when it is new. The code object is
/// borrowed here; the table of site names owns a reference to each code object it has seen.
struct Site {
  const void *code = nullptr;
  int64_t offset = 0; ///< of the instruction in the code, bytes
  bool operator==(const Site &other) const = default;
};

/// A frame of the last path with the id of the path that ends there.
struct PathFrame {
  Site site;
  ContextId id = 0;
};

/// Name of a frame that calls a test. Paths show neither it nor the runner's frames around it, so
/// that a test has the same path under every runner.
inline constexpr std::string_view kPathStart{"\0", 1};

/// Sets the name of a site, which is empty for a frame that paths do not show. False: not known.
using FindSiteName = bool (*)(const Site &site, std::string &name);

/// Owned by one thread. Frames that changed since the last record are interned anew; the others,
/// and sites met before below the same path, cost no lock and no string.
class PythonPath {
public:
  /// Forgets everything if the table of site names was emptied: addresses may be recycled since.
  void renew(uint32_t generation) noexcept;
  /// The frames of the last path, outermost first.
  std::span<const PathFrame> frames() const noexcept { return frames_; }
  /// Id of the last path for a record of `epoch`; empty if the path has to be followed again.
  std::optional<ContextId> last(EpochId epoch);
  /// Makes `walked` (innermost first) the last path and returns its id; empty if `find` does not
  /// know a site.
  std::optional<ContextId> follow(std::span<const Site> walked, EpochId epoch, FindSiteName find);
  /// Memory for a walk. The caller takes it over, because another walk on this thread may
  /// interrupt.
  std::vector<Site> take_scratch() noexcept { return std::move(scratch_); }
  void return_scratch(std::vector<Site> &&scratch) noexcept { scratch_ = std::move(scratch); }

private:
  static constexpr size_t kSteps = 256;
  /// The id that one more frame below a path led to.
  struct Step {
    Site site;
    ContextId parent = 0;
    ContextId id = 0;
    uint32_t collection = 0;
  };
  enum class Outcome { kDone, kUnknownSite, kCollected };

  Outcome extend(std::span<const Site> walked, EpochId epoch, FindSiteName find);
  ContextId leaf() const noexcept { return frames_.empty() ? 0 : frames_.back().id; }
  void forget(uint32_t collection) noexcept;

  uint32_t generation_ = 0;
  uint32_t collection_ = 0; ///< of the context tree, for which all ids are valid
  std::vector<PathFrame> frames_;
  std::vector<Site> scratch_;
  std::array<Step, kSteps> steps_{};
};

// Names of the positions in Python code that paths have shown, "file:line@function".

/// Sets the name of a site: empty for a frame that paths do not show, kPathStart for one that paths
/// start below. False if it was never named. [any thread, with or without the GIL]
bool find_site_name(const Site &site, std::string &name);
/// The same for a frame of the calling thread, read where it stands: the frame keeps its code, and
/// what is read of that never changes. False: it cannot be read so. [calling thread's frame, with
/// or without the GIL]
bool read_site_name(const Site &site, std::string &name);
/// Names the sites that are new and takes a reference to their code objects, so that no other code
/// object gets their addresses. The sites belong to live frames. May run Python code. [GIL held]
void name_sites(std::span<const Site> sites);
/// Drops all names and references. May run Python code. [GIL held]
void forget_site_names() noexcept;
/// How often names were dropped. Sites that were read before the latest drop mean nothing.
uint32_t site_generation() noexcept;

} // namespace proton
