// libroctracer64 opened at run time: its entry points, version and what its errors mean.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/roctracer/roctracer_functions.h"
#include "driver/shared_library.h"

namespace proton {

/// Entry points by their names without "roctracer_". Those below `optional` may be null.
struct RoctracerFunctions {
  roctracer::function::EnableOpCallback enable_op_callback = nullptr;
  roctracer::function::DisableOpCallback disable_op_callback = nullptr;
  roctracer::function::EnableDomainCallback enable_domain_callback = nullptr;
  roctracer::function::DisableDomainCallback disable_domain_callback = nullptr;
  roctracer::function::OpenPoolExpl open_pool = nullptr;                          ///< ..._expl
  roctracer::function::ClosePoolExpl close_pool = nullptr;                        ///< ..._expl
  roctracer::function::EnableDomainActivityExpl enable_domain_activity = nullptr; ///< ..._expl
  roctracer::function::DisableDomainActivity disable_domain_activity = nullptr;
  roctracer::function::FlushActivityExpl flush_activity = nullptr; ///< ..._expl
  roctracer::function::NextRecord next_record = nullptr;
  roctracer::function::GetTimestamp get_timestamp = nullptr;
  // optional
  roctracer::function::ErrorString error_string = nullptr;
  roctracer::function::VersionMajor version_major = nullptr;
  roctracer::function::VersionMinor version_minor = nullptr;
  roctracer::function::SetProperties set_properties = nullptr;
  roctracer::function::OpString op_string = nullptr;
  roctracer::function::Start start = nullptr;
  roctracer::function::Stop stop = nullptr;
};

class RoctracerLibrary {
public:
  /// Opens the first candidate that loads. Throws Error(kUnavailable) when there is none, when it
  /// lacks an entry point that is needed, or when it is older than 4.1.
  static RoctracerLibrary open(const std::vector<LibraryCandidate> &candidates);

  const RoctracerFunctions &functions() const { return functions_; }
  const std::string &path() const { return library_.path(); }
  const std::string &origin() const { return library_.origin(); }
  /// E.g. "4.1"; empty where the library does not say.
  std::string version() const;

  /// "ROCTRACER_STATUS_ERROR_MEMORY_ALLOCATION (-6)", and the library's own text where it has one.
  std::string describe(roctracer::Status status) const;
  /// Throws Error(kUnavailable) for every status but success: what failed, why, what to do.
  void check(roctracer::Status status, const char *function) const;

private:
  SharedLibrary library_;
  RoctracerFunctions functions_;
};

} // namespace proton
