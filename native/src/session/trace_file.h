// One file of a timeline: what an encoder makes of events, on its way to the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "writer/file/growing_file.h"
#include "writer/timeline/trace_encoder.h"

namespace proton {

using EncoderFactory = std::function<std::unique_ptr<TraceEncoder>(TraceFormat)>;

/// "chrome_trace" or "perfetto".
const char *trace_format_name(TraceFormat format) noexcept;
/// What names of such files end in: ".chrome_trace" or ".pftrace".
const char *trace_suffix(TraceFormat format) noexcept;
/// Throws Error(kUsage) naming the two.
TraceFormat parse_trace_format(std::string_view name);

/// Writes when asked to, and whenever much was encoded. Throws Error(kOutput) or std::bad_alloc;
/// the file ends there and stays under its partial name. [one thread at a time]
class TraceFile {
public:
  static constexpr size_t kFlushBytes = size_t{4} << 20;

  TraceFile(const std::string &path, TraceFormat format, std::unique_ptr<TraceEncoder> encoder,
            const TraceFacts &facts);

  void add(const EventBatch &batch);
  /// Makes what stands on the disk a whole file of all that was added.
  void flush();
  /// Writes the last bytes and frees what the encoder holds; `add` and `flush` do nothing from now.
  void end(const TraceEnd &end);

  TraceFormat format() const { return format_; }
  GrowingFile &file() { return file_; }

private:
  TraceFormat format_;
  std::unique_ptr<TraceEncoder> encoder_;
  std::string pending_;
  bool is_dirty_ = true; ///< something was added since the last flush
  GrowingFile file_;
};

} // namespace proton
