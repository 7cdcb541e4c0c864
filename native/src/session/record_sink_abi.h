// The C face of the aggregator, for collectors of third parties.
#pragma once

#include "proton_bench/record_sink.h"

namespace proton {

/// The one sink of the process; lives until it ends.
const pb_record_sink *record_sink_abi();

} // namespace proton
