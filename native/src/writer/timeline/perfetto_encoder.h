// Timelines in Perfetto's own format (TrackEvent), in gzip members.
#pragma once

#include <memory>

#include "writer/timeline/trace_encoder.h"

namespace proton {

std::unique_ptr<TraceEncoder> make_perfetto_encoder();

} // namespace proton
