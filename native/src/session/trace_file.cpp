#include "session/trace_file.h"

#include "support/error.h"
#include "writer/bytes/utf8_text.h"

namespace proton {

const char *trace_format_name(TraceFormat format) noexcept {
  return format == TraceFormat::kChrome ? "chrome_trace" : "perfetto";
}

const char *trace_suffix(TraceFormat format) noexcept {
  return format == TraceFormat::kChrome ? ".chrome_trace" : ".pftrace";
}

TraceFormat parse_trace_format(std::string_view name) {
  for (TraceFormat format : {TraceFormat::kChrome, TraceFormat::kPerfetto})
    if (name == trace_format_name(format))
      return format;
  throw Error(ErrorCode::kUsage, "Unknown format of timelines: " + valid_utf8(name) +
                                     "; choose chrome_trace or perfetto");
}

TraceFile::TraceFile(const std::string &path, TraceFormat format,
                     std::unique_ptr<TraceEncoder> encoder, const TraceFacts &facts)
    : format_(format), encoder_(std::move(encoder)), file_(path) {
  encoder_->spill_to([this](std::string &bytes) {
    file_.append(bytes, encoder_->tail());
    bytes.clear();
  });
  encoder_->begin(facts, pending_);
  flush(); // from now on there is a whole file at any time
}

void TraceFile::add(const EventBatch &batch) {
  if (!encoder_)
    return;
  encoder_->add(batch, pending_);
  is_dirty_ = true;
  if (pending_.size() >= kFlushBytes)
    flush();
}

void TraceFile::flush() {
  if (!encoder_ || !is_dirty_)
    return;
  encoder_->flush(pending_);
  file_.append(pending_, encoder_->tail());
  pending_.clear();
  is_dirty_ = false;
}

void TraceFile::end(const TraceEnd &end) {
  if (!encoder_)
    return;
  encoder_->end(end, pending_);
  encoder_.reset();
  file_.append(pending_, {});
  pending_ = {};
}

} // namespace proton
