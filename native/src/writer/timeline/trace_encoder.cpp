#include "writer/timeline/trace_encoder.h"

#include "writer/timeline/chrome_encoder.h"
#include "writer/timeline/perfetto_encoder.h"

namespace proton {

std::unique_ptr<TraceEncoder> make_trace_encoder(TraceFormat format) {
  return format == TraceFormat::kPerfetto ? make_perfetto_encoder() : make_chrome_encoder();
}

} // namespace proton
