// Timelines in Chrome's trace format, in the form of upstream Proton 3.9 with more arguments.
#pragma once

#include <memory>

#include "writer/timeline/trace_encoder.h"

namespace proton {

std::unique_ptr<TraceEncoder> make_chrome_encoder();

} // namespace proton
